/**
 * Our table as data, in our own few words: sets, chains, rules and elements, and changes of them. `print.ts` writes it as
 * nft prints it, `walk.ts` sends packets through it, and `lower.ts` turns it into the kernel's bytecode.
 *
 * Only what nft itself could have written is said here, so that `nft list ruleset` can print the table.
 */
import type { Cidr, Ip } from '../../../model/ip.ts';
import type { Protocol } from '../../../model/objects.ts';
import type { ServicePortId } from '../../../model/serviceTracker.ts';

/** A part of a packet by which a set is asked. `original` is what the client dialled, after it was rewritten. */
export type KeyPart =
  | 'source'
  | 'destination'
  | 'protocol'
  | 'port'
  | 'originalSource'
  | 'originalDestination'
  | 'originalPort'
  /** One of so many, drawn for this packet. */
  | { readonly drawnOf: number };

export type Key = readonly KeyPart[];

export type Side = 'source' | 'destination';

export type Statement =
  | { readonly kind: 'inSet'; readonly key: Key; readonly set: string; readonly not: boolean }
  | { readonly kind: 'addressType'; readonly side: Side; readonly not: boolean }
  | { readonly kind: 'addressIn'; readonly side: Side; readonly cidr: Cidr; readonly not: boolean }
  /** A name that ends in `*` is a prefix. */
  | { readonly kind: 'inInterface'; readonly name: string; readonly not: boolean }
  | { readonly kind: 'protocol'; readonly protocol: Protocol }
  /** Any but 0, so every packet of a protocol that has ports. */
  | { readonly kind: 'hasPort' }
  | { readonly kind: 'isRewritten' }
  | { readonly kind: 'hasMark'; readonly mark: number; readonly not: boolean }
  | { readonly kind: 'changeMark'; readonly operation: 'set' | 'flip'; readonly mark: number }
  /** Adds an affinity entry to a map, or renews it for so long. */
  | { readonly kind: 'learn'; readonly key: Key; readonly map: string; readonly seconds: number }
  | { readonly kind: 'dnatByMap' | 'verdictByMap'; readonly key: Key; readonly map: string }
  | { readonly kind: 'masquerade' | 'reject' | 'drop' | 'return' }
  | { readonly kind: 'jump'; readonly chain: string };

export interface RuleSpec {
  readonly statements: readonly Statement[];
}

export interface HookSpec {
  readonly point: 'prerouting' | 'input' | 'output' | 'postrouting';
  readonly priority: number;
}

export interface ChainSpec {
  readonly name: string;
  /** All are of the type nat: they see the first packet of a connection, and no other. */
  readonly hook?: HookSpec;
  readonly rules: readonly RuleSpec[];
  /** At most one of its rules matches a packet: their order means nothing. */
  readonly isUnordered?: true;
}

export type FieldType = 'address' | 'protocol' | 'port' | { readonly drawnOf: number };

export interface TableSet {
  readonly name: string;
  readonly key: readonly FieldType[];
  /** `endpoint`: an address and a port. A set that is no map has none. */
  readonly data?: 'endpoint' | 'verdict';
  /** The last field of a key may be a range. */
  readonly ranges?: true;
  /** Elements are added by rules and expire; at most so many. */
  readonly dynamicSize?: number;
  /** Each element counts the packets that found it. */
  readonly counts?: true;
  readonly comment?: string;
}

export type SetsByName = ReadonlyMap<string, TableSet>;

export interface Ruleset {
  readonly sets: readonly TableSet[];
  readonly chains: readonly ChainSpec[];
}

/** The values of a key, in the order of its fields; those that its set does not have are left out. */
export interface ElementKey {
  readonly address?: Ip;
  readonly protocol?: Protocol;
  readonly port?: number;
  readonly index?: number;
  readonly secondAddress?: Ip;
  readonly secondPort?: number;
  /** In place of the second address, for sets of ranges. */
  readonly range?: Cidr;
}

export interface Element {
  readonly set: string;
  readonly key: ElementKey;
  readonly endpoint?: { readonly ip: Ip; readonly port: number };
  readonly chain?: string;
  /** Whose it is, for people: the service port's name. */
  readonly comment?: string;
  /** Of an affinity entry that is copied. */
  readonly lifetime?: Lifetime;
}

export interface FilledTable extends Ruleset {
  readonly elements: readonly Element[];
}

export function nftRule(...statements: readonly Statement[]): RuleSpec {
  return { statements };
}

export function toChain(chain: string): Statement {
  return { kind: 'jump', chain };
}

export function inSet(key: Key, set: string, not = false): Statement {
  return { kind: 'inSet', key, set, not };
}

/** Of a set of nothing but ranges: the kernel keeps either end of an interval as an element. */
export function isOfIntervals({ ranges, key }: TableSet): boolean {
  return ranges === true && key.length === 1;
}

export function byName<T extends { readonly name: string }>(all: Iterable<T>): ReadonlyMap<string, T> {
  return new Map(Array.from(all, (each) => [each.name, each]));
}

