/** `junction check` on machines that are made up: everything that a mode needs, taken away one by one. */
import { describe, expect, test } from 'vitest';
import { checkCommand } from '../../../src/cli/checkCommand.ts';
import { JunctionError } from '../../../src/errors.ts';
import { FAMILIES, type Family } from '../../../src/model/ip.ts';
import { type Check, report } from '../../../src/modes/prerequisites/check.ts';
import { captured } from '../../cli/junction.ts';
import { fromFlags, valid } from '../../config/given.ts';
import { fakeMachine, type FakeMachine, type Lacks } from './fakeMachine.ts';

interface Answer {
  readonly summary: string;
  readonly checks: readonly Check[];
}

async function check(
  mode: string,
  machine: FakeMachine,
  flags: string,
  families: readonly Family[] = FAMILIES,
): Promise<Answer> {
  const config = valid(fromFlags(`--proxy-mode=${mode}`, ...flags.split(' ').filter((flag) => flag !== '')));
  const run = await captured((output) => checkCommand(config, output, { families, output: 'json' }, machine));
  const answer = JSON.parse(run.out) as Answer & { readonly verdict: string };
  expect(run.code).toBe(answer.verdict === 'yes' ? 0 : 1);
  // Nothing stays.
  expect(machine.clients.flatMap((client) => [...client.chains])).toEqual([]);
  expect([...machine.trialObjects]).toEqual([]);
  return answer;
}

/** `missing kernel module ip_vs`, of what is not simply there. */
function troubles({ checks }: Answer): readonly string[] {
  return checks.filter(({ state }) => state !== 'present').map(({ state, subject }) => `${state} ${subject}`);
}

const both = (text: string): string => FAMILIES.map((family) => `${text}, ${family}`).join('; ');
const LOCK = new JunctionError('XTABLES_LOCK_HELD', 'held by firewalld');
const NO_LOCK = new JunctionError('XTABLES_LOCK_UNUSABLE', 'no /run/xtables.lock');
const XT = ['-m addrtype', '-m mark', '-j MARK', '-j MASQUERADE', '-m statistic', '-m recent', '-m sctp'];
const ARP = { 'net/ipv4/conf/all/arp_ignore': '0', 'net/ipv4/conf/all/arp_announce': '0' };
type Row = readonly [lacks: Lacks, troubles: string, flags?: string];

