/**
 * nftables as data: what the table consists of, in our own few words. `print.ts` writes it as nft prints it, `walk.ts`
 * sends packets through it, and the kernel's side turns it into bytecode.
 *
 * Only what nft itself could have written is said here, so that `nft list ruleset` can print the table.
 */
import type { Cidr, Ip } from '../../../model/ip.ts';
import type { Protocol } from '../../../model/objects.ts';

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

export type Statement =
  | { readonly kind: 'inSet'; readonly key: Key; readonly set: string; readonly not: boolean }
  | { readonly kind: 'addressType'; readonly side: 'source' | 'destination'; readonly not: boolean }
  | {
      readonly kind: 'addressIn';
      readonly side: 'source' | 'destination';
      readonly cidr: Cidr;
      readonly not: boolean;
    }
  /** A name that ends in `*` is a prefix. */
  | { readonly kind: 'inInterface'; readonly name: string; readonly not: boolean }
  | { readonly kind: 'protocol'; readonly protocol: Protocol }
  /** Any but 0, so every packet of a protocol that has ports. */
  | { readonly kind: 'hasPort' }
  | { readonly kind: 'isRewritten' }
  | { readonly kind: 'hasMark'; readonly mark: number; readonly not: boolean }
  | { readonly kind: 'changeMark'; readonly operation: 'set' | 'flip'; readonly mark: number }
  /** Notes in a map of addresses who was sent where; kept for so long, counted from the last time. */
  | { readonly kind: 'learn'; readonly key: Key; readonly map: string; readonly seconds: number }
  | { readonly kind: 'dnatByMap'; readonly key: Key; readonly map: string }
  | { readonly kind: 'verdictByMap'; readonly key: Key; readonly map: string }
  | { readonly kind: 'masquerade' }
  | { readonly kind: 'reject' }
  | { readonly kind: 'drop' }
  | { readonly kind: 'return' }
  | { readonly kind: 'jump' | 'goto'; readonly chain: string };

export interface RuleSpec {
  readonly statements: readonly Statement[];
  readonly comment?: string;
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
  /** At most one of its rules has anything to say about a packet: their order means nothing. */
  readonly isUnordered?: true;
}

/** What a set's keys consist of. */
export type FieldType = 'address' | 'protocol' | 'port' | { readonly drawnOf: number };

export interface TableSet {
  readonly name: string;
  readonly key: readonly FieldType[];
  /** `endpoint`: an address and a port. A set that is no map has none. */
  readonly data?: 'endpoint' | 'verdict';
  /** The last field of a key may be a range. */
  readonly ranges?: true;
  /** Elements come from rules, and go by themselves; at most so many. */
  readonly dynamicSize?: number;
  /** Each element counts the packets that found it. */
  readonly counts?: true;
  readonly comment?: string;
}

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
}

export function nftRule(...statements: readonly Statement[]): RuleSpec {
  return { statements };
}

export function jumpRule(chain: string): RuleSpec {
  return nftRule({ kind: 'jump', chain });
}

export function inSet(key: Key, set: string, not = false): Statement {
  return { kind: 'inSet', key, set, not };
}

export function setsByName({ sets }: Pick<Ruleset, 'sets'>): ReadonlyMap<string, TableSet> {
  return new Map(sets.map((set) => [set.name, set]));
}
