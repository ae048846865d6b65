/** The reader that a command opens for itself, against the real kernel and the real programs. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { parseSave } from '../../../src/modes/iptables/rules/parse.ts';
import { walkIptables } from '../../../src/modes/iptables/rules/walk.ts';
import { inside, output } from '../../system/support/inside.ts';
import { type Namespace, openNamespace, requireNamespaces } from '../../system/support/namespace.ts';
import { serviceRules, SERVICES } from './rules/serviceRules.ts';
import { ip } from './rules/rules.ts';

interface Seen {
  readonly outcomes: readonly string[];
  readonly path: readonly string[];
  readonly packets: readonly (number | null)[];
  readonly notes: readonly string[];
}

const HOST = { addresses: [ip('192.0.2.1')] };

/** Asks inside of the namespace; the packets are from 198.51.100.7, by eth0. */
const PROGRAM = `
  import { openIptablesReader } from './src/modes/iptables/inspect.ts';
  const reader = await openIptablesReader(FAMILY, { variant: VARIANT, layout: 'current', masqueradeBit: 14 });
  const packet = (destination, port) => ({
    source: FAMILY === 'IPv4' ? '198.51.100.7' : '2001:db8::7', destination, protocol: 'TCP', port, inInterface: 'eth0',
  });
  const answers = [];
  for (const [destination, port] of ASKED) {
    const { outcomes, notes } = await reader.walk(packet(destination, port), { addresses: ['192.0.2.1'] });
    answers.push({
      outcomes: outcomes.map(({ kind, to, port, masqueraded, probability }) =>
        [kind, to, port, masqueraded, probability?.toFixed(3)].filter((each) => each !== undefined).join(' ')),
      path: (outcomes[0]?.path ?? []).map(({ hook, table, chain, text, isForeign }) =>
        [hook, table, chain, text, ...(isForeign ? ['foreign'] : [])].join(' | ')),
      packets: (outcomes[0]?.path ?? []).map(({ packets }) => packets ?? null),
      notes,
    });
  }
  await reader.close();
  console.log(JSON.stringify(answers));
`;

type Asked = readonly (readonly [address: string, port: number])[];

