/** Where rules are read from: the kernel by netlink, a dump, or a kernel in memory. */
import type { SetElement, SetPlace } from '../../../netlink/nftables/elements.ts';
import type { Expression } from '../../../netlink/nftables/expressions.ts';
import type { TablePlace } from '../../../netlink/nftables/message.ts';
import type { BaseChain, ChainPlace } from '../../../netlink/nftables/objects.ts';
import type { SetProperties } from '../../../netlink/nftables/setSpec.ts';

export interface ListedChain extends ChainPlace {
  readonly base?: BaseChain | undefined;
  /** Its rules, and the rules and elements that lead to it. */
  readonly references: number;
}

export interface ListedRule {
  readonly expressions: readonly Expression[];
  readonly comment?: string | undefined;
}

export interface ListedSet extends SetProperties {
  readonly name: string;
}

/** A chain with its rules. */
export interface WholeChain {
  readonly name: string;
  readonly base?: BaseChain | undefined;
  readonly rules: readonly ListedRule[];
}

/** All of a table but the elements of its sets. */
export interface WholeTable {
  readonly isDormant: boolean;
  readonly chains: readonly WholeChain[];
  readonly sets: readonly ListedSet[];
}

export interface AskedElement extends SetPlace {
  readonly key: Uint8Array;
}

export interface NftSource {
  /** Another number after every change of any rule. `undefined`: nothing can change. */
  generation(): Promise<number | undefined>;
  /** Of the tables that are in force: those of this family, and those of `inet`. */
  chains(): Promise<readonly ListedChain[]>;
  /** Of a chain that is not there, none. */
  rules(chain: ChainPlace): Promise<readonly ListedRule[]>;
  set(place: SetPlace): Promise<ListedSet | undefined>;
  /** Of intervals, that which holds the key. */
  element(asked: AskedElement): Promise<SetElement | undefined>;
  /** `undefined`: there is no such table. */
  table(place: TablePlace): Promise<WholeTable | undefined>;
  /** All elements of a set that is there. */
  allElements(place: SetPlace): Promise<readonly SetElement[]>;
}

/** `ip junction-a` */
export function tableName({ family, table }: TablePlace): string {
  return `${family} ${table}`;
}