const CASES: Readonly<Record<string, readonly Row[]>> = {
  iptables: [
    [{}, ''],
    [{ iptables: { variant: 'legacy' } }, ''],
    [{ iptables: { deletion: 'CHAIN_USER_DEL' } }, ''],
    [{ iptables: { incompatible: ['nat'] } }, both('degraded iptables nat table')],
    [{ capabilities: '0' }, 'missing capability NET_ADMIN'],
    [{ programs: ['iptables', 'ip6tables'] }, 'missing program iptables; missing program ip6tables'],
    [{ programs: ['iptables-restore'] }, 'missing iptables rules, IPv4'],
    [{ ipv6: false }, 'degraded IPv6'],
    [{ iptablesOf: { IPv6: { lacksTables: ['nat'] } } }, 'degraded iptables rules, IPv6'],
    [{ iptablesOf: { IPv6: { lacksTables: ['filter'] } } }, 'missing iptables rules, IPv6'],
    [{ iptables: { lacksTables: ['nat'] } }, both('missing iptables rules')],
    [{ iptables: { refuses: ['-m statistic'] } }, both('missing iptables -m statistic')],
    [{ iptables: { refuses: ['-j REJECT'], variant: 'legacy' } }, both('missing iptables -j REJECT')],
    [{ iptables: { refuses: ['-m recent'] } }, both('degraded iptables -m recent')],
    [{ iptables: { refuses: ['-m recent'], variant: 'legacy' } }, both('degraded iptables -m recent')],
    [{ iptables: { refuses: ['-m recent'], namesNoLines: true } }, both('degraded iptables -m recent')],
    [{ iptables: { refuses: ['-m sctp'] } }, both('degraded iptables -m sctp')],
    [
      { iptables: { refuses: ['-m sctp', '-m recent', '-j REJECT'] } },
      FAMILIES.map(
        (family) =>
          `degraded iptables -m sctp, ${family}; degraded iptables -m recent, ${family}; missing iptables -j REJECT, ${family}`,
      ).join('; '),
    ],
    [{ iptables: { refuses: XT } }, both('missing iptables -j MARK')],
    // It loads br_netfilter, so it is not tried.
    [
      {
        iptables: { refuses: ['-m physdev'] },
        sysctls: { 'net/bridge/bridge-nf-call-iptables': undefined },
      },
      '',
      '--iptables-layout=classic',
    ],
    [
      { iptables: { refuses: ['-m physdev'] } },
      both('degraded iptables -m physdev'),
      '--iptables-layout=classic',
    ],
    [{ modules: ['nf_conntrack_netlink'] }, 'degraded kernel module nf_conntrack_netlink'],
    [{ readOnlySysctls: true }, 'degraded sysctl net.ipv4.conf.all.route_localnet'],
    [{ readOnlySysctls: true }, '', '--iptables-localhost-nodeports=false'],
    [{ iptables: { error: LOCK } }, both('unknown iptables rules')],
    [{ iptables: { error: NO_LOCK } }, both('unknown iptables rules')],
  ],
  ipvs: [
    [{}, ''],
    [{ modules: ['ip_vs'] }, 'missing kernel module ip_vs'],
    [{ unloaded: ['ip_vs', 'ip_vs_rr', 'dummy', 'ip_set_hash_ip'] }, ''],
    [{}, 'missing IPVS scheduler nosuch', '--ipvs-scheduler=nosuch'],
    [{ modules: ['dummy'] }, 'missing kernel module dummy'],
    [{ modules: ['dummy'], link: { kind: 'dummy' } }, ''],
    [{ link: { kind: 'bridge' } }, 'missing device kube-ipvs0'],
    [{ modules: ['ip_set_hash_ipportnet'] }, 'missing kernel module ip_set_hash_ipportnet'],
    [{ modules: ['ip_set_hash_ip'] }, 'missing kernel module ip_set_hash_ip'],
    [{ iptables: { refuses: ['-m set'] } }, both('missing iptables -m set')],
    [{ iptables: { lacksLibrary: ['-m ipvs'] } }, both('degraded iptables -m ipvs')],
    [
      { readOnlySysctls: true, sysctls: ARP },
      'missing sysctl net.ipv4.vs.conntrack; missing sysctl net.ipv4.vs.expire_nodest_conn; missing sysctl net.ipv4.conf.all.arp_ignore; missing sysctl net.ipv4.conf.all.arp_announce',
      '--ipvs-strict-arp',
    ],
    [
      {
        readOnlySysctls: true,
        sysctls: { 'net/ipv4/vs/conntrack': '1', 'net/ipv4/vs/expire_nodest_conn': '1' },
      },
      '',
    ],
    [{ sysctls: { 'net/ipv4/vs/conntrack': undefined } }, 'missing sysctl net.ipv4.vs.conntrack'],
  ],
  nftables: [
    [{}, ''],
    [{ programs: ['iptables', 'ip6tables', 'nft'] }, ''],
    [{ modules: ['nf_tables'] }, both('missing nftables')],
    [{ unloaded: ['nf_tables', 'nft_masq', 'nft_numgen'] }, ''],
    [{ modules: ['nft_chain_nat'] }, both('missing nftables')],
    [{ ipv6: false }, 'degraded IPv6'],
    [{ nftables: { lacks: ['several ranges'] } }, both('missing nftables')],
    [{ modules: ['nft_numgen'] }, both('missing nftables')],
    [{ modules: ['nft_fib_ipv6'] }, 'missing nftables, IPv6'],
    [{ modules: ['nft_reject_ipv4'] }, 'missing nftables, IPv4'],
    [{ nftables: { lacks: ['reject before routing'] } }, both('missing nftables')],
    [{ nftables: { lacks: ['update with data'] } }, both('missing nftables')],
    [{ nftables: { lacks: ['owners'] } }, both('degraded nftables: tables that no other program can change')],
    [{ nftablesOf: { IPv6: { lacksFamily: true } } }, 'degraded nftables, IPv6'],
    [{ nftablesOf: { IPv6: { mostSets: 20 } } }, 'missing nftables, IPv6'],
  ],
};

