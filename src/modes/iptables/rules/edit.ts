/**
 * Changes of a table as data: printed by `junction plan`, sent by the client, compared by tests.
 *
 * A step is one restore of one table, so the kernel takes all of it or nothing. Its pieces name whose they are, so
 * that a step which the kernel refuses can be bisected to the service port that it is about.
 */
import { deepEqual } from '../../../model/equal.ts';
import type { ServicePortId } from '../../../model/serviceTracker.ts';
import { type Fragment, isSameChain, type SharedRule, TAIL_CHAIN } from './fragment.ts';
import { appendLine, chainLine, printRule } from './print.ts';
import { type Rule, type Table, TABLES } from './rule.ts';

export interface Step {
  readonly table: Table;
  readonly pieces: readonly Piece[];
}

/** What one service port, or Junction itself, changes in a table. */
export interface Piece {
  /** `undefined`: belongs to no service. */
  readonly owner: ServicePortId | undefined;
  /** Chains to create, or to empty and fill again. */
  readonly writes: readonly ChainWrite[];
  /** Rules to take out of chains that others have rules in too. */
  readonly removes: readonly Removal[];
  readonly adds: readonly PlacedRule[];
  /** Chains to delete. */
  readonly deletes: readonly string[];
}

export interface ChainWrite {
  readonly name: string;
  readonly rules: readonly Rule[];
}

/** A rule of a chain, in the table of its step. */
export type ChainRule = Omit<SharedRule, 'table'>;

/** A rule of ours, or one as it was read. */
export interface Removal {
  readonly chain: string;
  readonly rule: Rule | { readonly text: string };
}

interface PlacedRule extends ChainRule {
  readonly place: 'head' | 'end';
}

const NOTHING: readonly never[] = [];

export function piece(owner: ServicePortId | undefined, parts: Partial<Omit<Piece, 'owner'>>): Piece {
  // Field by field: measured, V8 makes what is copied with `...parts` old at once, and with it all that it refers to.
  const { writes = NOTHING, removes = NOTHING, adds = NOTHING, deletes = NOTHING } = parts;
  return { owner, writes, removes, adds, deletes };
}

export function isEmptyPiece({ writes, removes, adds, deletes }: Piece): boolean {
  return writes.length + removes.length + adds.length + deletes.length === 0;
}

/**
 * Chains in one restore of the nft variant: beyond some hundred it takes time with the square of their number. The
 * legacy variant reads and writes the whole table every time, so there one restore is best, whatever its size.
 */
export const CHAINS_PER_RESTORE = 500;

/** Everything in one restore if it is small enough; otherwise chains first, then the rules that lead to them. */
function inSteps(table: Table, pieces: readonly Piece[], chainsPerRestore: number): readonly Step[] {
  const chains = pieces.reduce((sum, { writes, deletes }) => sum + writes.length + deletes.length, 0);
  if (chains <= chainsPerRestore) return pieces.length === 0 ? [] : [{ table, pieces }];
  const writes = pieces.flatMap(({ owner, writes: each }) =>
    each.map((chain) => piece(owner, { writes: [chain] })),
  );
  const edits = pieces.map(({ owner, removes, adds }) => piece(owner, { removes, adds }));
  const deletes = pieces.flatMap(({ owner, deletes: each }) =>
    each.map((chain) => piece(owner, { deletes: [chain] })),
  );
  return [
    ...inChunks(table, writes, chainsPerRestore),
    { table, pieces: edits.filter((each) => !isEmptyPiece(each)) },
    ...inChunks(table, deletes, chainsPerRestore),
  ].filter((step) => step.pieces.length > 0);
}

/** Pieces of one chain each, so many to a step. */
export function* inChunks(
  table: Table,
  pieces: Iterable<Piece>,
  size: number = CHAINS_PER_RESTORE,
): Generator<Step> {
  let chunk: Piece[] = [];
  for (const each of pieces) {
    chunk.push(each);
    if (chunk.length < size) continue;
    yield { table, pieces: chunk };
    chunk = [];
  }
  if (chunk.length > 0) yield { table, pieces: chunk };
}

/** The input for `iptables-restore --noflush`. */
export function printStep({ table, pieces }: Step): string {
  let chains = '';
  let rules = '';
  let removes = '';
  let ends = '';
  let deletes = '';
  const heads: string[] = [];
  for (const each of pieces) {
    for (const write of each.writes) {
      chains += `${chainLine(write.name)}\n`;
      for (const rule of write.rules) rules += `${appendLine(write.name, rule)}\n`;
    }
    for (const name of each.deletes) {
      // The chain line empties the chain, so that it can go in the same commit.
      chains += `${chainLine(name)}\n`;
      deletes += `-X ${name}\n`;
    }
    for (const { chain, rule } of each.removes) removes += `-D ${chain} ${printRule(rule)}\n`;
    for (const { chain, rule, place } of each.adds) {
      if (place === 'end') ends += `${appendLine(chain, rule)}\n`;
      else heads.push(`-I ${chain} ${printRule(rule)}\n`);
    }
  }
  // Each insertion goes before the last one: backwards, so that they end up in order.
  return `*${table}\n${chains}${rules}${removes}${heads.reverse().join('')}${ends}${deletes}COMMIT\n`;
}

