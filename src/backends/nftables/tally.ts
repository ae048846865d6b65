/**
 * What several service ports share: elements that go with the last who wants them, the sizes of pools, the time-outs of
 * affinity. From it follows the shape of the table.
 */
import type { ServicePortPlan } from '../../plan/types.ts';
import type { Protocol } from '../../model/objects.ts';
import type { NftFragment } from './compile.ts';
import type { Scope, View } from './names.ts';
import { printKey } from './print.ts';
import type { Element } from './rule.ts';
import type { Shape } from './ruleset.ts';

interface Counted {
  readonly element: Element;
  count: number;
}

export interface CountedChanges {
  readonly added: readonly Element[];
  readonly removed: readonly Element[];
}

export class Tally {
  /** By set and key. */
  readonly #elements = new Map<string, Map<string, Counted>>();
  readonly #touched = new Map<string, Map<string, Element | undefined>>();
  /** Sizes and time-outs that were ever needed; one that is not any more costs a lookup, and going and coming costs more. */
  readonly #pools = new Map<string, { readonly scope: Scope; readonly view: View; readonly size: number }>();
  readonly #affinity = new Map<string, { readonly protocol: Protocol; readonly seconds: number }>();

  /** With the sizes and time-outs of one before it. */
  constructor(before?: Tally) {
    if (!before) return;
    for (const [key, pool] of before.#pools) this.#pools.set(key, pool);
    for (const [key, each] of before.#affinity) this.#affinity.set(key, each);
  }

  /** How many sizes and time-outs there are. While it is the same, so is the shape. */
  get extent(): number {
    return this.#pools.size + this.#affinity.size;
  }

  add({ counted, pools }: NftFragment, port: ServicePortPlan): void {
    for (const element of counted) this.#count(element, 1);
    for (const pool of pools) {
      const key = `${pool.scope} ${pool.view} ${pool.size}`;
      if (!this.#pools.has(key)) this.#pools.set(key, pool);
    }
    const { affinitySeconds: seconds, protocol } = port;
    if (seconds !== undefined) this.#affinity.set(`${protocol} ${seconds}`, { protocol, seconds });
  }

  remove({ counted }: NftFragment): void {
    for (const element of counted) this.#count(element, -1);
  }

  /** What came and went since this was last asked. */
  takeChanges(): CountedChanges {
    const added: Element[] = [];
    const removed: Element[] = [];
    for (const [set, touched] of this.#touched) {
      for (const [key, before] of touched) {
        const now = this.#elements.get(set)?.get(key)?.element;
        if (now && !before) added.push(now);
        if (before && !now) removed.push(before);
      }
    }
    this.#touched.clear();
    return { added, removed };
  }

  *elements(): Generator<Element> {
    for (const ofSet of this.#elements.values()) for (const { element } of ofSet.values()) yield element;
  }

  shape(hasServiceCidrs: boolean): Shape {
    const sizes = (scope: Scope, view: View): readonly number[] =>
      [...this.#pools.values()]
        .filter((pool) => pool.scope === scope && pool.view === view)
        .map(({ size }) => size)
        .sort((a, b) => a - b);
    return {
      sizes: {
        address: { any: sizes('address', 'any'), outside: sizes('address', 'outside') },
        nodePort: { any: sizes('nodePort', 'any'), outside: sizes('nodePort', 'outside') },
      },
      affinity: [...this.#affinity.values()].sort((a, b) =>
        a.protocol < b.protocol ? -1 : a.protocol > b.protocol ? 1 : a.seconds - b.seconds,
      ),
      hasServiceCidrs,
    };
  }

  #count(element: Element, by: 1 | -1): void {
    const elements = inner(this.#elements, element.set);
    const touched = inner(this.#touched, element.set);
    const key = printKey(element.key);
    const known = elements.get(key);
    if (!touched.has(key)) touched.set(key, known?.element);
    if (!known) {
      if (by > 0) elements.set(key, { element, count: by });
      return;
    }
    known.count += by;
    if (known.count === 0) elements.delete(key);
  }
}

function inner<V>(maps: Map<string, Map<string, V>>, key: string): Map<string, V> {
  let map = maps.get(key);
  if (!map) maps.set(key, (map = new Map<string, V>()));
  return map;
}
