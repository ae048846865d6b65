/**
 * Reference counts of what several service ports share: elements that are deleted with their last user, the sizes of
 * pools, the time-outs of affinity. From them follows the shape of the table.
 */
import { flat } from '../../../model/flat.ts';
import { type Protocol, PROTOCOLS } from '../../../model/objects.ts';
import type { Plan } from '../../../plan/types.ts';
import { compileElements, type NftFragment, type TablePart } from './compile.ts';
import { idOf, sameValue } from './diff.ts';
import { SCOPE_LIST, type Scope, type View } from './names.ts';
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
  idleSince: number;
}

export class ReferenceCounts {
  /** By set and key. Mostly one; two where a node port and a service's address are the same with other time-outs. */
  readonly #elements = new Map<string, readonly Counted[]>();
  /** What they were before the changes. */
  readonly #touched = new Map<string, Element | undefined>();
  readonly #used = new Map<string, Used>();
  /** In the order in which they became idle. */
  readonly #idle = new Set<Used>();
  #version = 0;

  /** While it is the same, so is the shape. */
  get version(): number {
    return this.#version;
  }

  add({ counted, parts }: NftFragment): void {
    for (const element of counted) this.#count(element, 1);
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
      this.#idle.delete(known);
      return;
    }
    this.#used.set(key, { key, part, uses: 1, idleSince: 0 });
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
      if (used.idleSince > since) return;
      this.#used.delete(used.key);
      this.#idle.delete(used);
      this.#version++;
    }
  }

  /** What was added and deleted since the last call. */
  takeChanges(): ElementChanges {
    const adds: Element[] = [];
    const removes: Element[] = [];
    for (const [id, before] of this.#touched) {
      const now = this.#elements.get(id)?.[0]?.element;
      if (before && now && sameValue(before, now)) continue;
      if (now) adds.push(now);
      if (before) removes.push(before);
    }
    this.#touched.clear();
    return { removes, adds };
  }

  *elements(): Generator<Element> {
    for (const [first] of this.#elements.values()) if (first) yield first.element;
  }

  shape(hasServiceCidrs: boolean): TableShape {
    const parts = Array.from(this.#used.values(), ({ part }) => part);
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

  #count(element: Element, by: 1 | -1): void {
    const id = idOf(element);
    const known = this.#elements.get(id) ?? NONE;
    if (!this.#touched.has(id)) this.#touched.set(id, known[0]?.element);
    const same = known.find((each) => sameValue(each.element, element));
    if (same) same.count += by;
    else if (by > 0) this.#elements.set(flat(id), inOrder([...known, { element, count: by }]));
    if (same?.count !== 0) return;
    const left = known.filter((each) => each !== same);
    if (left.length > 0) this.#elements.set(id, left);
    else this.#elements.delete(id);
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

const POOL = /^(ports-)?(any|outside)-(\d{1,9})$/;
const STICKY = /^sticky-([a-z]+)-(\d{1,9})$/;
const [ADDRESS, NODE_PORT] = SCOPE_LIST;

/** Pool sizes and time-outs that a table has, by the names of its sets and chains. */
export function partsIn(names: Iterable<string>): readonly TablePart[] {
  const parts: TablePart[] = [];
  for (const name of names) {
    const [, prefix, view, size] = POOL.exec(name) ?? [];
    const scope = prefix === undefined ? ADDRESS : NODE_PORT;
    if (scope && view !== undefined) parts.push({ scope, view: view as View, size: Number(size) });
    const [, word, seconds] = STICKY.exec(name) ?? [];
    const protocol = PROTOCOLS.find((each: Protocol) => each.toLowerCase() === word);
    if (protocol) parts.push({ protocol, seconds: Number(seconds) });
  }
  return parts;
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
