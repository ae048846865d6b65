/** Transactions, and what the kernel says to each: for the one in memory and the real one alike. */
import type {
  Element,
  ElementKey,
  RuleSpec,
  Statement,
  TableOperation,
  TableSet,
  TableTransaction,
} from '../../../../src/modes/nftables/rules/table.ts';
import { cidr, ip } from '../../../plan/given.ts';

interface KernelCase {
  readonly name: string;
  /** All but the last must be taken. */
  readonly transactions: readonly TableTransaction[];
  /** `done`, or the name that the last one is refused by. */
  readonly outcome: string;
  /** Where the real kernel has no objection although it should have one: the one in memory has. */
  readonly really?: 'done';
}

const MAP: TableSet = { name: 'map', key: ['address', 'protocol', 'port'], data: 'endpoint', counts: true };
const SETS: readonly TableSet[] = [
  { name: 'plain', key: ['address'] },
  MAP,
  { ...MAP, name: 'drawn', key: [...MAP.key, { drawnOf: 2 }] },
  { name: 'verdicts', key: ['protocol', 'port'], data: 'verdict' },
  { name: 'allowed', key: ['address', 'protocol', 'port', 'address'], ranges: true },
  { name: 'cidrs', key: ['address'], ranges: true },
  { name: 'affinity-tcp', key: ['address', 'address', 'port'], data: 'endpoint', dynamicSize: 1000 },
];
const K: ElementKey = { address: ip('10.96.0.1'), protocol: 'TCP', port: 80 };
const ENDPOINTS = {
  A: { ip: ip('10.244.0.1'), port: 8080 },
  B: { ip: ip('10.244.0.2'), port: 8080 },
} as const;

const STATEMENTS: Readonly<Record<string, Statement>> = {
  drop: { kind: 'drop' },
  return: { kind: 'return' },
  reject: { kind: 'reject' },
  masquerade: { kind: 'masquerade' },
  'in plain': { kind: 'inSet', key: ['destination'], set: 'plain', not: false },
  dnat: { kind: 'dnatByMap', key: ['destination', 'protocol', 'port'], map: 'map' },
  learn: {
    kind: 'learn',
    key: ['originalSource', 'originalDestination', 'originalPort'],
    map: 'affinity-tcp',
    seconds: 60,
  },
};

/** Of a set with other keys: `plain like map`. */
function setOf(text: string): TableSet {
  const [name = '', like = name] = text.split(' like ');
  const known = SETS.find((set) => set.name === like) ?? { key: ['address'] };
  return { ...known, name };
}

function ruleOf(text: string): RuleSpec {
  return {
    statements: text.split(', ').map((each): Statement => {
      const statement =
        STATEMENTS[each] ?? (each.startsWith('jump ') && { kind: 'jump', chain: each.slice(5) });
      if (!statement) throw new Error(`no statement ${each}`);
      return statement;
    }),
  };
}

/** `10.0.0.1`, `10.0.0.0/8`, of an affinity map `A 20/60`, which has 20 of 60 seconds left, of a map `A`, of a drawn number `0 B`, of a verdict `-> chain`. */
function elementOf({ name, ranges, data }: TableSet, text: string): Element {
  const [word = '', second] = text.split(' ');
  const value = ENDPOINTS[(second ?? word) as keyof typeof ENDPOINTS];
  const endpoint = value && { endpoint: value };
  if (name === 'affinity-tcp') {
    const [leftMs = 0, timeoutMs = 0] = (second ?? '').split('/').map((seconds) => Number(seconds) * 1000);
    const key = { address: ip('10.0.0.1'), secondAddress: ip('10.96.0.1'), port: 80 };
    return { set: name, key, endpoint: ENDPOINTS[word as 'A'], lifetime: { leftMs, timeoutMs } };
  }
  if (ranges) return { set: name, key: { ...(name === 'allowed' && K), range: cidr(word) } };
  if (data === undefined) return { set: name, key: { address: ip(word) }, ...endpoint };
  if (data === 'endpoint')
    return { set: name, key: second === undefined ? K : { ...K, index: Number(word) }, ...endpoint };
  const key = { protocol: 'TCP', port: 80 } as const;
  return { set: name, key, ...(second !== undefined && { chain: second }) };
}

const HOOKED = /^(\w+) (prerouting|postrouting|input) (-?\d+)$/;

