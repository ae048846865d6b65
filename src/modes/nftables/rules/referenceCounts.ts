/**
 * Reference counts of what several service ports share: elements that are deleted with their last user, the sizes of
 * pools, the time-outs of affinity. From them follows the shape of the table.
 */
import { flat } from '../../../model/flat.ts';
import type { Plan } from '../../../plan/types.ts';
import { AddressCounts, onlyAddress } from './addressCounts.ts';
import { compileElements, type NftFragment, type TablePart } from './compile.ts';
import { idOf, sameValue } from './diff.ts';
import type { Scope, View } from './names.ts';
import { fixedElements, type NftSettings, rulesetOf, type TableShape } from './ruleset.ts';
import type { Element, ElementChanges, FilledTable } from './table.ts';

interface Counted {
  readonly element: Element;
  count: number;
}

const NONE: readonly Counted[] = [];

/** A pool size or a time-out: added to the table with its first user, deleted some time after the last. */
interface Used {
  readonly key: string;
  readonly part: TablePart;
  uses: number;
  /** Since when it has no user. */
  idleSince: number | undefined;
}

export class ReferenceCounts {
  readonly #addresses = new AddressCounts();
  /** The others, by set and key. Mostly one; two where a node port and a service's address are the same with other time-outs. */
  readonly #elements = new Map<string, readonly Counted[]>();
  /** How many of them each set has. */
  readonly #sizes = new Map<string, number>();
  /** What they were before the changes. */
  readonly #touched = new Map<string, Element | undefined>();
  readonly #used = new Map<string, Used>();
  /** In the order in which they became idle. */
  readonly #idle = new Set<Used>();
  #version = 0;

  /** With the sizes and time-outs of one before it, until they are retired. */
  constructor(before?: { readonly counts: ReferenceCounts; readonly now: number }) {
    if (!before) return;
    this.addIdle(before.counts.parts, before.now);
  }

  /** While it is the same, so is the shape. */
  get version(): number {
    return this.#version;
  }

  add({ counted, parts }: NftFragment): void {
    for (const element of counted) this.#count(element, 1);
    for (const part of parts) this.#use(part);
  }

  /** Of what is in the table already, or is written as a whole: it is no change. */
  addWritten({ counted, parts }: NftFragment): void {
    for (const element of counted) {
      const address = onlyAddress(element);
      if (address === undefined) this.#count(element, 1, false);
      else this.#addresses.countWritten(element.set, address);
    }
    for (const part of parts) this.#use(part);
  }

  remove({ counted, parts }: NftFragment, now: number): void {
    for (const element of counted) this.#count(element, -1);
    for (const part of parts) this.#release(part, now);
  }