describe.each(Object.entries(CASES))('%s mode on a machine that lacks', (mode, rows) => {
  const cases = rows.map(([lacks, expected, flags = '']) => ({ lacks, expected, flags }));
  test.each(cases)('$lacks $flags: $expected', async ({ lacks, expected, flags }) => {
    const machine = fakeMachine(lacks);
    const answer = await check(mode, machine, flags);
    expect(troubles(answer).join('; ')).toBe(expected);
    for (const { state, remedy } of answer.checks) expect(remedy === '').toBe(state === 'present');
    expect(answer.summary).toContain(expected.includes('missing') ? 'cannot run here' : 'can run here');
  });
});

/** What is found, and what to do, of the first trouble. */
const WORDS: readonly (readonly [mode: string, lacks: Lacks, found: RegExp, remedy: RegExp])[] = [
  ['ipvs', { capabilities: '0' }, /may not change the network/, /with the capability NET_ADMIN/],
  [
    'iptables',
    { iptables: { refuses: ['-j REJECT'] } },
    /^refused in the filter table: the kernel refuses it \("No such file or directory"\)$/,
    /^modprobe -a nft_compat ipt_REJECT\. /,
  ],
  [
    'iptables',
    { iptables: { variant: 'legacy' }, iptablesOf: { IPv6: { variant: 'legacy', refuses: ['-j REJECT'] } } },
    /^refused in the filter table: .*missing kernel module/,
    /^modprobe ip6t_REJECT\. /,
  ],
  ['ipvs', { iptables: { lacksLibrary: ['-m ipvs'] } }, /./, /^The programs lack it, not the kernel/],
  ['ipvs', { link: { kind: 'bridge' } }, /is no dummy device but bridge$/, /ip link delete kube-ipvs0/],
  [
    'ipvs',
    { modules: ['dummy'] },
    /^.*EOPNOTSUPP; modprobe: FATAL: Module dummy not found$/,
    /modprobe dummy\. If it is not found, linux-modules-extra-6\.1\.0-18-amd64 \(Ubuntu\) or .* \(RHEL, Fedora\)/,
  ],
  [
    'ipvs',
    { modules: ['dummy'], moduleFolder: false },
    /EOPNOTSUPP/,
    /^On the node: modprobe dummy\. Or mount the node's \/lib\/modules into the container, read-only/,
  ],
  [
    'nftables',
    { modules: ['nft_fib_ipv4'] },
    /^rule in \S+: .*fib [sd]addr .*: the kernel refuses it \(ENOENT\); modprobe: FATAL: Module nft_fib_ipv4 not found$/,
    /^The mode needs Linux 5\.9; this is 6\.1\.0-18-amd64\. modprobe -a (nf_tables )?nft_fib_ipv4 nft_fib/,
  ],
  [
    'nftables',
    { modules: ['nf_tables'] },
    /^tables of IPv4: the kernel refuses it \(ENOTSUP\)/,
    /modprobe nf_tables.* CONFIG_NF_TABLES, CONFIG_NF_TABLES_IPV4,/,
  ],
  [
    'nftables',
    { nftables: { lacks: ['several ranges'] } },
    /^set allowed.*interval.*\(ENOTSUP\)/,
    /nf_tables/,
  ],
];

