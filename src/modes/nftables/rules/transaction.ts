/** A change of the table, as plain data: the kernel takes all of it or nothing. */
import type { Ip } from '../../../model/ip.ts';
import type { Protocol } from '../../../model/objects.ts';
import type { ChainSpec, Element, HookSpec, RuleSpec, Ruleset, TableSet } from './rule.ts';

export type TableOperation =
  /** Owned: no other program may change it, and it is deleted with the socket that made it. */
  | { readonly kind: 'addTable'; readonly isOwned?: true }
  | { readonly kind: 'deleteTable' }
  | { readonly kind: 'addSet'; readonly set: TableSet }
  | { readonly kind: 'deleteSet'; readonly name: string }
  | { readonly kind: 'addChain'; readonly name: string; readonly hook?: HookSpec }
  | { readonly kind: 'flushChain' | 'deleteChain'; readonly name: string }
  /** To delete one, it is found by what it says. */
  | { readonly kind: 'addRule' | 'deleteRule'; readonly chain: string; readonly rule: RuleSpec }
  | {
      readonly kind: 'addElements' | 'deleteElements';
      readonly set: TableSet;
      readonly elements: readonly Element[];
    };

export type TableTransaction = readonly TableOperation[];

export type TransactionOutcome =
  | { readonly state: 'done' }
  /** The kernel's word for it, and which operation it is about. */
  | { readonly state: 'refused'; readonly name: string; readonly operation: TableOperation | undefined };

/** What the kernel has, held against what it should have. */
export interface TableState {
  /** Somebody put it to sleep: packets do not come to its chains. */
  readonly isDormant: boolean;
  /** By name. `different`: of another type, or with other options. */
  readonly sets: ReadonlyMap<string, 'same' | 'different'>;
  readonly chains: ReadonlyMap<string, 'same' | 'different'>;
  /** Of sets that are the same and were read, by set and key; entries that rules add themselves are left out. */
  readonly elements: ReadonlyMap<string, ReadonlyMap<string, Element>>;
  /** Deletes the elements found that we cannot represent; unset: there are none. */
  deleteUnknown?(): Promise<void>;
}

/** A client and the endpoint that it keeps. */
export interface AffinityEntry {
  readonly client: Ip;
  readonly destination: Ip;
  readonly port: number;
  readonly endpoint: { readonly ip: Ip; readonly port: number };
}

export interface NftClient {
  /** `only`: elements of these sets alone are read. `undefined`: there is no such table. */
  inspect(wanted: Ruleset, only?: ReadonlySet<string>): Promise<TableState | undefined>;
  commit(transaction: TableTransaction): Promise<TransactionOutcome>;
  /** All of this protocol. */
  affinityEntries(protocol: Protocol): Promise<readonly AffinityEntry[]>;
}

/** Names of the chains that are added, deleted, or get other rules. */
export function* chainsIn(transaction: TableTransaction): Generator<string> {
  for (const operation of transaction) {
    switch (operation.kind) {
      case 'addRule':
      case 'deleteRule':
        yield operation.chain;
        break;
      case 'addChain':
      case 'flushChain':
      case 'deleteChain':
        yield operation.name;
        break;
      default:
        break;
    }
  }
}

export function addChains(chains: readonly ChainSpec[]): TableTransaction {
  return [
    ...chains.map(({ name, hook }): TableOperation => ({ kind: 'addChain', name, ...(hook && { hook }) })),
    ...chains.flatMap(addRules),
  ];
}

/** In place of whatever rules it has. */
export function rewriteChain(chain: ChainSpec): TableTransaction {
  return [{ kind: 'flushChain', name: chain.name }, ...addRules(chain)];
}

function addRules({ name, rules }: ChainSpec): TableTransaction {
  return rules.map((rule) => ({ kind: 'addRule', chain: name, rule }));
}

/** So many elements for each set as one operation. */
export function elementOperations(
  kind: 'addElements' | 'deleteElements',
  elements: readonly Element[],
  sets: ReadonlyMap<string, TableSet>,
): TableTransaction {
  const bySet = new Map<string, Element[]>();
  for (const element of elements) {
    const group = bySet.get(element.set);
    if (group) group.push(element);
    else bySet.set(element.set, [element]);
  }
  return [...bySet].map(([name, group]): TableOperation => {
    const set = sets.get(name);
    if (!set) throw new Error(`the table has no set ${name}`);
    return { kind, set, elements: group };
  });
}