export function groupBy<T>(items: Iterable<T>, keyOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group) group.push(item);
    else groups.set(key, [item]);
  }
  return groups;
}

export type TableOperation =
  /**
   * Owned: no other program may change it, and it is deleted with the socket that made it; unless it is persistent: then it
   * stays, and anybody may change it.
   */
  | { readonly kind: 'addTable'; readonly isOwned?: true; readonly isPersistent?: true }
  | { readonly kind: 'deleteTable' }
  | { readonly kind: 'addSet'; readonly set: TableSet }
  | { readonly kind: 'deleteSet'; readonly set: string }
  | { readonly kind: 'addChain'; readonly chain: string; readonly hook?: HookSpec }
  | { readonly kind: 'flushChain' | 'deleteChain'; readonly chain: string }
  | { readonly kind: 'addRule'; readonly chain: string; readonly rule: RuleSpec }
  | {
      readonly kind: 'addElements' | 'deleteElements';
      readonly set: TableSet;
      readonly elements: readonly Element[];
    };

/** The kernel takes all of it or nothing. */
export type TableTransaction = readonly TableOperation[];

export type TransactionOutcome = { readonly state: 'done' } | TransactionRefusal;

export interface TransactionRefusal {
  readonly state: 'refused';
  /** The kernel's word for it. */
  readonly name: string;
  /** Which operation it is about. */
  readonly operation: TableOperation | undefined;
}

/** Where a client was sent that has session affinity. */
export interface AffinityEntry {
  readonly client: Ip;
  readonly destination: Ip;
  readonly port: number;
  readonly endpoint: { readonly ip: Ip; readonly port: number };
  readonly lifetime: Lifetime;
}

/** Of an affinity entry. */
interface Lifetime {
  readonly timeoutMs: number;
  /** What is left of it. */
  readonly leftMs: number;
}

/** One table. */
export interface NftClient {
  commit(transaction: TableTransaction): Promise<TransactionOutcome>;
  /** Read while commits go on. */
  affinityEntries(protocol: Protocol): Promise<readonly AffinityEntry[]>;
}

/** A table of ours that is there. */
export interface FoundTable {
  readonly name: string;
  readonly baseChains: readonly string[];
  /** The socket that alone can change it, in words: `pid 123 (junction)`. */
  readonly owner: () => string | undefined;
}

/** Our tables of one family. */
export interface NftTables {
  list(): Promise<readonly FoundTable[]>;
  table(name: string): NftClient;
  /** All of it in one transaction. */
  commit(parts: readonly TablePart[]): Promise<TransactionOutcome>;
}

export interface TablePart {
  readonly table: string;
  readonly transaction: TableTransaction;
}

export interface ElementChanges {
  readonly removes: readonly Element[];
  readonly adds: readonly Element[];
}

export interface ElementEdit extends ElementChanges {
  /** `undefined`: several service ports'. */
  readonly owner: ServicePortId | undefined;
}

export function editSize({ removes, adds }: ElementChanges): number {
  return removes.length + adds.length;
}

/** Deletes before adds: an element may pass from one service port to another. One operation for each set. */
export function editOperations(edits: readonly ElementChanges[], sets: SetsByName): TableTransaction {
  const all = {
    deleteElements: edits.flatMap(({ removes }) => removes),
    addElements: edits.flatMap(({ adds }) => adds),
  };
  return (['deleteElements', 'addElements'] as const).flatMap((kind) =>
    Array.from(
      groupBy(all[kind], ({ set }) => set),
      ([name, elements]) => {
        const set = sets.get(name);
        if (!set) throw new Error(`the table has no set ${name}`);
        return { kind, set, elements };
      },
    ),
  );
}

export function addSets(sets: readonly TableSet[]): TableTransaction {
  return sets.map((set) => ({ kind: 'addSet', set }));
}

export function addChains(chains: readonly ChainSpec[]): TableTransaction {
  return [
    ...chains.map(
      ({ name, hook }): TableOperation => ({ kind: 'addChain', chain: name, ...(hook && { hook }) }),
    ),
    ...chains.flatMap(addRules),
  ];
}

/** In place of whatever rules it has. */
export function rewriteChain(chain: ChainSpec): TableTransaction {
  return [{ kind: 'flushChain', chain: chain.name }, ...addRules(chain)];
}

export function deleteChain(chain: string): TableTransaction {
  return [
    { kind: 'flushChain', chain },
    { kind: 'deleteChain', chain },
  ];
}

function addRules({ name, rules }: ChainSpec): TableTransaction {
  return rules.map((rule) => ({ kind: 'addRule', chain: name, rule }));
}

export function* slices<T>(items: Iterable<T>, size: number): Generator<readonly T[]> {
  let slice: T[] = [];
  for (const item of items) {
    slice.push(item);
    if (slice.length < size) continue;
    yield slice;
    slice = [];
  }
  if (slice.length > 0) yield slice;
}
