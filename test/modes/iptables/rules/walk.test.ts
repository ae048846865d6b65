/** Packets through tables of iptables, ours and other programs': what becomes of them, and by which rules. */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseSave } from './tables.ts';
import { BUILT_IN_CHAINS } from './restore.ts';
import type { Packet } from '../../../../src/plan/decide.ts';
import type { WalkOutcome, WalkResult } from '../../../../src/modes/kernelRules.ts';
import { walkIptables } from './textWalk.ts';
import { ip } from './rules.ts';

const HOST = { addresses: [ip('192.0.2.1'), ip('2001:db8::1'), ip('10.0.0.1')] };
interface BridgedPacket extends Packet {
  readonly viaBridge?: boolean;
}

const FROM_POD: BridgedPacket = {
  source: ip('10.0.0.9'),
  destination: ip('172.30.0.1'),
  protocol: 'TCP',
  port: 80,
  inInterface: 'cni0',
};
const at = (change: Partial<BridgedPacket>): BridgedPacket => ({ ...FROM_POD, ...change });
const FROM_NODE = at({ source: ip('192.0.2.1'), inInterface: undefined });
const TO_NODE = at({ destination: ip('192.0.2.1') });
const TO_SELF = { ...FROM_NODE, destination: ip('127.0.0.1') };

/** What our rules do with the packet: nat to one endpoint, and accept what is marked. */
const OURS = [
  'filter FORWARD -m comment --comment "kubernetes forwarding rules" -j KUBE-FORWARD',
  'filter KUBE-FORWARD -m mark --mark 0x4000/0x4000 -j ACCEPT',
  'nat [7:420] PREROUTING -j KUBE-SERVICES',
  'nat OUTPUT -j KUBE-SERVICES',
  'nat [5:300] KUBE-SERVICES -d 172.30.0.1/32 -p tcp -m tcp --dport 80 -j KUBE-SVC-AAAAAAAAAAAAAAAA',
  'nat [5:300] KUBE-SVC-AAAAAAAAAAAAAAAA -p tcp -j DNAT --to-destination 10.0.0.7:8080',
];

/** Lines are `TABLE CHAIN RULE`, or `TABLE :CHAIN POLICY`. Chains are made as they are named. */
function run(lines: readonly string[], packet: BridgedPacket = FROM_POD): WalkResult {
  const text = [...BUILT_IN_CHAINS.keys()].map((table) => {
    const own = lines.filter((line) => line.startsWith(`${table} `)).map((line) => line.split(' ').slice(1));
    const policies = new Map((BUILT_IN_CHAINS.get(table) ?? []).map((chain) => [`:${chain}`, 'ACCEPT']));
    const rules = own.flatMap(([first = '', ...others]): readonly string[] => {
      const [counters, chain = '', ...rule] = first.startsWith('[')
        ? [first, ...others]
        : ['', first, ...others];
      const isPolicy = chain.startsWith(':');
      if (isPolicy) policies.set(chain, rule.join(' '));
      else if (!policies.has(`:${chain}`)) policies.set(`:${chain}`, '-');
      return isPolicy ? [] : [[counters, '-A', chain, ...rule].join(' ').trim()];
    });
    const heads = [...policies].map(([chain, policy]) => `${chain} ${policy} [0:0]`);
    return [`*${table}`, ...heads, ...rules, 'COMMIT', ''].join('\n');
  });
  const { viaBridge, ...plain } = packet;
  return walkIptables(parseSave(text.join('')), plain, HOST, { viaBridge: viaBridge ?? false });
}

function besideOurs(lines: readonly string[], packet?: BridgedPacket): WalkResult {
  return run([...lines, ...OURS], packet);
}

function brief(outcome: WalkOutcome): string {
  const target = outcome.kind === 'forward' ? `${outcome.to}:${outcome.port}` : outcome.kind;
  return 'masqueraded' in outcome && outcome.masqueraded ? `${target} masq` : target;
}

