/**
 * Changes of a table as data: printed by `junction plan`, sent by the client, compared by tests.
 *
 * A step is one restore of one table, so the kernel takes all of it or nothing. Its pieces name whose they are, so
 * that a step which the kernel refuses can be bisected to the service port that it is about.
 */
import type { ServicePortId } from '../../../model/serviceTracker.ts';
import { chainLine } from './print.ts';
import type { Table } from './rule.ts';

export interface Step {
  readonly table: Table;
  readonly pieces: readonly Piece[];
}

/** What one service port, or Junction itself, changes in a table. */
export interface Piece {
  /** `undefined`: belongs to no service. */
  readonly owner: ServicePortId | undefined;
  /** Chains to create, or to empty and fill again. */
  readonly writes: readonly ChainText[];
  /** Rules to take out of chains that others have rules in too. */
  readonly removes: readonly RuleText[];
  readonly adds: readonly PlacedRuleText[];
  /** Chains to delete. */
  readonly deletes: readonly string[];
}

export interface ChainText {
  readonly name: string;
  /** Arguments of each rule; counters may stand before them, in brackets. */
  readonly rules: readonly string[];
}

/** A chain that many services share, with everybody's rules. */
export interface SharedChainText extends ChainText {
  readonly table: Table;
}

export interface RuleText {
  readonly chain: string;
  readonly rule: string;
}

interface PlacedRuleText extends RuleText {
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
export function inSteps(
  table: Table,
  pieces: readonly Piece[],
  chainsPerRestore: number,
  shared: readonly ChainText[] = [],
): readonly Step[] {
  if (pieces.length === 0) return [];
  const whole = shared.length > 0 ? [piece(undefined, { writes: shared })] : [];
  const chains = pieces.reduce((sum, { writes, deletes }) => sum + writes.length + deletes.length, 0);
  if (chains <= chainsPerRestore) return [{ table, pieces: [...pieces, ...whole] }];
  const writes = pieces.flatMap(({ owner, writes: each }) =>
    each.map((chain) => piece(owner, { writes: [chain] })),
  );
  const edits = pieces.map(({ owner, removes, adds }) => piece(owner, { removes, adds }));
  const deletes = pieces.flatMap(({ owner, deletes: each }) =>
    each.map((chain) => piece(owner, { deletes: [chain] })),
  );
  return [
    ...inChunks(table, writes, chainsPerRestore),
    { table, pieces: [...edits.filter((each) => !isEmptyPiece(each)), ...whole] },
    ...inChunks(table, deletes, chainsPerRestore),
  ].filter((step) => step.pieces.length > 0);
}

/** Pieces of one chain each, so many to a step. */
export function* inChunks(table: Table, pieces: Iterable<Piece>, size: number): Generator<Step> {
  let chunk: Piece[] = [];
  for (const each of pieces) {
    chunk.push(each);
    if (chunk.length < size) continue;
    yield { table, pieces: chunk };
    chunk = [];
  }
  if (chunk.length > 0) yield { table, pieces: chunk };
}

/** The input for `iptables-restore --noflush --counters`. */
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
      for (const rule of write.rules) rules += `${withChain('-A', write.name, rule)}\n`;
    }
    for (const name of each.deletes) {
      // The chain line empties the chain, so that it can go in the same commit.
      chains += `${chainLine(name)}\n`;
      deletes += `-X ${name}\n`;
    }
    for (const { chain, rule } of each.removes) removes += `-D ${chain} ${rule}\n`;
    for (const { chain, rule, place } of each.adds) {
      if (place === 'end') ends += `${withChain('-A', chain, rule)}\n`;
      else heads.push(`-I ${chain} ${rule}\n`);
    }
  }
  // Each insertion goes before the last one: backwards, so that they end up in order.
  return `*${table}\n${chains}${rules}${removes}${heads.reverse().join('')}${ends}${deletes}COMMIT\n`;
}

/** `[12:3456] -A CHAIN …` or `-A CHAIN …`; a rule without any argument is just `-A CHAIN`. */
function withChain(operation: string, chain: string, rule: string): string {
  if (!rule.startsWith('[')) return `${operation} ${chain} ${rule}`;
  const end = rule.indexOf(']') + 1;
  return `${rule.slice(0, end)} ${operation} ${chain}${rule.slice(end)}`;
}

const MOST_NAMES = 100;

/** Adds the names of the chains that a step changes, without those that these service ports changed; not all of many. */
export function nameChains(
  names: Set<string>,
  { table, pieces }: Step,
  without: ReadonlySet<ServicePortId> = new Set(),
): void {
  for (const { owner, writes, removes, adds, deletes } of pieces) {
    if (names.size >= MOST_NAMES) return;
    if (owner !== undefined && without.has(owner)) continue;
    for (const { name } of writes) names.add(`chain ${table} ${name}`);
    for (const { chain } of [...removes, ...adds]) names.add(`chain ${table} ${chain}`);
    for (const name of deletes) names.add(`chain ${table} ${name}`);
  }
}
