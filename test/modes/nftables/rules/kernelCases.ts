/** Transactions, and what the kernel says to each: for the one in memory and the real one alike. */
import type {
  Element,
  ElementKey,
  RuleSpec,
  TableOperation,
  TableSet,
  TableTransaction,
} from '../../../../src/modes/nftables/rules/table.ts';
import { cidr, ip } from '../../../plan/given.ts';

export interface KernelCase {
  readonly name: string;
  /** All but the last must be taken. */
  readonly transactions: readonly TableTransaction[];
  /** `done`, or the name that the last one is refused by. */
  readonly outcome: string;
  /** Where the real kernel has no objection although it should have one: the one in memory has. */
  readonly really?: 'done';
}

const PLAIN: TableSet = { name: 'plain', key: ['address'] };
const MAP: TableSet = { name: 'map', key: ['address', 'protocol', 'port'], data: 'endpoint', counts: true };
const DRAWN: TableSet = { ...MAP, name: 'drawn', key: [...MAP.key, { drawnOf: 2 }] };
const VERDICTS: TableSet = { name: 'verdicts', key: ['protocol', 'port'], data: 'verdict' };
const ALLOWED: TableSet = {
  name: 'allowed',
  key: ['address', 'protocol', 'port', 'address'],
  ranges: true,
};
const CIDRS: TableSet = { name: 'cidrs', key: ['address'], ranges: true };
const AFFINITY: TableSet = {
  name: 'affinity-tcp',
  key: ['address', 'address', 'port'],
  data: 'endpoint',
  dynamicSize: 1000,
};

const TABLE: TableTransaction = [{ kind: 'addTable' }];
const K: ElementKey = { address: ip('10.96.0.1'), protocol: 'TCP', port: 80 };
const A = { ip: ip('10.244.0.1'), port: 8080 };
const B = { ip: ip('10.244.0.2'), port: 8080 };

const addSet = (set: TableSet): TableOperation => ({ kind: 'addSet', set });
const deleteSet = ({ name }: TableSet): TableOperation => ({ kind: 'deleteSet', set: name });
const addChain = (name: string): TableOperation => ({ kind: 'addChain', chain: name });
const addRule = (chain: string, ...statements: RuleSpec['statements']): TableOperation => ({
  kind: 'addRule',
  chain,
  rule: { statements },
});
const deleteRule = (chain: string, ...statements: RuleSpec['statements']): TableOperation => ({
  kind: 'deleteRule',
  chain,
  rule: { statements },
});
const elements = (
  kind: 'addElements' | 'deleteElements',
  set: TableSet,
  ...list: readonly Omit<Element, 'set'>[]
): TableOperation => ({ kind, set, elements: list.map((element) => ({ set: set.name, ...element })) });
const add = (set: TableSet, ...list: readonly Omit<Element, 'set'>[]): TableOperation =>
  elements('addElements', set, ...list);
const del = (set: TableSet, ...list: readonly Omit<Element, 'set'>[]): TableOperation =>
  elements('deleteElements', set, ...list);

const host = (text: string): Omit<Element, 'set'> => ({ key: { address: ip(text) } });
const allowed = (range: string): Omit<Element, 'set'> => ({ key: { ...K, range: cidr(range) } });
const network = (range: string): Omit<Element, 'set'> => ({ key: { range: cidr(range) } });
const inPlain = { kind: 'inSet', key: ['destination'], set: 'plain', not: false } as const;
const jumpTo = (chain: string) => ({ kind: 'jump', chain }) as const;
const dnat = { kind: 'dnatByMap', key: ['destination', 'protocol', 'port'], map: 'map' } as const;
const hooked = (point: 'prerouting' | 'postrouting' | 'input', priority = -100): TableOperation => ({
  kind: 'addChain',
  chain: 'base',
  hook: { point, priority },
});

/** In one transaction, behind the table. */
const once = (name: string, outcome: string, ...operations: TableTransaction): KernelCase => ({
  name,
  outcome,
  transactions: [TABLE, operations],
});
const twice = (
  name: string,
  outcome: string,
  before: TableTransaction,
  after: TableTransaction,
): KernelCase => ({
  name,
  outcome,
  transactions: [TABLE, before, after],
});