const kinds = ({ outcomes }: WalkResult): readonly string[] => outcomes.map(brief);
const isDropped = (lines: readonly string[], packet?: BridgedPacket): boolean =>
  kinds(run(lines, packet)).includes('drop');

function lastStep({ outcomes: [outcome] }: WalkResult): string {
  const step = outcome?.path.at(-1);
  return `${step?.hook}: ${step?.chain} ${step?.text}${step?.isForeign ? ', foreign' : ''}`;
}

const sumOf = ({ outcomes }: WalkResult): number =>
  outcomes.reduce((sum, { probability }) => sum + probability, 0);

const DNAT = '-p tcp -j DNAT --to-destination 10.0.1.1:8080';

describe('which hooks a packet passes', () => {
  const hooks = [
    ...['PREROUTING', 'OUTPUT', 'POSTROUTING'].map((chain) => `nat ${chain} -m comment --comment seen`),
    ...['INPUT', 'FORWARD', 'OUTPUT'].map((chain) => `filter ${chain} -m comment --comment seen`),
  ];
  const toItself = ['nat OUTPUT', 'filter OUTPUT', 'nat POSTROUTING', 'filter INPUT'];
  const ipv6 = { ...FROM_NODE, source: ip('::1'), destination: ip('2001:db8::1') };
  test.each<readonly [string, BridgedPacket, readonly string[]]>([
    ['from a pod, onward', FROM_POD, ['nat PREROUTING', 'filter FORWARD', 'nat POSTROUTING']],
    ['from a pod, to the node', TO_NODE, ['nat PREROUTING', 'filter INPUT']],
    ['from the node, onward', FROM_NODE, ['nat OUTPUT', 'filter OUTPUT', 'nat POSTROUTING']],
    ['from the node, to itself', TO_SELF, toItself],
    ['from the node, to itself, IPv6', ipv6, toItself],
  ])('%s', (_, packet, expected) => {
    const [outcome] = run(hooks, packet).outcomes;
    expect(outcome?.path.map((step) => `${step.table} ${step.chain}`)).toEqual(expected);
  });

  test('the rewritten destination decides between INPUT and FORWARD', () => {
    const filter = ['filter INPUT -j DROP', 'filter FORWARD -j REJECT'];
    expect(kinds(run([`nat PREROUTING ${DNAT}`, ...filter], TO_NODE))).toEqual(['reject']);
    const inward = 'nat PREROUTING -p tcp -j DNAT --to-destination 192.0.2.1';
    expect(kinds(run([inward, ...filter]))).toEqual(['drop']);
  });

  test('no tables at all', () => {
    expect(walkIptables(new Map(), FROM_POD, HOST)).toMatchObject({
      outcomes: [{ kind: 'pass', masqueraded: false, probability: 1, path: [], lookups: 0, learned: [] }],
      notes: [],
    });
  });
});

test('without other programs: forwarded, by rules of ours with their counters', () => {
  const { outcomes, notes } = besideOurs([]);
  expect([outcomes.map(brief), notes]).toEqual([['10.0.0.7:8080'], []]);
  expect(outcomes[0]?.path.map(({ chain, packets, isForeign }) => [chain, packets, isForeign])).toEqual([
    ['PREROUTING', 7, undefined],
    ['KUBE-SERVICES', 5, undefined],
    ['KUBE-SVC-AAAAAAAAAAAAAAAA', 5, undefined],
    ['FORWARD', undefined, undefined],
  ]);
});