const MAX_NAMES = 100;

/** Adds the names of the chains that a step changes; not all of many. */
export function nameChains(names: Set<string>, { table, pieces }: Step): void {
  for (const { writes, removes, adds, deletes } of pieces) {
    if (names.size >= MAX_NAMES) return;
    for (const { name } of writes) names.add(`chain ${table} ${name}`);
    for (const { chain } of [...removes, ...adds]) names.add(`chain ${table} ${chain}`);
    for (const name of deletes) names.add(`chain ${table} ${name}`);
  }
}

/* From what a service port has in the kernel to what it should have: its own chains and rules, and nothing else. */

interface FragmentChange {
  readonly owner: ServicePortId;
  readonly before: Fragment;
  readonly after: Fragment;
}

/** Changes one by one; of each only what has to be sent is kept. */
export class Difference {
  readonly #pieces = new Map<Table, Piece[]>(TABLES.map((table) => [table, []]));
  readonly #touched = new Set<string>();

  add(change: FragmentChange): void {
    for (const [table, pieces] of this.#pieces) {
      const piece = diffFragments(table, change);
      if (!isEmptyPiece(piece)) pieces.push(piece);
      for (const { name } of piece.writes) this.#touched.add(`${table} ${name}`);
      for (const { chain } of [...piece.removes, ...piece.adds]) this.#touched.add(`${table} ${chain}`);
    }
  }

  /** It is quicker to write the shared chains whole than to take so many rules out of them. */
  get removesMany(): boolean {
    const pieces = [...this.#pieces.values()].flat();
    return pieces.reduce((sum, { removes }) => sum + removes.length, 0) > MAX_REMOVALS;
  }

  /** It writes this chain, or rules of it. */
  has(table: Table, chain: string): boolean {
    return this.#touched.has(`${table} ${chain}`);
  }

  steps(chainsPerRestore: number): readonly Step[] {
    return [...this.#pieces].flatMap(([table, pieces]) => inSteps(table, pieces, chainsPerRestore));
  }
}

/**
 * To remove a rule, iptables compares it with those before it: a deletion in a chain of 5,400 rules took 4 to 9 ms at its
 * end, and writing one of its rules again 0.1 ms.
 */
const MAX_REMOVALS = 100;

function diffFragments(table: Table, { owner, before, after }: FragmentChange): Piece {
  const chainsBefore = chainsIn(before, table);
  const chainsAfter = chainsIn(after, table);
  const rulesBefore = sharedIn(before, table);
  const rulesAfter = sharedIn(after, table);
  const isChanged = ({ name, rules }: ChainWrite): boolean =>
    !areSameRules(chainsBefore.get(name)?.rules, rules);
  return {
    owner,
    writes: [...chainsAfter.values()].filter(isChanged),
    // Callers first: emptying one frees what it calls.
    deletes: [...chainsBefore.keys()].filter((name) => !chainsAfter.has(name)).reverse(),
    // All of its rules in a chain or none: their order among each other matters, and there are only a few.
    removes: inChangedChains(rulesBefore, rulesAfter),
    // Before the tail, where the chain has one.
    adds: inChangedChains(rulesAfter, rulesBefore).map(({ chain, rule }) => {
      return { chain, rule, place: isSameChain(TAIL_CHAIN, { table, chain }) ? 'head' : 'end' };
    }),
  };
}

function chainsIn({ chains }: Fragment, table: Table): ReadonlyMap<string, ChainWrite> {
  const own = chains.filter((chain) => chain.table === table);
  return new Map(own.map(({ name, rules }) => [name, { name, rules }]));
}

function sharedIn({ shared }: Fragment, table: Table): readonly ChainRule[] {
  return shared.filter((each) => each.table === table);
}

/** The rules of chains in which this service port's rules are not, to the letter, what they are on the other side. */
function inChangedChains(rules: readonly ChainRule[], others: readonly ChainRule[]): readonly ChainRule[] {
  const [own, other] = [byChain(rules), byChain(others)];
  const changed = new Set<string>();
  for (const [chain, each] of own) if (!areSameRules(other.get(chain), each)) changed.add(chain);
  return changed.size === 0 ? [] : rules.filter(({ chain }) => changed.has(chain));
}

function byChain(rules: readonly ChainRule[]): ReadonlyMap<string, readonly Rule[]> {
  const chains = new Map<string, Rule[]>();
  for (const { chain, rule } of rules) addTo(chains, chain, rule);
  return chains;
}

/** Appends to the list of this key. */
export function addTo<T>(lists: Map<string, T[]>, key: string, value: T): void {
  const list = lists.get(key);
  if (list) list.push(value);
  else lists.set(key, [value]);
}

function areSameRules(a: readonly Rule[] | undefined, b: readonly Rule[]): boolean {
  return a !== undefined && deepEqual(a, b);
}