test.each(WORDS)('%s, %j: %s', async (mode, lacks, found, remedy) => {
  const { checks } = await check(mode, fakeMachine(lacks), '');
  const trouble = checks.find(({ state }) => state !== 'present');
  expect(trouble?.found).toMatch(found);
  expect(trouble?.remedy).toMatch(remedy);
});

describe('trials', () => {
  const tried = async (
    mode: string,
    lacks: Lacks,
    families: readonly Family[],
  ): Promise<readonly string[]> => {
    const machine = fakeMachine(lacks);
    await check(mode, machine, '', families);
    return machine.trials;
  };
  const whole = (family: Family): readonly string[] => [`table of ${family}`, `owned table of ${family}`];

  test('none without NET_ADMIN; of nftables one for each family where nothing is wrong', async () => {
    expect(await tried('ipvs', { capabilities: '0' }, FAMILIES)).toEqual([]);
    expect(await tried('nftables', {}, FAMILIES)).toEqual([
      ...FAMILIES.map((family) => `table of ${family}`),
      ...FAMILIES.map((family) => `owned table of ${family}`),
    ]);
    expect(await tried('nftables', {}, ['IPv6'])).toEqual(whole('IPv6'));
  });

  test('a module is loaded only where something is refused, and then it is tried once more', async () => {
    expect(await tried('nftables', { modules: ['nf_tables'] }, ['IPv4'])).toEqual([
      'table of IPv4',
      'modprobe nf_tables',
      'table of IPv4',
    ]);
  });

  test('a kernel that stays busy is told in its own word', async () => {
    const busy = fakeMachine({ nftables: { interruptions: ['EBUSY'] } });
    const answer = await check('nftables', busy, '', ['IPv4']);
    expect(troubles(answer)).toEqual(['unknown nftables, IPv4']);
    expect(JSON.stringify(answer.checks)).toContain('the kernel refuses it (EBUSY)');
  });

  test('the nft variant of iptables looks once at each table and writes nothing; legacy removes what it wrote', async () => {
    const { clients } = await written('nft');
    for (const { inputs } of clients) {
      expect(inputs.map((input) => input.split('\n')[0])).toEqual(['*nat', '*filter']);
      for (const input of inputs) expect(input).toMatch(/\n-X KUBE-JUNCTION-TRIAL\nCOMMIT\n$/);
    }
    for (const { inputs } of (await written('legacy')).clients) expect(inputs).toHaveLength(4);
  });

  async function written(variant: 'nft' | 'legacy'): Promise<FakeMachine> {
    const machine = fakeMachine({ iptables: { variant } });
    await check('iptables', machine, '');
    return machine;
  }
});

test('at a start the daemon warns of what is partly there, and names what is missing', async () => {
  const told = async (lacks: Lacks): Promise<readonly unknown[]> => {
    const { checks } = await check('ipvs', fakeMachine(lacks), '');
    const warnings: unknown[] = [];
    const warn = (_: string, fields: object = {}): unknown => warnings.push(fields);
    try {
      report('ipvs', checks, { warn, verbose: () => {} });
    } catch (error) {
      warnings.push(error);
    }
    return warnings;
  };
  expect(await told({})).toEqual([]);
  expect(await told({ iptablesOf: { IPv4: { refuses: ['-m ipvs'] } } })).toEqual([
    expect.objectContaining({
      what: 'iptables -m ipvs, IPv4',
      whatToDo: expect.stringContaining('modprobe'),
    }),
  ]);
  expect(await told({ iptables: { error: LOCK } })).toHaveLength(2);
  expect(await told({ modules: ['ip_vs', 'dummy'] })).toEqual([
    expect.objectContaining({
      code: 'PREFLIGHT_FAILED',
      message: 'ipvs mode cannot run here: 2 things are missing',
      detail: expect.stringMatching(
        /^- kernel module ip_vs: .*\n {2}modprobe ip_vs.*\n- kernel module dummy: /,
      ),
      hint: expect.stringContaining('junction check --proxy-mode=ipvs'),
    }),
  ]);
});