/** It looks at both ends of the new range, and finds them free. From then on, which of the two goes is a matter of luck. */
const AROUND: KernelCase = {
  ...twice(
    'a range around another',
    'EEXIST',
    [addSet(ALLOWED), add(ALLOWED, allowed('10.1.2.3/32'))],
    [add(ALLOWED, allowed('10.0.0.0/8'))],
  ),
  really: 'done',
};
/** It takes away the whole. */
const PART: KernelCase = {
  ...twice(
    'a part of a range goes',
    'ENOENT',
    [addSet(ALLOWED), add(ALLOWED, allowed('10.0.0.0/8'))],
    [del(ALLOWED, allowed('10.0.0.0/24'))],
  ),
  really: 'done',
};

export const KERNEL_CASES: readonly KernelCase[] = [
  AROUND,
  PART,
  { name: 'a table twice', outcome: 'done', transactions: [TABLE, TABLE] },
  { name: 'a table that is not there goes', outcome: 'ENOENT', transactions: [[{ kind: 'deleteTable' }]] },
  { name: 'a set of no table', outcome: 'ENOENT', transactions: [[addSet(PLAIN)]] },
  twice('a set that is there and alike', 'done', [addSet(PLAIN)], [addSet(PLAIN)]),
  twice(
    'a set that is there and has other keys',
    'EEXIST',
    [addSet(PLAIN)],
    [addSet({ ...MAP, name: 'plain' })],
  ),
  twice('a set goes', 'done', [addSet(PLAIN), add(PLAIN, host('10.0.0.1'))], [deleteSet(PLAIN)]),
  once('a set that is not there goes', 'ENOENT', deleteSet(PLAIN)),
  once('a set whose name is too long', 'ERANGE', addSet({ ...PLAIN, name: 'x'.repeat(256) })),
  once('a chain whose name is too long', 'ERANGE', addChain('x'.repeat(256))),
  twice(
    'a set that a rule asks goes',
    'EBUSY',
    [addSet(PLAIN), addChain('a'), addRule('a', inPlain, { kind: 'drop' })],
    [deleteSet(PLAIN)],
  ),
  twice(
    'one rule of two goes, with the set that it asked',
    'done',
    [addSet(PLAIN), addChain('a'), addRule('a', { kind: 'return' }), addRule('a', inPlain, { kind: 'drop' })],
    [deleteRule('a', inPlain, { kind: 'drop' }), deleteSet(PLAIN)],
  ),
  twice(
    'a rule goes twice',
    'ENOENT',
    [addChain('a'), addRule('a', { kind: 'return' })],
    [deleteRule('a', { kind: 'return' }), deleteRule('a', { kind: 'return' })],
  ),
  once('a rule of no chain goes', 'ENOENT', deleteRule('a', { kind: 'return' })),
  twice(
    'a set goes with the rules that asked it',
    'done',
    [addSet(PLAIN), addChain('a'), addRule('a', inPlain, { kind: 'drop' })],
    [{ kind: 'flushChain', chain: 'a' }, deleteSet(PLAIN)],
  ),
  twice(
    'a set goes and comes back as another',
    'done',
    [addSet(PLAIN), addChain('a'), addRule('a', inPlain, { kind: 'drop' })],
    [{ kind: 'flushChain', chain: 'a' }, deleteSet(PLAIN), addSet({ ...MAP, name: 'plain' })],
  ),
  once('a rule of no chain', 'ENOENT', addRule('a', { kind: 'drop' })),
  once('a rule that asks no set', 'ENOENT', addChain('a'), addRule('a', inPlain)),
  once('a rule that jumps nowhere', 'ENOENT', addChain('a'), addRule('a', jumpTo('b'))),
  once(
    'a jump to a base chain',
    'ENOTSUP',
    hooked('prerouting'),
    addChain('a'),
    addRule('a', jumpTo('base')),
  ),
  once(
    'a loop under a hook',
    'EMLINK',
    hooked('prerouting'),
    addChain('a'),
    addChain('b'),
    addRule('a', jumpTo('b')),
    addRule('b', jumpTo('a')),
    addRule('base', jumpTo('a')),
  ),
  twice('a chain twice', 'done', [addChain('a')], [addChain('a')]),
  twice('a base chain twice', 'done', [hooked('prerouting')], [hooked('prerouting')]),
  twice('a base chain at another hook', 'ENOTSUP', [hooked('prerouting')], [hooked('postrouting')]),
  twice('a base chain at another priority', 'ENOTSUP', [hooked('prerouting')], [hooked('prerouting', 0)]),
  twice('a hook for a plain chain', 'ENOTSUP', [addChain('base')], [hooked('prerouting')]),
  twice(
    'a base chain goes and comes back elsewhere',
    'done',
    [hooked('prerouting'), addRule('base', { kind: 'drop' })],
    [{ kind: 'flushChain', chain: 'base' }, { kind: 'deleteChain', chain: 'base' }, hooked('prerouting', 5)],
  ),
  once('a chain that is not there goes', 'ENOENT', { kind: 'deleteChain', chain: 'a' }),
  once('a chain that is not there is emptied', 'ENOENT', { kind: 'flushChain', chain: 'a' }),
  twice(
    'a chain goes with its rules',
    'done',
    [addChain('a'), addRule('a', { kind: 'drop' })],
    [{ kind: 'deleteChain', chain: 'a' }],
  ),
  twice(
    'a chain that a rule jumps to goes',
    'EBUSY',
    [addChain('a'), addChain('b'), addRule('a', jumpTo('b'))],
    [{ kind: 'deleteChain', chain: 'b' }],
  ),
  twice(
    'a chain that an element leads to goes',
    'EBUSY',
    [addSet(VERDICTS), addChain('a'), add(VERDICTS, { key: { protocol: 'TCP', port: 80 }, chain: 'a' })],
    [{ kind: 'deleteChain', chain: 'a' }],
  ),
  twice(
    'a chain goes with the elements that led to it',
    'done',
    [addSet(VERDICTS), addChain('a'), add(VERDICTS, { key: { protocol: 'TCP', port: 80 }, chain: 'a' })],
    [del(VERDICTS, { key: { protocol: 'TCP', port: 80 } }), { kind: 'deleteChain', chain: 'a' }],
  ),
  twice(
    'a chain goes with the map that led to it',
    'done',
    [addSet(VERDICTS), addChain('a'), add(VERDICTS, { key: { protocol: 'TCP', port: 80 }, chain: 'a' })],
    [deleteSet(VERDICTS), { kind: 'deleteChain', chain: 'a' }],
  ),
  once(
    'an element that leads nowhere',
    'ENOENT',
    addSet(VERDICTS),
    add(VERDICTS, { key: { protocol: 'TCP', port: 80 }, chain: 'a' }),
  ),
  once(
    'an element that leads to a base chain',
    'ENOTSUP',
    addSet(VERDICTS),
    hooked('prerouting'),
    add(VERDICTS, { key: { protocol: 'TCP', port: 80 }, chain: 'base' }),
  ),
  once('an element of no set', 'ENOENT', add(PLAIN, host('10.0.0.1'))),
  twice(
    'an element twice',
    'done',
    [addSet(PLAIN), add(PLAIN, host('10.0.0.1'))],
    [add(PLAIN, host('10.0.0.1'))],
  ),
  once('an element twice at once', 'done', addSet(PLAIN), add(PLAIN, host('10.0.0.1'), host('10.0.0.1'))),
  twice(
    'an element with the same value',
    'done',
    [addSet(MAP), add(MAP, { key: K, endpoint: A, comment: 'a/x' })],
    [add(MAP, { key: K, endpoint: A, comment: 'a/y' })],
  ),
  twice(
    'an element with another value',
    'EEXIST',
    [addSet(MAP), add(MAP, { key: K, endpoint: A })],
    [add(MAP, { key: K, endpoint: B })],
  ),
  twice(
    'an element that goes and comes with another value',
    'done',
    [addSet(MAP), add(MAP, { key: K, endpoint: A })],
    [del(MAP, { key: K }), add(MAP, { key: K, endpoint: B })],
  ),
  twice('an element that is not there goes', 'ENOENT', [addSet(PLAIN)], [del(PLAIN, host('10.0.0.1'))]),
  twice(
    'an element goes twice',
    'ENOENT',
    [addSet(PLAIN), add(PLAIN, host('10.0.0.1'))],
    [del(PLAIN, host('10.0.0.1')), del(PLAIN, host('10.0.0.1'))],
  ),
  once('an address of the other family', 'EINVAL', addSet(PLAIN), add(PLAIN, host('fd00::1'))),
  once('an element of a map without a value', 'EINVAL', addSet(MAP), add(MAP, { key: K })),
  once(
    'an element of a set with a value',
    'EINVAL',
    addSet(PLAIN),
    add(PLAIN, { ...host('10.0.0.1'), endpoint: A }),
  ),
  twice(
    'a drawn number more',
    'done',
    [addSet(DRAWN), add(DRAWN, { key: { ...K, index: 0 }, endpoint: A })],
    [add(DRAWN, { key: { ...K, index: 1 }, endpoint: B })],
  ),
  once(
    'a range beside another',
    'done',
    addSet(ALLOWED),
    add(ALLOWED, allowed('10.0.0.0/24'), allowed('10.0.1.0/24')),
  ),
  twice(
    'a range within another',
    'EEXIST',
    [addSet(ALLOWED), add(ALLOWED, allowed('10.0.0.0/8'))],
    [add(ALLOWED, allowed('10.0.0.0/24'))],
  ),
  twice(
    'a range twice',
    'done',
    [addSet(ALLOWED), add(ALLOWED, allowed('10.0.0.0/8'))],
    [add(ALLOWED, allowed('10.0.0.0/8'))],
  ),
  twice(
    'a range in place of one around it',
    'done',
    [addSet(ALLOWED), add(ALLOWED, allowed('10.0.0.0/8'))],
    [del(ALLOWED, allowed('10.0.0.0/8')), add(ALLOWED, allowed('10.0.0.0/24'))],
  ),
  twice(
    'a range in place of one within it',
    'done',
    [addSet(ALLOWED), add(ALLOWED, allowed('10.0.0.0/24'))],
    [del(ALLOWED, allowed('10.0.0.0/24')), add(ALLOWED, allowed('10.0.0.0/8'))],
  ),
  once('everybody is allowed', 'done', addSet(ALLOWED), add(ALLOWED, allowed('0.0.0.0/0'))),
  once(
    'networks side by side',
    'done',
    addSet(CIDRS),
    add(CIDRS, network('10.96.0.0/16'), network('10.97.0.0/16')),
  ),
  once('a network of all addresses', 'done', addSet(CIDRS), add(CIDRS, network('0.0.0.0/0'))),
  twice(
    'a network within another',
    'EEXIST',
    [addSet(CIDRS), add(CIDRS, network('10.96.0.0/12'))],
    [add(CIDRS, network('10.97.0.0/16'))],
  ),
  twice(
    'a network in place of one around it',
    'done',
    [addSet(CIDRS), add(CIDRS, network('10.96.0.0/12'))],
    [del(CIDRS, network('10.96.0.0/12')), add(CIDRS, network('10.96.0.0/16'))],
  ),
  twice(
    'one of two networks side by side goes',
    'done',
    [addSet(CIDRS), add(CIDRS, network('10.96.0.0/16'), network('10.97.0.0/16'))],
    [del(CIDRS, network('10.96.0.0/16'))],
  ),
  once('dnat where packets come in', 'done', addSet(MAP), hooked('prerouting'), addRule('base', dnat)),
  once(
    'dnat where packets go out',
    'ENOTSUP',
    addSet(MAP),
    hooked('postrouting', 100),
    addRule('base', dnat),
  ),
  once(
    'masquerade where packets come in',
    'ENOTSUP',
    hooked('prerouting'),
    addRule('base', { kind: 'masquerade' }),
  ),
  once(
    'masquerade where packets go out',
    'done',
    hooked('postrouting', 100),
    addRule('base', { kind: 'masquerade' }),
  ),
  once(
    'dnat behind a jump where packets go out',
    'ENOTSUP',
    addSet(MAP),
    addChain('a'),
    addRule('a', dnat),
    hooked('postrouting', 100),
    addRule('base', jumpTo('a')),
  ),
  once('refusal where packets come in', 'done', hooked('prerouting'), addRule('base', { kind: 'reject' })),
  once(
    'refusal where packets go out',
    'ENOTSUP',
    hooked('postrouting', 100),
    addRule('base', { kind: 'reject' }),
  ),
  once(
    'clients are remembered',
    'done',
    addSet(AFFINITY),
    addChain('a'),
    addRule('a', {
      kind: 'learn',
      key: ['originalSource', 'originalDestination', 'originalPort'],
      map: AFFINITY.name,
      seconds: 60,
    }),
  ),
];
