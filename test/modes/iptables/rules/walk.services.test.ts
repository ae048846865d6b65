/** Where packets for services go, as a table. */
import { describe, expect, test } from 'vitest';
import { parseSave } from '../../../../src/modes/iptables/rules/parse.ts';
import type { IptablesPacket } from '../../../../src/modes/iptables/rules/walk.ts';
import { walkIptables } from './textWalk.ts';
import { ip } from './rules.ts';
import { SERVICES, type Settings, serviceRules } from './serviceRules.ts';

const NODE = '192.168.0.2';
const HOST = { addresses: [ip(NODE)] };
const SENDERS = {
  pod: { source: ip('10.0.0.2'), inInterface: 'cni0' },
  node: { source: ip(NODE), inInterface: undefined },
  localhost: { source: ip('127.0.0.1'), inInterface: undefined },
  outside: { source: ip('203.0.113.2'), inInterface: 'eth0' },
} as const;

type Sender = keyof typeof SENDERS;

function packetTo(sender: Sender, target: string): IptablesPacket {
  const [name, frontend] = target.split(' ');
  const service = SERVICES.find((one) => one.name === name);
  if (!service) throw new Error(`no service ${target}`);
  const onNode = sender === 'localhost' ? '127.0.0.1' : NODE;
  const destinations: Record<string, readonly [string, number]> = {
    clusterIP: [service.clusterIp, 80],
    nodePort: [onNode, service.nodePort],
    LB: [service.loadBalancerIp, 80],
  };
  const [destination, port] = destinations[frontend ?? ''] ?? ['', 0];
  return { ...SENDERS[sender], destination: ip(destination), protocol: 'TCP', port };
}

/** `both`, `local` or `remote`, and whether the source is rewritten. */
function describeWalk(settings: Settings, sender: Sender, target: string): string {
  const { outcomes, notes } = walkIptables(parseSave(serviceRules(settings)), packetTo(sender, target), HOST);
  expect(notes).toEqual([]);
  expect(outcomes.reduce((sum, { probability }) => sum + probability, 0)).toBe(1);
  const places = new Set<string>();
  for (const outcome of outcomes) {
    if (outcome.kind !== 'forward') return outcome.kind;
    expect(outcome.port).toBe(8080);
    const place = outcome.to.startsWith('10.180.0.') ? 'local' : 'remote';
    places.add(outcome.masqueraded ? `${place} masq` : place);
  }
  const seen = [...places].sort().join(', ');
  return { 'local, remote': 'both', 'local masq, remote masq': 'both masq' }[seen] ?? seen;
}

const COLUMNS: readonly (readonly [string, Settings])[] = [
  ['base', { detector: true, masqueradeAll: false }],
  ['no detector', { detector: false, masqueradeAll: false }],
  ['masqueradeAll', { detector: true, masqueradeAll: true }],
  ['masqueradeAll, no detector', { detector: false, masqueradeAll: true }],
];

const TABLE: readonly (readonly [Sender, string, string, string, string, string])[] = [
  ['pod', 'S1 clusterIP', 'both', 'both', 'both masq', 'both masq'],
  ['pod', 'S1 nodePort', 'both masq', 'both masq', 'both masq', 'both masq'],
  ['pod', 'S1 LB', 'both masq', 'both masq', 'both masq', 'both masq'],
  ['node', 'S1 clusterIP', 'both masq', 'both', 'both masq', 'both masq'],
  ['node', 'S1 nodePort', 'both masq', 'both masq', 'both masq', 'both masq'],
  ['localhost', 'S1 nodePort', 'both masq', 'both masq', 'both masq', 'both masq'],
  ['node', 'S1 LB', 'both masq', 'both masq', 'both masq', 'both masq'],
  ['outside', 'S1 clusterIP', 'both masq', 'both', 'both masq', 'both masq'],
  ['outside', 'S1 nodePort', 'both masq', 'both masq', 'both masq', 'both masq'],
  ['outside', 'S1 LB', 'both masq', 'both masq', 'both masq', 'both masq'],
  ['pod', 'S2 clusterIP', 'both', 'both', 'both masq', 'both masq'],
  ['pod', 'S2 nodePort', 'both', 'local', 'both', 'local'],
  ['pod', 'S2 LB', 'both', 'local', 'both', 'local'],
  ['node', 'S2 clusterIP', 'both masq', 'both', 'both masq', 'both masq'],
  ['localhost', 'S2 nodePort', 'both masq', 'both masq', 'both masq', 'both masq'],
  ['node', 'S2 LB', 'both masq', 'both masq', 'both masq', 'both masq'],
  ['outside', 'S2 clusterIP', 'both masq', 'both', 'both masq', 'both masq'],
  ['outside', 'S2 nodePort', 'local', 'local', 'local', 'local'],
  ['outside', 'S2 LB', 'local', 'local', 'local', 'local'],
  ['pod', 'S3 clusterIP', 'local', 'local', 'local masq', 'local masq'],
  ['pod', 'S3 nodePort', 'both masq', 'both masq', 'both masq', 'both masq'],
  ['pod', 'S3 LB', 'both masq', 'both masq', 'both masq', 'both masq'],
  ['node', 'S3 clusterIP', 'local masq', 'local', 'local masq', 'local masq'],
  ['node', 'S3 nodePort', 'both masq', 'both masq', 'both masq', 'both masq'],
  ['localhost', 'S3 nodePort', 'both masq', 'both masq', 'both masq', 'both masq'],
  ['node', 'S3 LB', 'both masq', 'both masq', 'both masq', 'both masq'],
  ['outside', 'S3 clusterIP', 'local masq', 'local', 'local masq', 'local masq'],
  ['outside', 'S3 nodePort', 'both masq', 'both masq', 'both masq', 'both masq'],
  ['outside', 'S3 LB', 'both masq', 'both masq', 'both masq', 'both masq'],
];

