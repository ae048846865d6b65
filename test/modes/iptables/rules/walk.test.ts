import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseSave } from '../../../../src/modes/iptables/rules/parse.ts';
import { type WalkOutcome, type WalkResult } from '../../../../src/modes/walk.ts';
import type { IptablesPacket, IptablesWalkOptions } from '../../../../src/modes/iptables/rules/walk.ts';
import { walkIptables } from './textWalk.ts';
import { ip } from './rules.ts';

const HOST = { addresses: [ip('192.0.2.1'), ip('2001:db8::1')] };
const FROM_POD: IptablesPacket = {
  source: ip('10.0.0.9'),
  destination: ip('172.30.0.1'),
  protocol: 'TCP',
  port: 80,
  inInterface: 'cni0',
};
const FROM_NODE: IptablesPacket = { ...FROM_POD, source: ip('192.0.2.1'), inInterface: undefined };

/** Lines of nat, or of filter when they follow `filter:`; chains are made as they are named. */
function run(
  lines: readonly string[],
  packet: IptablesPacket = FROM_POD,
  options: IptablesWalkOptions = {},
): WalkResult<string> {
  const nat = lines.filter((line) => !line.startsWith('filter: '));
  const filter = lines
    .filter((line) => line.startsWith('filter: '))
    .map((line) => line.slice('filter: '.length));
  return walkIptables(parseSave(tableText('nat', nat) + tableText('filter', filter)), packet, HOST, options);
}

function tableText(name: string, lines: readonly string[]): string {
  const rules = lines.filter((line) => !line.startsWith(':'));
  const policies = lines.filter((line) => line.startsWith(':'));
  const declared = new Set(policies.map((line) => line.slice(1).split(' ')[0]));
  const chains = new Set(
    rules.map((line) => line.split(' ')[0] ?? '').filter((chain) => !declared.has(chain)),
  );
  return [
    `*${name}`,
    ...policies,
    ...[...chains].map((chain) => `:${chain} - [0:0]`),
    ...rules.map((line) => `-A ${line}`),
    'COMMIT',
    '',
  ].join('\n');
}

function brief(outcome: WalkOutcome<string>): string {
  switch (outcome.kind) {
    case 'forward':
      return `${outcome.to}:${outcome.port}${outcome.masqueraded ? ' masq' : ''}`;
    case 'pass':
      return outcome.masqueraded ? 'pass masq' : 'pass';
    default:
      return outcome.kind;
  }
}

function kinds(result: WalkResult<string>): string[] {
  return result.outcomes.map(brief);
}

const DNAT = '-p tcp -j DNAT --to-destination 10.0.1.1:8080';

describe('which hooks a packet passes', () => {
  const hooks = [
    ...['PREROUTING', 'OUTPUT', 'POSTROUTING'].map((chain) => `${chain} -m comment --comment seen`),
    ...['INPUT', 'FORWARD', 'OUTPUT'].map((chain) => `filter: ${chain} -m comment --comment seen`),
  ];
  const table: readonly (readonly [string, IptablesPacket, readonly string[]])[] = [
    ['from a pod, onward', FROM_POD, ['nat PREROUTING', 'filter FORWARD', 'nat POSTROUTING']],
    [
      'from a pod, to the node',
      { ...FROM_POD, destination: ip('192.0.2.1') },
      ['nat PREROUTING', 'filter INPUT'],
    ],
    ['from the node, onward', FROM_NODE, ['nat OUTPUT', 'filter OUTPUT', 'nat POSTROUTING']],
    [
      'from the node, to itself',
      { ...FROM_NODE, destination: ip('127.0.0.1') },
      ['nat OUTPUT', 'filter OUTPUT', 'nat POSTROUTING', 'filter INPUT'],
    ],
    [
      'from the node, to itself, IPv6',
      { ...FROM_NODE, source: ip('::1'), destination: ip('2001:db8::1') },
      ['nat OUTPUT', 'filter OUTPUT', 'nat POSTROUTING', 'filter INPUT'],
    ],
  ];
  test.each(table)('%s', (_, packet, expected) => {
    const [outcome] = run(hooks, packet).outcomes;
    expect(outcome?.path.map((step) => `${step.table} ${step.chain}`)).toEqual(expected);
  });

  test('the rewritten destination decides between INPUT and FORWARD', () => {
    const rules = [`PREROUTING ${DNAT}`, 'filter: INPUT -j DROP', 'filter: FORWARD -j REJECT'];
    expect(kinds(run(rules, { ...FROM_POD, destination: ip('192.0.2.1') }))).toEqual(['reject']);
    const inward = ['PREROUTING -p tcp -j DNAT --to-destination 192.0.2.1', ...rules.slice(1)];
    expect(kinds(run(inward))).toEqual(['drop']);
  });

  test('no tables at all', () => {
    expect(walkIptables(new Map(), FROM_POD, HOST)).toMatchObject({
      outcomes: [{ kind: 'pass', masqueraded: false, probability: 1, path: [], lookups: 0, learned: [] }],
      notes: [],
    });
  });
});