describe('in a namespace', () => {
  let namespace: Namespace;
  beforeEach(async (context) => {
    requireNamespaces(context);
    namespace = await openNamespace();
  });
  afterEach(() => namespace.close());

  async function ask(family: string, variant: string, asked: Asked): Promise<readonly Seen[]> {
    const values = `const FAMILY = '${family}'; const VARIANT = '${variant}'; const ASKED = ${JSON.stringify(asked)};`;
    const script = PROGRAM.replace(/(import.*;)/, `$1\n${values}`);
    return (await inside(namespace, 'inspect', script)) as Seen[];
  }

  async function restore(program: string, text: string): Promise<void> {
    const { code, stderr } = await namespace.runner([program, '--noflush'], { stdin: text });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  }

  async function load(rules: string): Promise<void> {
    const { code, stderr } = await namespace.runner(['nft', '-f', '-'], { stdin: rules });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  }

  test.each(['nft', 'legacy'])('rules as kube-proxy writes them have their meaning (%s)', async (variant) => {
    const text = serviceRules({ detector: true, masqueradeAll: false });
    await restore(`iptables-${variant}-restore`, text);
    const asked = SERVICES.flatMap(
      ({ clusterIp, nodePort, loadBalancerIp }): Asked => [
        [clusterIp, 80],
        ['192.0.2.1', nodePort],
        [loadBalancerIp, 80],
        [loadBalancerIp, 81],
      ],
    );
    const seen = await ask('IPv4', variant, asked);
    for (const [index, [destination, port]] of asked.entries()) {
      const packet = {
        source: ip('198.51.100.7'),
        destination: ip(destination),
        protocol: 'TCP' as const,
        port,
        inInterface: 'eth0',
      };
      const expected = walkIptables(parseSave(text), packet, HOST);
      expect(seen[index]?.notes).toEqual(expected.notes);
      expect(seen[index]?.outcomes).toEqual(
        expected.outcomes.map((outcome) =>
          [
            outcome.kind,
            ...(outcome.kind === 'forward' ? [outcome.to, outcome.port] : []),
            ...('masqueraded' in outcome ? [outcome.masqueraded] : []),
            outcome.probability.toFixed(3),
          ].join(' '),
        ),
      );
    }
  });

  test('to ask creates no table', async () => {
    const [seen] = await ask('IPv4', 'nft', [['10.96.0.1', 80]]);
    expect(seen).toEqual({ outcomes: ['pass false 1.000'], path: [], packets: [], notes: [] });
    await ask('IPv6', 'legacy', [['fd00::1', 80]]);
    expect(await output(namespace, 'nft', 'list', 'tables')).toBe('');
    expect(await output(namespace, 'cat', '/proc/net/ip_tables_names', '/proc/net/ip6_tables_names')).toBe(
      '',
    );
  });

  test('tables of nf_tables are passed in the order of their priorities', async () => {
    await restore('iptables-nft-restore', '*filter\n-A FORWARD -p tcp --dport 80 -j ACCEPT\nCOMMIT\n');
    const drops = (priority: number): string => `table inet firewall {
      set blocked { type ipv4_addr; flags interval; elements = { 10.96.0.0/16 } }
      chain forward {
        type filter hook forward priority ${priority}; policy accept;
        tcp dport 80 jump check
      }
      chain check {
        ip daddr @blocked counter drop
      }
    }
    `;
    await load(drops(-10));
    const [before, other] = await ask('IPv4', 'nft', [
      ['10.96.0.1', 80],
      ['10.97.0.1', 80],
    ]);
    expect(before?.outcomes).toEqual(['drop 1.000']);
    expect(before?.path.map((step) => step.split(' | ').slice(0, 3).join(' '))).toEqual([
      'filter forward inet firewall forward',
      'filter forward inet firewall check',
    ]);
    expect(before?.path.at(-1)).toMatch(/drop \| foreign$/);
    expect(other?.outcomes).toEqual(['pass false 1.000']);
    await output(namespace, 'nft', 'delete', 'table', 'inet', 'firewall');
    await load(drops(10));
    const [after] = await ask('IPv4', 'nft', [['10.96.0.1', 80]]);
    expect(after?.path.map((step) => step.split(' | ').slice(0, 3).join(' '))).toEqual([
      'filter forward filter FORWARD',
      'filter forward inet firewall forward',
      'filter forward inet firewall check',
    ]);
  });

  test('a policy of another table is a step', async () => {
    await restore('ip6tables-nft-restore', '*filter\n-A FORWARD -j ACCEPT\nCOMMIT\n');
    await output(namespace, 'nft', 'add', 'table', 'ip6', 'guard');
    const chain = '{ type filter hook forward priority 5; policy drop; }';
    await output(namespace, 'nft', 'add', 'chain', 'ip6', 'guard', 'forward', chain);
    const [seen] = await ask('IPv6', 'nft', [['fd00:96::1', 80]]);
    expect(seen?.outcomes).toEqual(['drop 1.000']);
    expect(seen?.path.at(-1)).toBe('filter forward | ip6 guard | forward | policy drop | foreign');
  });

  test('what is not evaluated is named: a dormant table, rules of the other variant', async () => {
    await restore('iptables-nft-restore', '*nat\n-A PREROUTING -p tcp -j REDIRECT --to-ports 1\nCOMMIT\n');
    await load('table ip nat { flags dormant; }');
    await restore('iptables-legacy-restore', '*filter\n-A FORWARD -j ACCEPT\nCOMMIT\n');
    const [seen] = await ask('IPv4', 'nft', [['10.96.0.1', 80]]);
    expect(seen?.outcomes).toEqual(['pass false 1.000']);
    expect(seen?.notes).toEqual([
      'table nat is dormant: packets do not come to its chains',
      'not evaluated: rules of iptables-legacy, in filter',
    ]);
    const [legacy] = await ask('IPv4', 'legacy', [['10.96.0.1', 80]]);
    expect(legacy?.path).toEqual(['filter forward | filter | FORWARD | -j ACCEPT | foreign']);
  });

  test('the outgoing interface is that of the route', async () => {
    await output(namespace, 'ip', 'link', 'add', 'eth0', 'type', 'veth', 'peer', 'name', 'eth1');
    for (const name of ['eth0', 'eth1']) await output(namespace, 'ip', 'link', 'set', name, 'up');
    await output(namespace, 'ip', 'address', 'add', '192.0.2.1/24', 'dev', 'eth0');
    await output(namespace, 'ip', 'route', 'add', '198.51.100.0/24', 'dev', 'eth0');
    await output(namespace, 'ip', 'route', 'add', '10.97.0.0/16', 'dev', 'eth1');
    await output(namespace, 'sysctl', '-qw', 'net.ipv4.ip_forward=1');
    await restore(
      'iptables-nft-restore',
      '*filter\n-A FORWARD -o eth1 -j DROP\n-A FORWARD ! -o eth+ -j DROP\nCOMMIT\n',
    );
    const [away, here] = await ask('IPv4', 'nft', [
      ['10.97.0.1', 80],
      ['10.96.0.1', 80],
    ]);
    expect(away).toMatchObject({ outcomes: ['drop 1.000'], notes: [] });
    expect(away?.path).toEqual(['filter forward | filter | FORWARD | -o eth1 -j DROP | foreign']);
    // There is no route to it.
    expect(here?.outcomes).toEqual(['pass false 1.000']);
    expect(here?.notes).toEqual([
      'not evaluated, taken as no match: -o eth1 (in: -o eth1 -j DROP)',
      'not evaluated, taken as no match: ! -o eth+ (in: ! -o eth+ -j DROP)',
    ]);
  });

  test('counters, comments with quotes, and rules without a target', async () => {
    const rules = [
      '[3:180] -A FORWARD -m comment --comment "say \\\\"-c 1 2 -j X\\\\" twice"',
      '[7:420] -A FORWARD -d 10.96.0.1/32 -m comment --comment "-c 9 9" -j DROP',
    ];
    const { code } = await namespace.runner(['iptables-nft-restore', '--noflush', '--counters'], {
      stdin: `*filter\n${rules.join('\n').replaceAll('\\\\', '\\')}\nCOMMIT\n`,
    });
    expect(code).toBe(0);
    const [seen] = await ask('IPv4', 'nft', [['10.96.0.1', 80]]);
    expect(seen?.path).toEqual([
      'filter forward | filter | FORWARD | -m comment --comment "say \\"-c 1 2 -j X\\" twice" | foreign',
      'filter forward | filter | FORWARD | -d 10.96.0.1/32 -m comment --comment "-c 9 9" -j DROP | foreign',
    ]);
    expect(seen?.packets).toEqual([3, 7]);
  });
});