describe('a rule that drops or refuses ends the way, whatever table it is in', () => {
  test.each([
    ['raw PREROUTING -s 10.0.0.0/24 -j DROP', 'drop', 'raw prerouting'],
    ['mangle PREROUTING -p tcp -j DROP', 'drop', 'mangle prerouting'],
    ['mangle FORWARD -d 10.0.0.7 -j DROP', 'drop', 'mangle forward'],
    ['filter FORWARD -j DROP', 'drop', 'filter forward'],
    ['filter FORWARD -j REJECT --reject-with tcp-reset', 'reject', 'filter forward'],
    ['security FORWARD -j DROP', 'drop', 'security forward'],
    ['mangle POSTROUTING -j DROP', 'drop', 'mangle postrouting'],
    ['nat PREROUTING -j DROP', 'drop', 'nat prerouting'],
  ])('%s', (line, verdict, hook) => {
    const result = besideOurs([line]);
    expect(kinds(result)).toEqual([verdict]);
    expect(lastStep(result)).toBe(`${hook}: ${line.slice(line.indexOf(' ') + 1)}, foreign`);
  });

  test('in a chain of their own', () => {
    const result = besideOurs([
      'filter FORWARD -j FIREWALL',
      'filter FIREWALL -p tcp -m tcp --dport 8080 -j DROP',
    ]);
    expect(lastStep(result)).toBe('filter forward: FIREWALL -p tcp -m tcp --dport 8080 -j DROP, foreign');
  });

  test('from the node: raw OUTPUT, before nat', () => {
    expect(kinds(besideOurs(['raw OUTPUT -d 172.30.0.1 -j DROP'], FROM_NODE))).toEqual(['drop']);
    expect(kinds(besideOurs(['raw OUTPUT -d 10.0.0.7 -j DROP'], FROM_NODE))).toEqual(['10.0.0.7:8080']);
    expect(kinds(besideOurs(['filter OUTPUT -d 10.0.0.7 -j DROP'], FROM_NODE))).toEqual(['drop']);
  });

  test('a policy is the last step', () => {
    const closed = 'filter :FORWARD DROP';
    expect(lastStep(besideOurs([closed]))).toBe('filter forward: FORWARD policy drop, foreign');
    const marked = 'mangle PREROUTING -j MARK --set-xmark 0x4000/0x4000';
    expect(kinds(besideOurs([closed, marked]))).toEqual(['10.0.0.7:8080']);
  });
});

