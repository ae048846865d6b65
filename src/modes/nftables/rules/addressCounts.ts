/** Reference counts of elements that are an address and nothing else: two for each service. A number each, not an object. */
import type { Ip } from '../../../model/ip.ts';
import type { Element, ElementChanges } from './table.ts';

export class AddressCounts {
  /** By set. */
  readonly #counts = new Map<string, Map<Ip, number>>();
  /** By set: whether the address was there before the changes. */
  readonly #touched = new Map<string, Map<Ip, boolean>>();

  count(set: string, address: Ip, by: 1 | -1): void {
    const counts = partOf(this.#counts, set);
    const touched = partOf(this.#touched, set);
    const before = counts.get(address) ?? 0;
    if (!touched.has(address)) touched.set(address, before > 0);
    if (before + by > 0) counts.set(address, before + by);
    else counts.delete(address);
  }

  /** One more use of what is there, or will be before anybody asks for changes. */
  countWritten(set: string, address: Ip): void {
    const counts = partOf(this.#counts, set);
    counts.set(address, (counts.get(address) ?? 0) + 1);
  }

  /** What was added and deleted since the last call. */
  takeChanges(): ElementChanges {
    const adds: Element[] = [];
    const removes: Element[] = [];
    for (const [set, touched] of this.#touched)
      for (const [address, wasThere] of touched) {
        const isThere = this.#counts.get(set)?.has(address) === true;
        if (isThere !== wasThere) (isThere ? adds : removes).push({ set, key: { address } });
      }
    this.#touched.clear();
    return { removes, adds };
  }

  *elements(): Generator<Element> {
    for (const [set, counts] of this.#counts)
      for (const address of counts.keys()) yield { set, key: { address } };
  }

  /** How many are in each set. */
  *sizes(): Generator<readonly [string, number]> {
    for (const [set, counts] of this.#counts) yield [set, counts.size];
  }
}

/** The address of an element that is nothing else. */
export function onlyAddress({ key, chain, endpoint, comment }: Element): Ip | undefined {
  if (chain !== undefined || endpoint !== undefined || comment !== undefined) return undefined;
  for (const part in key) if (part !== 'address') return undefined;
  return key.address;
}

function partOf<T>(parts: Map<string, Map<Ip, T>>, set: string): Map<Ip, T> {
  let part = parts.get(set);
  if (!part) parts.set(set, (part = new Map()));
  return part;
}