describe.each(COLUMNS.map(([name, settings], index) => [name, settings, index] as const))(
  '%s',
  (_, settings, index) => {
    test.each(TABLE.map(([sender, target, ...answers]) => [sender, target, answers[index]] as const))(
      '%s → %s: %s',
      (sender, target, answer) => expect(describeWalk(settings, sender, target)).toBe(answer),
    );
  },
);

describe('besides', () => {
  const tables = parseSave(serviceRules({ detector: true, masqueradeAll: false }));
  const send = (packet: Omit<IptablesPacket, 'protocol' | 'port'> & Partial<IptablesPacket>): string[] =>
    walkIptables(tables, { protocol: 'TCP', port: 80, ...packet }, HOST).outcomes.map((outcome) =>
      outcome.kind === 'forward' ? `${outcome.to}${outcome.masqueraded ? ' masq' : ''}` : outcome.kind,
    );

  test('an endpoint that reaches itself is masqueraded', () => {
    expect(
      send({ source: ip('10.180.0.1'), inInterface: 'cni0', destination: ip('172.30.0.41') }).sort(),
    ).toEqual(['10.180.0.1 masq', '10.180.1.1']);
  });

  test('other protocols and ports of a cluster IP pass', () => {
    const packet = { ...SENDERS.pod, destination: ip('172.30.0.41') };
    expect(send({ ...packet, protocol: 'UDP' })).toEqual(['pass']);
    expect(send({ ...packet, port: 81 })).toEqual(['pass']);
  });

  test.each(['pod', 'node', 'outside'] as const)('%s → a service without endpoints: reject', (sender) => {
    expect(send({ ...SENDERS[sender], destination: ip('172.30.0.99') })).toEqual(['reject']);
  });

  test('the firewall of a load balancer drops', () => {
    expect(send({ ...SENDERS.outside, destination: ip('198.51.100.9') })).toEqual(['drop']);
  });

  test('outside → loopback is dropped unless it was rewritten', () => {
    expect(send({ ...SENDERS.outside, destination: ip('127.0.0.1') })).toEqual(['drop']);
    expect(send({ ...SENDERS.localhost, destination: ip('127.0.0.1') })).toEqual(['pass']);
  });

  test('the path tells why', () => {
    const [outcome] = walkIptables(tables, packetTo('outside', 'S2 LB'), HOST).outcomes;
    expect(
      outcome?.path.map(({ table, chain, ruleIndex, text }) => `${table} ${chain}[${ruleIndex}] ${text}`),
    ).toMatchInlineSnapshot(`
      [
        "nat PREROUTING[0] -m comment --comment "kubernetes service portals" -j KUBE-SERVICES",
        "nat KUBE-SERVICES[3] -m tcp -p tcp -d 5.6.7.8 --dport 80 -j KUBE-EXT-S2",
        "nat KUBE-EXT-S2[3] -j KUBE-SVL-S2",
        "nat KUBE-SVL-S2[0] -j KUBE-SEP-L-S2",
        "nat KUBE-SEP-L-S2[1] -m tcp -p tcp -j DNAT --to-destination 10.180.0.2:8080",
        "filter FORWARD[0] -m conntrack --ctstate NEW -m comment --comment "kubernetes load balancer firewall" -j KUBE-PROXY-FIREWALL",
        "filter FORWARD[1] -m comment --comment "kubernetes forwarding rules" -j KUBE-FORWARD",
        "filter FORWARD[2] -m conntrack --ctstate NEW -m comment --comment "kubernetes service portals" -j KUBE-SERVICES",
        "nat POSTROUTING[0] -m comment --comment "kubernetes postrouting rules" -j KUBE-POSTROUTING",
        "nat KUBE-POSTROUTING[0] -m mark ! --mark 0x00004000/0x00004000 -j RETURN",
      ]
    `);
  });
});