describe('chains and targets', () => {
  const FORWARDED = '10.0.1.1:8080';
  const dnat = `nat PREROUTING ${DNAT}`;
  test.each<readonly [string, readonly string[], string]>([
    ['a chain that ends returns', ['nat PREROUTING -j A', dnat, 'nat A -m comment --comment x'], FORWARDED],
    [
      'RETURN leaves one chain only',
      ['nat PREROUTING -j A', 'nat A -j B', `nat A ${DNAT}`, 'nat B -j RETURN', 'nat B -j ACCEPT'],
      FORWARDED,
    ],
    ['ACCEPT ends the hook', ['nat PREROUTING -j A', dnat, 'nat A -j ACCEPT'], 'pass'],
    [
      'RETURN from a built-in chain is its policy',
      ['filter :FORWARD DROP', 'filter FORWARD -j RETURN'],
      'drop',
    ],
    ['ACCEPT before the policy', ['filter :FORWARD DROP', 'filter FORWARD -j ACCEPT'], 'pass'],
    ['the first DNAT counts', [dnat, 'nat PREROUTING -p tcp -j DNAT --to-destination 9.9.9.9'], FORWARDED],
    ['DNAT without a port keeps it', ['nat PREROUTING -j DNAT --to-destination 9.9.9.9'], '9.9.9.9:80'],
    ['DNAT for IPv6', ['nat PREROUTING -p tcp -j DNAT --to-destination [fd00::9]:81'], 'fd00::9:81'],
    ['DNAT for IPv6 without a port', ['nat PREROUTING -j DNAT --to-destination fd00::9'], 'fd00::9:80'],
    [
      'a goto does not come back to the chain',
      ['nat PREROUTING -j A', 'nat A -g B', 'nat A -j ACCEPT', 'nat B -m comment --comment x', dnat],
      FORWARDED,
    ],
    [
      'nor to a base chain',
      ['filter FORWARD -g X', 'filter FORWARD -j DROP', 'filter X -p udp -j DROP'],
      'pass',
    ],
    ['ACCEPT ends no other table', ['filter FORWARD -j ACCEPT', 'security FORWARD -j DROP'], 'drop'],
    ['MASQUERADE', ['nat POSTROUTING -s 10.0.0.0/8 -j MASQUERADE --to-ports 1024-2048'], 'pass masq'],
    ['SNAT', [dnat, 'nat POSTROUTING -j SNAT --to-source 203.0.113.7:1024-65535'], `${FORWARDED} masq`],
    ['REDIRECT', ['nat PREROUTING -p tcp -j REDIRECT --to-ports 3128'], '192.0.2.1:3128'],
    ['untracked packets do not see nat', ['raw PREROUTING -p tcp -j CT --notrack', dnat], 'pass'],
    ['the same by its older name', ['raw PREROUTING -j NOTRACK', dnat], 'pass'],
    ['a helper changes nothing', ['raw PREROUTING -j CT --helper ftp', dnat], FORWARDED],
    ['returned before', ['nat PREROUTING -j RETURN', dnat], 'pass'],
    [
      'rewritten before',
      ['nat PREROUTING -p tcp -j DNAT --to-destination 9.9.9.9:1 --persistent', dnat],
      '9.9.9.9:1',
    ],
    [
      'marks of other bits',
      [
        'mangle PREROUTING -j MARK --set-xmark 0x0/0x1',
        'mangle PREROUTING -j MARK --set-xmark 0x5/0xff',
        'filter FORWARD -m mark --mark 0x4 -j DROP',
        'filter FORWARD -m mark --mark 0x5 -j REJECT',
      ],
      'reject',
    ],
    [
      'logs pass',
      ['filter FORWARD -j LOG --log-prefix x', 'filter FORWARD -m limit --limit 3/s -j LOG'],
      'pass',
    ],
  ])('%s', (_, lines, expected) => {
    const result = run(lines);
    expect([kinds(result), result.notes]).toEqual([[expected], []]);
  });

  test('a loop is an error', () => {
    expect(() => run(['nat PREROUTING -j A', 'nat A -j A'])).toThrow(/loop/);
  });

  test('choices that come back and double the ways have a limit', () => {
    const choice = 'nat PREROUTING -m statistic --mode random --probability 0.5 -j X';
    const choices = Array.from({ length: 30 }, () => choice);
    const result = run([...choices, 'nat X -m comment --comment x']);
    expect(result.notes).toEqual(['not evaluated: what comes after 200000 rules']);
    expect(sumOf(result)).toBeCloseTo(1, 9);
  });
});