describe('chains', () => {
  const cases: readonly (readonly [string, readonly string[], string])[] = [
    [
      'a chain that ends returns',
      ['PREROUTING -j A', `PREROUTING ${DNAT}`, 'A -m comment --comment x'],
      '10.0.1.1:8080',
    ],
    [
      'RETURN leaves one chain only',
      ['PREROUTING -j A', 'A -j B', `A ${DNAT}`, 'B -j RETURN', 'B -j ACCEPT'],
      '10.0.1.1:8080',
    ],
    ['ACCEPT ends the hook', ['PREROUTING -j A', `PREROUTING ${DNAT}`, 'A -j ACCEPT'], 'pass'],
    [
      'RETURN from a built-in chain is its policy',
      ['filter: :FORWARD DROP [0:0]', 'filter: FORWARD -j RETURN'],
      'drop',
    ],
    ['the policy', ['filter: :FORWARD DROP [0:0]'], 'drop'],
    ['ACCEPT before the policy', ['filter: :FORWARD DROP [0:0]', 'filter: FORWARD -j ACCEPT'], 'pass'],
    [
      'the first DNAT counts',
      [`PREROUTING ${DNAT}`, 'PREROUTING -p tcp -j DNAT --to-destination 9.9.9.9'],
      '10.0.1.1:8080',
    ],
    ['DNAT without a port keeps it', ['PREROUTING -j DNAT --to-destination 9.9.9.9'], '9.9.9.9:80'],
    ['DNAT for IPv6', ['PREROUTING -p tcp -j DNAT --to-destination [fd00::9]:81'], 'fd00::9:81'],
    ['DNAT for IPv6 without a port', ['PREROUTING -j DNAT --to-destination fd00::9'], 'fd00::9:80'],
    [
      'a goto does not come back',
      ['PREROUTING -j A', 'A -g B', 'A -j ACCEPT', 'B -m comment --comment x', `PREROUTING ${DNAT}`],
      '10.0.1.1:8080',
    ],
    ['MASQUERADE', ['POSTROUTING -j MASQUERADE'], 'pass masq'],
  ];
  test.each(cases)('%s', (_, rules, expected) => expect(kinds(run(rules))).toEqual([expected]));

  test('a loop is an error', () => {
    expect(() => run(['PREROUTING -j A', 'A -j A'])).toThrow(/loop/);
  });

  test('what cannot be evaluated is noted', () => {
    const result = run([
      'PREROUTING -m set --match-set s dst -j ACCEPT',
      'PREROUTING -j NFQUEUE --queue-num 3',
      'PREROUTING -j MISSING',
    ]);
    expect(kinds(result)).toEqual(['pass']);
    expect(result.notes).toEqual([
      'not evaluated, taken as no match: -m set --match-set s dst (in: -m set --match-set s dst -j ACCEPT)',
      'not evaluated, taken as passing: -j NFQUEUE --queue-num 3',
      'table nat has no chain MISSING',
    ]);
  });

  test('missing chains of a hundred endpoints are a hundred ways, and no more', () => {
    const rules = balanced(100).filter((line) => !line.startsWith('SEP-'));
    const result = run(rules);
    expect(new Set(kinds(result))).toEqual(new Set(['pass']));
    expect(result.outcomes).toHaveLength(100);
    expect(result.notes).toHaveLength(100);
  });

  test('choices that come back and double the ways have a limit', () => {
    const choices = Array.from(
      { length: 30 },
      () => 'PREROUTING -m statistic --mode random --probability 0.5 -j X',
    );
    const result = run([...choices, 'X -m comment --comment x'], FROM_POD, { record: false });
    expect(result.notes).toEqual(['not evaluated: what comes after 200000 rules']);
    expect(result.outcomes.reduce((sum, { probability }) => sum + probability, 0)).toBeCloseTo(1, 9);
  });
});

