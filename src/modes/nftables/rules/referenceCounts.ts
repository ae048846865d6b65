/**
 * Reference counts of what several service ports share: elements that are deleted with their last user, the sizes of pools, the time-outs of
 * affinity. From it follows the shape of the table.
 */
import type { AffinityTimeout } from './affinity.ts';
import type { NftFragment, PoolSize } from './compile.ts';
import { sameValue } from './diff.ts';
import type { Scope, View } from './names.ts';
import { printKey } from './print.ts';
import type { Element } from './rule.ts';
import type { TableShape } from './ruleset.ts';

interface Counted {
  readonly element: Element;
  count: number;
}

interface CountedChanges {
  readonly added: readonly Element[];
  readonly removed: readonly Element[];
}

export class ReferenceCounts {
  /** By set and key. Mostly one; two where a node port and a service's address are the same with other time-outs. */
  readonly #elements = new Map<string, Map<string, readonly Counted[]>>();
  readonly #touched = new Map<string, Map<string, Element | undefined>>();
  readonly #pools = new UseCounts<PoolSize>();
  readonly #affinity = new UseCounts<AffinityTimeout>();

  /** With the sizes and time-outs of one before it, as long as they are not retired. */
  constructor(before?: { readonly counts: ReferenceCounts; readonly now: number }) {
    if (!before) return;
    this.#pools.takeOver(before.counts.#pools, before.now);
    this.#affinity.takeOver(before.counts.#affinity, before.now);
  }

  /** While it is the same, so is the shape. */
  get version(): number {
    return this.#pools.version + this.#affinity.version;
  }

  add({ counted, pools, affinity }: NftFragment): void {
    for (const element of counted) this.#count(element, 1);
    for (const pool of pools) this.#pools.add(poolKey(pool), pool);
    if (affinity) this.#affinity.add(affinityKey(affinity), affinity);
  }

  remove({ counted, pools, affinity }: NftFragment, now: number): void {
    for (const element of counted) this.#count(element, -1);
    for (const pool of pools) this.#pools.remove(poolKey(pool), now);
    if (affinity) this.#affinity.remove(affinityKey(affinity), now);
  }

  /** Since when some size or time-out is in no use; undefined if all are used. */
  get idleSince(): number | undefined {
    const [pools, affinity] = [this.#pools.idleSince, this.#affinity.idleSince];
    return pools === undefined || affinity === undefined ? (pools ?? affinity) : Math.min(pools, affinity);
  }

  /** Sizes and time-outs that were not used since then leave the shape. */
  retire(since: number): void {
    this.#pools.retire(since);
    this.#affinity.retire(since);
  }

  /** What was added and deleted since the last call. */
  takeChanges(): CountedChanges {
    const added: Element[] = [];
    const removed: Element[] = [];
    for (const [set, touched] of this.#touched) {
      for (const [key, before] of touched) {
        const now = first(this.#elements.get(set)?.get(key));
        if (before && now && sameValue(before, now)) continue;
        if (now) added.push(now);
        if (before) removed.push(before);
      }
    }
    this.#touched.clear();
    return { added, removed };
  }

  *elements(): Generator<Element> {
    for (const ofSet of this.#elements.values())
      for (const all of ofSet.values()) {
        const element = first(all);
        if (element) yield element;
      }
  }

  shape(hasServiceCidrs: boolean): TableShape {
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
    const known = elements.get(key) ?? [];
    if (!touched.has(key)) touched.set(key, first(known));
    const same = known.find((each) => sameValue(each.element, element));
    if (same) same.count += by;
    else if (by > 0) elements.set(key, inOrder([...known, { element, count: by }]));
    if (same?.count !== 0) return;
    if (known.length === 1) elements.delete(key);
    else
      elements.set(
        key,
        known.filter((each) => each !== same),
      );
  }
}

/** The same one, whichever came first. */
function inOrder(counted: readonly Counted[]): readonly Counted[] {
  return counted.length === 1
    ? counted
    : counted.toSorted((a, b) => ((a.element.chain ?? '') < (b.element.chain ?? '') ? -1 : 1));
}

function first(counted: readonly Counted[] | undefined): Element | undefined {
  return counted?.[0]?.element;
}

function poolKey({ scope, view, size }: PoolSize): string {
  return `${scope} ${view} ${size}`;
}

function affinityKey({ protocol, seconds }: AffinityTimeout): string {
  return `${protocol} ${seconds}`;
}

function inner<V>(maps: Map<string, Map<string, V>>, key: string): Map<string, V> {
  let map = maps.get(key);
  if (!map) maps.set(key, (map = new Map<string, V>()));
  return map;
}

/** Things that come with the first who uses them, and may go some time after the last. */
interface Used<T> {
  readonly key: string;
  readonly thing: T;
  uses: number;
  /** Since when it has no user. */
  idleSince: number | undefined;
}

class UseCounts<T> {
  readonly #used = new Map<string, Used<T>>();
  readonly #idle = new Set<Used<T>>();
  /** While it is the same, so are the things. */
  version = 0;

  /** All that `before` has, without a user. */
  takeOver(before: UseCounts<T>, now: number): void {
    for (const [key, { thing }] of before.#used) {
      this.add(key, thing);
      this.remove(key, now);
    }
  }

  add(key: string, thing: T): void {
    const known = this.#used.get(key);
    if (!known) {
      this.#used.set(key, { key, thing, uses: 1, idleSince: undefined });
      this.version++;
      return;
    }
    known.uses++;
    known.idleSince = undefined;
    this.#idle.delete(known);
  }

  remove(key: string, now: number): void {
    const known = this.#used.get(key);
    if (!known || --known.uses > 0) return;
    known.idleSince = now;
    this.#idle.add(known);
  }

  /** Drops what has not been used since then. */
  retire(since: number): void {
    for (const used of this.#idle) {
      if (used.idleSince === undefined || used.idleSince > since) return; // they became idle in this order
      this.#used.delete(used.key);
      this.#idle.delete(used);
      this.version++;
    }
  }

  /** Of what has been idle longest. */
  get idleSince(): number | undefined {
    const [first] = this.#idle;
    return first?.idleSince;
  }

  *values(): Generator<T> {
    for (const { thing } of this.#used.values()) yield thing;
  }
}