function operationOf(text: string): TableOperation {
  const [, verb = '', noun = '', rest = ''] = /^(add|delete|flush) (\S+) ?(.*)$/.exec(text) ?? [];
  const isAdded = verb === 'add';
  if (noun === 'table') {
    if (!isAdded) return { kind: 'deleteTable' };
    const flags = rest.split(' ');
    return {
      kind: 'addTable',
      ...(flags.includes('owned') && { isOwned: true }),
      ...(flags.includes('persistent') && { isPersistent: true }),
    };
  }
  if (noun === 'set')
    return isAdded ? { kind: 'addSet', set: setOf(rest) } : { kind: 'deleteSet', set: rest };
  if (noun === 'rule') {
    const [chain = ''] = rest.split(' ');
    const rule = ruleOf(rest.slice(chain.length + 1));
    return { kind: 'addRule', chain, rule };
  }
  if (noun === 'chain') {
    if (verb !== 'add') return { kind: verb === 'flush' ? 'flushChain' : 'deleteChain', chain: rest };
    const [, chain = rest, point, priority] = HOOKED.exec(rest) ?? [];
    const hook = { point: point as 'prerouting', priority: Number(priority) };
    return { kind: 'addChain', chain, ...(point !== undefined && { hook }) };
  }
  const set = setOf(noun);
  const elements = rest.split(', ').map((each) => elementOf(set, each));
  return { kind: isAdded ? 'addElements' : 'deleteElements', set, elements };
}

const operationsOf = (text: string): TableTransaction => text.split('; ').map(operationOf);

const LONG = 'x'.repeat(256);
const BASE = 'add chain base prerouting -100';
const LAST = 'add chain base postrouting 100';
const ASKED = 'add set plain; add chain a; add rule a in plain, drop';
const LED = 'add set verdicts; add chain a; add verdicts -> a';

/** In the table, one transaction after another. */
const CASES: readonly (readonly [name: string, outcome: string, ...transactions: string[]])[] = [
  ['a table twice', 'done', 'add table'],
  ['a set that is there and alike', 'done', 'add set plain', 'add set plain'],
  ['a set that is there and has other keys', 'EEXIST', 'add set plain', 'add set plain like map'],
  ['a set goes', 'done', 'add set plain; add plain 10.0.0.1', 'delete set plain'],
  ['a set that is not there goes', 'ENOENT', 'delete set plain'],
  ['a set whose name is too long', 'ERANGE', `add set ${LONG}`],
  ['a chain whose name is too long', 'ERANGE', `add chain ${LONG}`],
  ['a set that a rule asks goes', 'EBUSY', ASKED, 'delete set plain'],
  ['a set goes with the rules that asked it', 'done', ASKED, 'flush chain a; delete set plain'],
  [
    'a set goes and comes back as another',
    'done',
    ASKED,
    'flush chain a; delete set plain; add set plain like map',
  ],
  ['a rule of no chain', 'ENOENT', 'add rule a drop'],
  ['a rule that asks no set', 'ENOENT', 'add chain a; add rule a in plain'],
  ['a rule that jumps nowhere', 'ENOENT', 'add chain a; add rule a jump b'],
  ['a jump to a base chain', 'ENOTSUP', `${BASE}; add chain a; add rule a jump base`],
  [
    'a loop under a hook',
    'EMLINK',
    `${BASE}; add chain a; add chain b; add rule a jump b; add rule b jump a; add rule base jump a`,
  ],
  ['a chain twice', 'done', 'add chain a', 'add chain a'],
  ['a base chain twice', 'done', BASE, BASE],
  ['a base chain at another hook', 'ENOTSUP', BASE, 'add chain base postrouting -100'],
  ['a base chain at another priority', 'ENOTSUP', BASE, 'add chain base prerouting 0'],
  ['a hook for a plain chain', 'ENOTSUP', 'add chain base', BASE],
  [
    'a base chain goes and comes back elsewhere',
    'done',
    `${BASE}; add rule base drop`,
    'flush chain base; delete chain base; add chain base prerouting 5',
  ],
  ['a chain that is not there goes', 'ENOENT', 'delete chain a'],
  ['a chain that is not there is emptied', 'ENOENT', 'flush chain a'],
  ['a chain goes with its rules', 'done', 'add chain a; add rule a drop', 'delete chain a'],
  [
    'a chain that a rule jumps to goes',
    'EBUSY',
    'add chain a; add chain b; add rule a jump b',
    'delete chain b',
  ],
  ['a chain that an element leads to goes', 'EBUSY', LED, 'delete chain a'],
  ['a chain goes with the elements that led to it', 'done', LED, 'delete verdicts key; delete chain a'],
  ['a chain goes with the map that led to it', 'done', LED, 'delete set verdicts; delete chain a'],
  ['an element that leads nowhere', 'ENOENT', 'add set verdicts; add verdicts -> a'],
  ['an element that leads to a base chain', 'ENOTSUP', `add set verdicts; ${BASE}; add verdicts -> base`],
  ['an element of no set', 'ENOENT', 'add plain 10.0.0.1'],
  ['an element twice', 'done', 'add set plain; add plain 10.0.0.1', 'add plain 10.0.0.1'],
  ['an element twice at once', 'done', 'add set plain; add plain 10.0.0.1, 10.0.0.1'],
  ['an element with the same value', 'done', 'add set map; add map A', 'add map A'],
  ['an element with another value', 'EEXIST', 'add set map; add map A', 'add map B'],
  [
    'an element that goes and comes with another value',
    'done',
    'add set map; add map A',
    'delete map key; add map B',
  ],
  ['an element that is not there goes', 'ENOENT', 'add set plain', 'delete plain 10.0.0.1'],
  [
    'an element goes twice',
    'ENOENT',
    'add set plain; add plain 10.0.0.1',
    'delete plain 10.0.0.1; delete plain 10.0.0.1',
  ],
  ['an address of the other family', 'EINVAL', 'add set plain; add plain fd00::1'],
  ['an element of a map without a value', 'EINVAL', 'add set map; add map key'],
  ['an element of a set with a value', 'EINVAL', 'add set plain; add plain 10.0.0.1 A'],
  ['a drawn number more', 'done', 'add set drawn; add drawn 0 A', 'add drawn 1 B'],
  ['a range beside another', 'done', 'add set allowed; add allowed 10.0.0.0/24, 10.0.1.0/24'],
  ['a range within another', 'EEXIST', 'add set allowed; add allowed 10.0.0.0/8', 'add allowed 10.0.0.0/24'],
  ['a range twice', 'done', 'add set allowed; add allowed 10.0.0.0/8', 'add allowed 10.0.0.0/8'],
  [
    'a range in place of one around it',
    'done',
    'add set allowed; add allowed 10.0.0.0/8',
    'delete allowed 10.0.0.0/8; add allowed 10.0.0.0/24',
  ],
  [
    'a range in place of one within it',
    'done',
    'add set allowed; add allowed 10.0.0.0/24',
    'delete allowed 10.0.0.0/24; add allowed 10.0.0.0/8',
  ],
  ['everybody is allowed', 'done', 'add set allowed; add allowed 0.0.0.0/0'],
  ['networks side by side', 'done', 'add set cidrs; add cidrs 10.96.0.0/16, 10.97.0.0/16'],
  ['a network of all addresses', 'done', 'add set cidrs; add cidrs 0.0.0.0/0'],
  ['a network within another', 'EEXIST', 'add set cidrs; add cidrs 10.96.0.0/12', 'add cidrs 10.97.0.0/16'],
  [
    'a network in place of one around it',
    'done',
    'add set cidrs; add cidrs 10.96.0.0/12',
    'delete cidrs 10.96.0.0/12; add cidrs 10.96.0.0/16',
  ],
  [
    'one of two networks side by side goes',
    'done',
    'add set cidrs; add cidrs 10.96.0.0/16, 10.97.0.0/16',
    'delete cidrs 10.96.0.0/16',
  ],
  ['dnat where packets come in', 'done', `add set map; ${BASE}; add rule base dnat`],
  ['dnat where packets go out', 'ENOTSUP', `add set map; ${LAST}; add rule base dnat`],
  ['masquerade where packets come in', 'ENOTSUP', `${BASE}; add rule base masquerade`],
  ['masquerade where packets go out', 'done', `${LAST}; add rule base masquerade`],
  [
    'dnat behind a jump where packets go out',
    'ENOTSUP',
    `add set map; add chain a; add rule a dnat; ${LAST}; add rule base jump a`,
  ],
  ['refusal where packets come in', 'done', `${BASE}; add rule base reject`],
  ['refusal where packets go out', 'ENOTSUP', `${LAST}; add rule base reject`],
  ['clients are remembered', 'done', 'add set affinity-tcp; add chain a; add rule a learn'],
  ['a client that was remembered before', 'done', 'add set affinity-tcp; add affinity-tcp A 20/60'],
  ['a client with more than all its time', 'ERANGE', 'add set affinity-tcp; add affinity-tcp A 70/60'],
  [
    'a client that is remembered already',
    'EEXIST',
    'add set affinity-tcp; add affinity-tcp A 20/60',
    'add affinity-tcp B 20/60',
  ],
];