describe('matches', () => {
  const fromNobody = at({ inInterface: undefined });
  test.each<readonly [match: string, yes: BridgedPacket, no: BridgedPacket]>([
    ['-s 10.0.0.0/8', FROM_POD, at({ source: ip('192.0.2.1') })],
    ['! -s 10.0.0.0/8', at({ source: ip('11.0.0.1') }), FROM_POD],
    ['-d 172.30.0.1/32', FROM_POD, at({ destination: ip('172.30.0.2') })],
    ['-s fd00::/64', at({ source: ip('fd00::7') }), at({ source: ip('fd01::7') })],
    ['-p udp', at({ protocol: 'UDP' }), FROM_POD],
    ['! -p udp', FROM_POD, at({ protocol: 'UDP' })],
    ['-p all', FROM_POD, fromNobody],
    ['-m sctp -p sctp --dport 80', at({ protocol: 'SCTP' }), at({ protocol: 'SCTP', port: 81 })],
    ['-p tcp -m tcp --dport 79:80', FROM_POD, at({ port: 81 })],
    ['-p tcp -m tcp ! --dport 80', at({ port: 81 }), FROM_POD],
    ['-p tcp -m multiport --dports 22,70:90', FROM_POD, at({ port: 91 })],
    ['-p tcp -m multiport ! --dports 22,70:90', at({ port: 23 }), FROM_POD],
    ['-p tcp -m tcp --tcp-flags FIN,SYN,RST,ACK SYN', FROM_POD, at({ protocol: 'UDP' })],
    ['-i cni+', FROM_POD, at({ inInterface: 'eth0' })],
    ['! -i cni0', at({ inInterface: 'eth0' }), FROM_POD],
    ['-m iprange --src-range 10.0.0.8-10.0.0.10', FROM_POD, at({ source: ip('10.0.0.11') })],
    ['-m iprange ! --dst-range 172.30.0.0-172.30.0.9', TO_NODE, FROM_POD],
    ['-m addrtype --src-type LOCAL', at({ source: ip('127.9.9.9') }), FROM_POD],
    ['-m addrtype ! --src-type LOCAL', FROM_POD, at({ source: ip('::1') })],
    ['-m addrtype --dst-type LOCAL', TO_NODE, FROM_POD],
    ['-m addrtype --dst-type MULTICAST,LOCAL', TO_NODE, FROM_POD],
    ['-m addrtype --dst-type MULTICAST', at({ destination: ip('224.0.0.1') }), FROM_POD],
    ['-m physdev --physdev-is-in', at({ viaBridge: true }), FROM_POD],
    ['-m physdev ! --physdev-is-in', FROM_POD, at({ viaBridge: true })],
    ['-m state --state NEW,ESTABLISHED', FROM_POD, fromNobody],
    ['-m conntrack --ctstate NEW --ctorigdst 172.30.0.0/24', FROM_POD, TO_NODE],
    ['-m conntrack --ctproto tcp --ctorigdstport 80', FROM_POD, at({ port: 81 })],
    ['! -f', FROM_POD, fromNobody],
  ])('%s', (match, yes, no) => {
    const rule = [`mangle PREROUTING ${match} -j DROP`];
    expect([isDropped(rule, yes), isDropped(rule, no)]).toEqual([true, false]);
  });

  test('flags: the first packet has SYN alone', () => {
    const isSeen = (flags: string): boolean =>
      isDropped([`mangle PREROUTING -p tcp -m tcp --tcp-flags ${flags} -j DROP`]);
    const flags = ['SYN,RST SYN', 'ACK NONE', 'SYN,ACK SYN,ACK', 'FIN FIN', 'SYN NONE'];
    expect(flags.filter(isSeen)).toEqual(['SYN,RST SYN', 'ACK NONE']);
  });

  test('conntrack: new, and rewritten once it was', () => {
    const seen = (...before: readonly string[]): readonly string[] =>
      ['NEW', 'DNAT', 'ESTABLISHED', 'RELATED,DNAT'].filter((state) =>
        isDropped([...before, `filter FORWARD -m conntrack --ctstate ${state} -j DROP`]),
      );
    expect(seen()).toEqual(['NEW']);
    expect(seen(`nat PREROUTING ${DNAT}`)).toEqual(['NEW', 'DNAT', 'RELATED,DNAT']);
    const others = 'filter FORWARD -m conntrack ! --ctstate RELATED,DNAT -j DROP';
    expect(isDropped([`nat PREROUTING ${DNAT}`, others])).toBe(false);
  });

  test('the raw table comes before connection tracking', () => {
    const inRaw = (state: string): boolean =>
      isDropped([`raw PREROUTING -m conntrack --ctstate ${state} -j DROP`]);
    expect([inRaw('NEW'), inRaw('INVALID')]).toEqual([false, true]);
    const untracked = 'filter FORWARD -m conntrack --ctstate UNTRACKED -j DROP';
    expect(isDropped(['raw PREROUTING -j NOTRACK', untracked])).toBe(true);
  });

  test('marks are set, flipped and asked for bit by bit', () => {
    const rules = ['--or-mark 0x80000000', '--set-xmark 0x6/0x6', '--xor-mark 0x3'];
    const isMarked = (match: string): boolean =>
      isDropped([
        ...rules.map((rule) => `nat PREROUTING -j MARK ${rule}`),
        `filter FORWARD -m mark ${match} -j DROP`,
      ]);
    const matches = [
      '--mark 0x80000005',
      '--mark 0x80000000/0x80000000',
      '! --mark 0x2/0x2',
      '--mark 0x2/0x2',
    ];
    expect(matches.map(isMarked)).toEqual([true, true, true, false]);
  });

  test('interfaces of a packet that the node sends to itself', () => {
    expect(isDropped(['filter INPUT -i lo -j DROP'], TO_SELF)).toBe(true);
    expect(isDropped(['filter OUTPUT -j A', 'filter A -i lo -j DROP'], TO_SELF)).toBe(false);
    expect(isDropped(['filter OUTPUT -o lo -j DROP'], TO_SELF)).toBe(true);
    expect(isDropped(['filter OUTPUT -o eth0 -j DROP'], TO_SELF)).toBe(false);
  });
});