describe('matches', () => {
  const at = (change: Partial<IptablesPacket>): IptablesPacket => ({ ...FROM_POD, ...change });
  const cases: readonly (readonly [match: string, yes: IptablesPacket, no: IptablesPacket])[] = [
    ['-s 10.0.0.0/8', FROM_POD, FROM_NODE],
    ['! -s 10.0.0.0/8', at({ source: ip('11.0.0.1') }), FROM_POD],
    ['-d 172.30.0.1/32', FROM_POD, at({ destination: ip('172.30.0.2') })],
    ['-s fd00::/64', at({ source: ip('fd00::7') }), at({ source: ip('fd01::7') })],
    ['-p udp', at({ protocol: 'UDP' }), FROM_POD],
    ['-m sctp -p sctp --dport 80', at({ protocol: 'SCTP' }), at({ protocol: 'SCTP', port: 81 })],
    ['-i cni+', FROM_POD, at({ inInterface: 'eth0' })],
    ['! -i cni0', at({ inInterface: 'eth0' }), FROM_POD],
    ['-m addrtype --src-type LOCAL', at({ source: ip('127.9.9.9') }), FROM_POD],
    ['-m addrtype ! --src-type LOCAL', FROM_POD, at({ source: ip('::1') })],
    ['-m addrtype --dst-type LOCAL', at({ destination: ip('192.0.2.1') }), FROM_POD],
    ['-m physdev --physdev-is-in', at({ viaBridge: true }), FROM_POD],
    ['-m physdev ! --physdev-is-in', FROM_POD, at({ viaBridge: true })],
  ];
  test.each(cases)('%s', (match, yes, no) => {
    const matched = (packet: IptablesPacket): boolean =>
      run([`PREROUTING ${match}`], packet).outcomes[0]?.path.length === 1;
    expect([matched(yes), matched(no)]).toEqual([true, false]);
  });

  test('conntrack: new, and rewritten once it was', () => {
    const states = ['NEW', 'DNAT', 'ESTABLISHED', 'RELATED,DNAT'];
    const seen = (before: readonly string[]): string[] =>
      states.filter((state) =>
        kinds(run([...before, `filter: FORWARD -m conntrack --ctstate ${state} -j DROP`])).includes('drop'),
      );
    expect(seen([])).toEqual(['NEW']);
    expect(seen([`PREROUTING ${DNAT}`])).toEqual(['NEW', 'DNAT', 'RELATED,DNAT']);
    expect(
      kinds(run([`PREROUTING ${DNAT}`, 'filter: FORWARD -m conntrack ! --ctstate RELATED,DNAT -j DROP'])),
    ).toEqual(['10.0.1.1:8080']);
  });

  test('marks are set, flipped and asked for bit by bit', () => {
    const rules = [
      'PREROUTING -j MARK --or-mark 0x80000000',
      'PREROUTING -j MARK --set-xmark 0x6/0x6',
      'PREROUTING -j MARK --xor-mark 0x3',
    ];
    const marked = (match: string): boolean =>
      kinds(run([...rules, `filter: FORWARD -m mark ${match} -j DROP`])).includes('drop');
    expect(marked('--mark 0x80000005')).toBe(true);
    expect(marked('--mark 0x80000000/0x80000000')).toBe(true);
    expect(marked('! --mark 0x2/0x2')).toBe(true);
    expect(marked('--mark 0x2/0x2')).toBe(false);
  });

  test('the interface of a packet that the node sends to itself', () => {
    const toSelf = { ...FROM_NODE, destination: ip('127.0.0.1') };
    expect(kinds(run(['filter: INPUT -i lo -j DROP'], toSelf))).toEqual(['drop']);
    expect(kinds(run(['filter: OUTPUT -j A', 'filter: A -i lo -j DROP'], toSelf))).toEqual(['pass']);
  });
});