/** The real kernel looks at both ends of a new range, and takes a range away as a whole. */
const LENIENT: typeof CASES = [
  ['a range around another', 'EEXIST', 'add set allowed; add allowed 10.1.2.3/32', 'add allowed 10.0.0.0/8'],
  [
    'a part of a range goes',
    'ENOENT',
    'add set allowed; add allowed 10.0.0.0/8',
    'delete allowed 10.0.0.0/24',
  ],
];

const TABLE: TableTransaction = [{ kind: 'addTable' }];

const casesOf = (cases: typeof CASES): readonly KernelCase[] =>
  cases.map(([name, outcome, ...texts]) => ({
    name,
    outcome,
    transactions: [TABLE, ...texts.map(operationsOf)],
  }));

export const KERNEL_CASES: readonly KernelCase[] = [
  { name: 'a table that is not there goes', outcome: 'ENOENT', transactions: [[{ kind: 'deleteTable' }]] },
  { name: 'a set of no table', outcome: 'ENOENT', transactions: [operationsOf('add set plain')] },
  ...casesOf(CASES),
  {
    name: 'a table that is owned and persistent',
    outcome: 'done',
    transactions: [operationsOf('add table owned persistent; add set plain'), operationsOf('delete table')],
  },
  {
    name: 'a table becomes owned',
    outcome: 'ENOTSUP',
    transactions: [TABLE, operationsOf('add table owned persistent')],
  },
  ...casesOf(LENIENT).map((each) => ({ ...each, really: 'done' as const })),
];