describe('what cannot be evaluated is noted with its rule, and taken as no match', () => {
  test.each([
    '-o eth0 -j DROP',
    '-p tcp -m tcp --sport 1024:2048 -j DROP',
    '-m limit --limit 3/sec -j DROP',
    '-m set ! --match-set blocked src -j DROP',
    '-m rpfilter --invert -j DROP',
    '-m owner --uid-owner 0 -j DROP',
    '-m addrtype --dst-type BROADCAST -j DROP',
    '-m physdev --physdev-in veth0 -j DROP',
    '-m connmark --mark 0x1 -j DROP',
    '-s 10.0.0.0/255.0.255.0 -j DROP',
  ])('%s', (rule) => {
    const result = besideOurs([`filter FORWARD ${rule}`]);
    expect(kinds(result)).toEqual(['10.0.0.7:8080']);
    expect(result.notes).toEqual([expect.stringContaining(`(in: ${rule})`)]);
  });

  test('targets', () => {
    const targets = ['-j NFQUEUE --queue-num 0', '-j CONNMARK --restore-mark', '-j TPROXY --on-port 1'];
    const result = besideOurs(targets.map((target) => `mangle PREROUTING ${target}`));
    expect(result.notes).toEqual(targets.map((target) => `not evaluated, taken as passing: ${target}`));
    expect(kinds(result)).toEqual(['10.0.0.7:8080']);
  });

  test('another match that says no decides', () => {
    expect(run(['filter FORWARD -p udp -m limit --limit 3/sec -j DROP']).notes).toEqual([]);
    expect(run(['filter FORWARD -m limit --limit 3/sec -d 10.0.0.8 -j DROP']).notes).toEqual([]);
  });
});

describe('random choice', () => {
  test('both ways go on when the chosen chain returns', () => {
    const { outcomes } = run([
      'nat PREROUTING -m statistic --mode random --probability 0.25 -j MARK --or-mark 0x1',
      `nat PREROUTING -m mark --mark 0x1/0x1 ${DNAT}`,
      'nat PREROUTING -m statistic --mode random --probability 0.5 -j DNAT --to-destination 9.9.9.9',
    ]);
    expect(outcomes.map((outcome) => `${outcome.probability} ${brief(outcome)}`).sort()).toEqual([
      '0.25 10.0.1.1:8080',
      '0.375 9.9.9.9:80',
      '0.375 pass',
    ]);
  });

  test('probabilities add up to 1 whatever the rules', () => {
    const match = fc.constantFrom(
      '',
      '-m statistic --mode random --probability 0.3333333333 ',
      '-m statistic --mode random --probability 0.0000099999 ',
      '-m mark --mark 0x1/0x1 ',
      '-m mark ! --mark 0x1/0x1 ',
      '-p udp ',
      '-s 10.0.0.0/8 ',
    );
    const last = ['', '-j ACCEPT', '-j RETURN', '-j MARK --xor-mark 0x1', '-j DNAT --to-destination 9.9.9.9'];
    const rules = (chain: string, ...jumps: readonly string[]) =>
      fc.array(
        fc
          .tuple(match, fc.constantFrom(...last, ...jumps))
          .map(([left, right]) => `nat ${chain} ${left}${right}`),
        { maxLength: 6 },
      );
    fc.assert(
      fc.property(rules('PREROUTING', '-j B', '-j C'), rules('B', '-j C'), rules('C'), (a, b, c) => {
        const lines = [...a, ...b, ...c];
        const result = run(lines);
        expect(sumOf(result)).toBeCloseTo(1, 9);
      }),
    );
  });
});