/** The rules of one service with n endpoints, as kube-proxy writes them. */
function balanced(n: number): string[] {
  const rules = ['PREROUTING -d 172.30.0.1 -j SVC'];
  for (let index = 0; index < n; index++) {
    const rest = n - index;
    const chance = rest === 1 ? '' : `-m statistic --mode random --probability ${(1 / rest).toFixed(10)} `;
    rules.push(`SVC ${chance}-j SEP-${index}`);
    rules.push(`SEP-${index} -p tcp -j DNAT --to-destination 10.1.${index >> 8}.${index & 255}:80`);
  }
  return rules;
}

describe('random choice', () => {
  test('n endpoints get 1/n each', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 200 }), (n) => {
        const { outcomes } = run(balanced(n));
        expect(new Set(outcomes.map(brief)).size).toBe(n);
        for (const { probability } of outcomes) expect(probability).toBeCloseTo(1 / n, 7);
        expect(outcomes.reduce((sum, { probability }) => sum + probability, 0)).toBeCloseTo(1, 12);
      }),
      { numRuns: 30 },
    );
  });

  test('both ways go on when the chosen chain returns', () => {
    const { outcomes } = run([
      'PREROUTING -m statistic --mode random --probability 0.25 -j MARK --or-mark 0x1',
      `PREROUTING -m mark --mark 0x1/0x1 ${DNAT}`,
      'PREROUTING -m statistic --mode random --probability 0.5 -j DNAT --to-destination 9.9.9.9',
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
    const goal = fc.constantFrom(
      '',
      '-j ACCEPT',
      '-j RETURN',
      '-j B',
      '-j C',
      '-j MARK --xor-mark 0x1',
      '-j DNAT --to-destination 9.9.9.9',
    );
    const rules = (goals: typeof goal) => fc.array(fc.tuple(match, goals), { maxLength: 6 });
    const last = goal.filter((text) => text !== '-j B' && text !== '-j C');
    fc.assert(
      fc.property(rules(goal), rules(goal.filter((text) => text !== '-j B')), rules(last), (a, b, c) => {
        const lines = [a, b, c].flatMap((list, index) =>
          list.map(([left, right]) => `${['PREROUTING', 'B', 'C'][index] ?? ''} ${left}${right}`),
        );
        const result = run(lines);
        expect(result.outcomes.reduce((sum, { probability }) => sum + probability, 0)).toBeCloseTo(1, 9);
        const unrecorded = run(lines, FROM_POD, { record: false });
        expect(unrecorded.outcomes).toEqual(result.outcomes.map((outcome) => ({ ...outcome, path: [] })));
      }),
    );
  });
});

describe('affinity', () => {
  const rules = [
    'PREROUTING -m recent --name ONE --rcheck --seconds 60 --reap -j ONE',
    'PREROUTING -m recent --name TWO --rcheck --seconds 60 --reap -j TWO',
    'PREROUTING -m statistic --mode random --probability 0.5000000000 -j ONE',
    'PREROUTING -j TWO',
    'ONE -m recent --name ONE --set -m tcp -p tcp -j DNAT --to-destination 10.1.0.1:80',
    'TWO -m recent --name TWO --set -m tcp -p tcp -j DNAT --to-destination 10.1.0.2:80',
  ];

  test('a new client is balanced, and put on the list of its endpoint', () => {
    const { outcomes } = run(rules);
    expect(outcomes.map((outcome) => [brief(outcome), outcome.probability, outcome.learned])).toEqual([
      ['10.1.0.1:80', 0.5, ['ONE']],
      ['10.1.0.2:80', 0.5, ['TWO']],
    ]);
  });

  test('a known client goes where it went', () => {
    const { outcomes } = run(rules, FROM_POD, { affinity: (list) => list === 'TWO' });
    expect(outcomes.map((outcome) => [brief(outcome), outcome.probability])).toEqual([['10.1.0.2:80', 1]]);
  });
});
