/** A table and its elements, made to be asked: which element does a key find? */
import { type Cidr, cidrContains, type Ip } from '../../../model/ip.ts';
import { printKey } from './print.ts';
import {
  type NftChain,
  type Element,
  type ElementKey,
  type Ruleset,
  setsByName,
  type TableSet,
} from './rule.ts';

/** What a packet walks through. */
export interface WalkTable {
  readonly chains: ReadonlyMap<string, NftChain>;
  readonly sets: ReadonlyMap<string, TableSet>;
  /** With an address where a set has ranges. `undefined`: there is no such element. */
  find(set: string, key: ElementKey): Element | undefined;
}

export function walkTable({ sets, chains }: Ruleset, elements: Iterable<Element>): WalkTable {
  const known = setsByName({ sets });
  const exact = new Map<string, Element>();
  const ranges = new Map<string, Element[]>();
  for (const element of elements) {
    const { range, ...rest } = element.key;
    if (range === undefined) exact.set(idOf(element.set, element.key), element);
    else push(ranges, idOf(element.set, rest), element);
  }
  return {
    sets: known,
    chains: new Map(chains.map((chain) => [chain.name, chain])),
    find: (set, key) => {
      const shape = known.get(set);
      if (!shape?.ranges) return exact.get(idOf(set, key));
      const [rest, asked] = splitLast(shape, key);
      return ranges.get(idOf(set, rest))?.find((element) => covers(element.key.range, asked));
    },
  };
}

function covers(range: Cidr | undefined, ip: Ip | undefined): boolean {
  return range !== undefined && ip !== undefined && cidrContains(range, ip);
}

/** The address that may lie in a range is the last one of the key. */
function splitLast({ key: fields }: TableSet, key: ElementKey): readonly [ElementKey, Ip | undefined] {
  if (fields.length === 1) return [{}, key.address];
  const { secondAddress, ...rest } = key;
  return [rest, secondAddress];
}

function idOf(set: string, key: ElementKey): string {
  return `${set} ${printKey(key)}`;
}

function push<K, V>(lists: Map<K, V[]>, key: K, value: V): void {
  const known = lists.get(key);
  if (known) known.push(value);
  else lists.set(key, [value]);
}