  #use(part: TablePart): void {
    const key = partKey(part);
    const known = this.#used.get(key);
    if (known) {
      known.uses++;
      known.idleSince = undefined;
      this.#idle.delete(known);
      return;
    }
    this.#used.set(key, { key, part, uses: 1, idleSince: undefined });
    this.#version++;
  }

  #release(part: TablePart, now: number): void {
    const known = this.#used.get(partKey(part));
    if (!known || --known.uses > 0) return;
    known.idleSince = now;
    this.#idle.add(known);
  }

  /** Since when some size or time-out is in no use; undefined if all are used. */
  get idleSince(): number | undefined {
    const [longest] = this.#idle;
    return longest?.idleSince;
  }

  /** Sizes and time-outs that were not used since then leave the shape. */
  retire(since: number): void {
    for (const used of this.#idle) {
      if (used.idleSince === undefined || used.idleSince > since) return;
      this.#used.delete(used.key);
      this.#idle.delete(used);
      this.#version++;
    }
  }

  /** What was added and deleted since the last call. */
  takeChanges(): ElementChanges {
    const adds: Element[] = [];
    const removes: Element[] = [];
    const addresses = this.#addresses.takeChanges();
    for (const [id, before] of this.#touched) {
      const now = this.#elements.get(id)?.[0]?.element;
      if (before && now && sameValue(before, now)) continue;
      if (now) adds.push(now);
      if (before) removes.push(before);
    }
    this.#touched.clear();
    return { removes: [...addresses.removes, ...removes], adds: [...addresses.adds, ...adds] };
  }

  /** Sizes and time-outs that are there, whether somebody uses them or not. */
  addIdle(parts: Iterable<TablePart>, now: number): void {
    for (const part of parts) {
      this.#use(part);
      this.#release(part, now);
    }
  }

  /** Sizes and time-outs that the table has. */
  get parts(): readonly TablePart[] {
    return Array.from(this.#used.values(), ({ part }) => part);
  }

  *elements(): Generator<Element> {
    yield* this.#addresses.elements();
    for (const [first] of this.#elements.values()) if (first) yield first.element;
  }

  /** How many elements are in each set. */
  get sizes(): ReadonlyMap<string, number> {
    const sizes = new Map(this.#sizes);
    for (const [set, size] of this.#addresses.sizes()) sizes.set(set, (sizes.get(set) ?? 0) + size);
    return sizes;
  }

  shape(hasServiceCidrs: boolean): TableShape {
    const { parts } = this;
    const sizes = (scope: Scope, view: View): readonly number[] =>
      parts
        .flatMap((part) => ('size' in part && part.scope === scope && part.view === view ? [part.size] : []))
        .sort((a, b) => a - b);
    return {
      sizes: {
        address: { any: sizes('address', 'any'), outside: sizes('address', 'outside') },
        nodePort: { any: sizes('nodePort', 'any'), outside: sizes('nodePort', 'outside') },
      },
      affinity: parts
        .flatMap((part) => ('seconds' in part ? [part] : []))
        .sort((a, b) =>
          a.protocol === b.protocol ? a.seconds - b.seconds : a.protocol < b.protocol ? -1 : 1,
        ),
      hasServiceCidrs,
    };
  }

  #count(element: Element, by: 1 | -1, isChange = true): void {
    const address = onlyAddress(element);
    if (address !== undefined) {
      this.#addresses.count(element.set, address, by);
      return;
    }
    const id = idOf(element);
    const known = this.#elements.get(id) ?? NONE;
    if (isChange && !this.#touched.has(id)) this.#touched.set(id, known[0]?.element);
    const same = known.find((each) => sameValue(each.element, element));
    if (known.length === 0 && by > 0) this.#resize(element.set, 1);
    if (same) same.count += by;
    else if (by > 0) this.#elements.set(flat(id), inOrder([...known, { element, count: by }]));
    if (same?.count !== 0) return;
    const left = known.filter((each) => each !== same);
    if (left.length > 0) {
      this.#elements.set(id, left);
      return;
    }
    this.#elements.delete(id);
    this.#resize(element.set, -1);
  }

  #resize(set: string, by: 1 | -1): void {
    this.#sizes.set(set, (this.#sizes.get(set) ?? 0) + by);
  }
}

/** The same one, whichever came first. */
function inOrder(counted: readonly Counted[]): readonly Counted[] {
  return counted.length === 1
    ? counted
    : counted.toSorted((a, b) => ((a.element.chain ?? '') < (b.element.chain ?? '') ? -1 : 1));
}

function partKey(part: TablePart): string {
  return 'size' in part ? `${part.scope} ${part.view} ${part.size}` : `${part.protocol} ${part.seconds}`;
}

/** The whole table for a plan, written from nothing: for people to read, for `nft -f`, and for trials. */
export function wholeTable({ family, view, servicePorts }: Plan, settings: NftSettings): FilledTable {
  const options = { ...settings, family, view };
  const counts = new ReferenceCounts();
  const own: Element[] = [];
  for (const port of servicePorts.values()) {
    const fragment = compileElements(port, options);
    counts.add(fragment);
    own.push(...fragment.elements);
  }
  const ruleset = rulesetOf(counts.shape(settings.serviceCidrs.length > 0), options);
  return { ...ruleset, elements: [...counts.elements(), ...fixedElements(options), ...own] };
}
