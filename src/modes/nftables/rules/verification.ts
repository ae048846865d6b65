/**
 * Compares the table with what was written, beside the syncs and in slices. Nothing is repaired here: what seems to
 * differ is noted, and the next sync looks at exactly that.
 *
 * Elements are looked up by their keys, which takes the kernel the same time in a large set as in a small one; a dump
 * does not: ten seconds for three hundred thousand elements. Elements of others are not found that way, but make a set
 * larger than it should be. Only such a set is read, between commits, which do not wait for it.
 */
import type { ServicePortId } from '../../../model/serviceTracker.ts';
import type { ServicePortPlan } from '../../../plan/types.ts';
import type { ServicePortPlans } from '../../../proxy/reconciler.ts';
import { forEachSliced, type TimeSlice } from '../../../time/timeSlice.ts';
import { idOf, isSameElement } from './diff.ts';
import { byName, groupBy, isOfIntervals } from './table.ts';
import type { Element, NftClient, Ruleset, TableState } from './table.ts';

/** What was written, as it is now. */
export interface WrittenTable {
  readonly client: NftClient;
  ruleset(): Ruleset;
  readonly servicePorts: ServicePortPlans;
  /** Elements that belong to several service ports; where they are changed meanwhile, as they are when it is their turn. */
  shared(): Iterable<Element>;
  /** How many of them each set has. */
  sharedSizes(): ReadonlyMap<string, number>;
  /** Elements of no service port. */
  readonly fixed: readonly Element[];
  readonly compile: (port: ServicePortPlan) => readonly Element[];
  /** Raised when a sync begins. */
  syncs(): number;
  /** Waits until no sync is under way. False: what was written is not known any more, or everything was read meanwhile. */
  quiet(): Promise<boolean>;
}

export interface Suspects {
  readonly elements: readonly Element[];
  /** What is in these has to be read. */
  readonly sets: ReadonlySet<string>;
  /** The table, sets or chains that differ, for people. */
  readonly structure: readonly string[];
}

/** So many elements are compiled and written in a few milliseconds, and looked up in as many. */
const ELEMENTS_PER_LOOKUP = 500;
const LOOKUPS_UNDER_WAY = 2;
/** With more than this, reading the set is cheaper. */
const MOST_SUSPECTS = 1000;
const TRIES = 5;
/** Service ports that changed meanwhile and are counted without a pause. */
const RECOUNTED = 100;

export class TableVerification {
  readonly #table: WrittenTable;
  readonly #timeSlice: TimeSlice;
  readonly #elements: Element[] = [];
  readonly #sets = new Set<string>();
  readonly #structure = new Set<string>();
  readonly #missing = new Map<string, number>();
  readonly #underWay: Promise<void>[] = [];
  /** Service ports as they were counted, and how many elements of their own each set should have. */
  readonly #counted = new Map<ServicePortId, ServicePortPlan>();
  readonly #sizes = new Map<string, number>();
  #checked = 0;

  constructor(table: WrittenTable, timeSlice: TimeSlice) {
    this.#table = table;
    this.#timeSlice = timeSlice;
  }

  /** How many elements, chains and sets were compared. */
  get checked(): number {
    return this.#checked;
  }

  /** `undefined`: it could not be finished, because everything was read meanwhile. */
  async run(): Promise<Suspects | undefined> {
    try {
      const isThere = await this.#compareStructure();
      if (isThere === undefined) return undefined;
      if (isThere && !((await this.#compareElements()) && (await this.#compareSizes()))) return undefined;
    } finally {
      await Promise.allSettled(this.#underWay);
    }
    const elements = this.#elements.filter(({ set }) => !this.#sets.has(set));
    const sets = Array.from(this.#sets, (name) => `set ${name}`);
    return { elements, sets: this.#sets, structure: [...new Set([...this.#structure, ...sets])] };
  }

  /** Returns whether the table is there; `undefined`: give up. */
  async #compareStructure(): Promise<boolean | undefined> {
    for (let tries = 1; ; tries++) {
      if (!(await this.#table.quiet())) return undefined;
      const { client, fixed } = this.#table;
      const [ruleset, syncs] = [this.#table.ruleset(), this.#table.syncs()];
      const intervals = new Set(ruleset.sets.filter(isOfIntervals).map(({ name }) => name));
      const found = differences(await client.inspect(ruleset, intervals), ruleset, fixed);
      // What differs may be what a sync has written meanwhile.
      if (found.objects.length > 0 && this.#table.syncs() !== syncs && tries < TRIES) continue;
      this.#checked += ruleset.sets.length + ruleset.chains.length;
      for (const object of found.objects) this.#structure.add(object);
      for (const set of found.sets) this.#sets.add(set);
      return found.isThere;
    }
  }

  async #compareElements(): Promise<boolean> {
    const { servicePorts } = this.#table;
    const ids = [...servicePorts.keys()];
    for (let at = 0; at < ids.length; ) {
      if (!(await this.#table.quiet())) return false;
      // From here to the lookup without a pause: the kernel answers before the next sync writes.
      const elements: Element[] = [];
      for (; at < ids.length && elements.length < ELEMENTS_PER_LOOKUP; at++) {
        const own = this.#count(ids[at]);
        for (const element of own) elements.push(element);
      }
      await this.#lookUp(elements);
    }
    await this.#lookUp(this.#table.fixed);
    const shared = this.#table.shared()[Symbol.iterator]();
    for (let isDone = false; !isDone; ) {
      if (!(await this.#table.quiet())) return false;
      const elements: Element[] = [];
      while (!isDone && elements.length < ELEMENTS_PER_LOOKUP) {
        const next = shared.next();
        if (next.done) isDone = true;
        else elements.push(withoutComment(next.value));
      }
      await this.#lookUp(elements);
    }
    await Promise.all(this.#underWay);
    return true;
  }

  /** Counts its elements as they are now, in place of those that were counted before. */
  #count(id: ServicePortId | undefined): readonly Element[] {
    if (id === undefined) return [];
    const { servicePorts, compile } = this.#table;
    const before = this.#counted.get(id);
    const now = servicePorts.get(id);
    if (before) for (const { set } of compile(before)) this.#resize(set, -1);
    const elements = now ? compile(now) : [];
    for (const { set } of elements) this.#resize(set, 1);
    if (now) this.#counted.set(id, now);
    else this.#counted.delete(id);
    return elements;
  }

  #resize(set: string, by: number): void {
    this.#sizes.set(set, (this.#sizes.get(set) ?? 0) + by);
  }

  /** Resolves when there is room for the next one. */
  async #lookUp(all: readonly Element[]): Promise<void> {
    const sets = byName(this.#table.ruleset().sets.filter((set) => !isOfIntervals(set)));
    // Those of a set that is to be read, or that a sync is about to add.
    const elements = all.filter(({ set }) => sets.has(set) && !this.#sets.has(set));
    for (let at = 0; at < elements.length; at += ELEMENTS_PER_LOOKUP) {
      const some = elements.slice(at, at + ELEMENTS_PER_LOOKUP);
      const lookup = this.#table.client.differing(some, sets).then((found) => {
        this.#checked += some.length;
        for (const { element, isMissing } of found) this.#suspect(element, isMissing);
      });
      lookup.catch(() => undefined); // thrown by whoever waits for it
      this.#underWay.push(lookup);
      if (this.#underWay.length >= LOOKUPS_UNDER_WAY) await this.#underWay.shift();
      const pause = this.#timeSlice.pause();
      if (pause) await pause;
    }
  }

  #suspect(element: Element, isMissing: boolean): void {
    this.#elements.push(element);
    if (isMissing) this.#missing.set(element.set, (this.#missing.get(element.set) ?? 0) + 1);
    const isFlood = this.#elements.length > MOST_SUSPECTS;
    if (isFlood) for (const { set } of this.#elements.splice(0)) this.#sets.add(set);
  }

  /** Sets that have more elements than they should are read, and those that nobody wants become suspects. */
  async #compareSizes(): Promise<boolean> {
    let odd = new Map<string, number | undefined>();
    for (let tries = 0; tries < TRIES; tries++) {
      if (!(await this.#recount())) return false;
      const { sets } = this.#table.ruleset();
      const expected = this.#expectedSizes();
      const sizes = await this.#table.client.sizes();
      odd = new Map();
      for (const set of sets) {
        const { name, dynamicSize } = set;
        if (isOfIntervals(set) || dynamicSize !== undefined || this.#sets.has(name)) continue;
        const size = sizes.get(name);
        const extra = size === undefined ? undefined : size - (expected.get(name) ?? 0);
        if (extra !== 0) odd.set(name, extra);
      }
      if (odd.size === 0) return true;
    }
    return this.#findExtra(odd);
  }

  #expectedSizes(): ReadonlyMap<string, number> {
    const expected = new Map(this.#sizes);
    for (const [set, size] of this.#table.sharedSizes()) expected.set(set, (expected.get(set) ?? 0) + size);
    for (const { set } of this.#table.fixed) expected.set(set, (expected.get(set) ?? 0) + 1);
    for (const [set, size] of this.#missing) expected.set(set, (expected.get(set) ?? 0) - size);
    return expected;
  }

  /** Until all are counted as they are now, and no sync is under way. */
  async #recount(): Promise<boolean> {
    for (;;) {
      if (!(await this.#table.quiet())) return false;
      this.#timeSlice.begin();
      const changed = this.#uncounted();
      for (const id of changed.slice(0, RECOUNTED)) this.#count(id);
      if (changed.length <= RECOUNTED) return true;
      const pause = this.#timeSlice.pause();
      if (pause) await pause;
    }
  }

  #uncounted(): readonly ServicePortId[] {
    const { servicePorts } = this.#table;
    const changed: ServicePortId[] = [];
    for (const [id, port] of servicePorts) if (this.#counted.get(id) !== port) changed.push(id);
    for (const id of this.#counted.keys()) if (!servicePorts.has(id)) changed.push(id);
    return changed;
  }

  /** `undefined`: the kernel does not say how many there are. */
  async #findExtra(odd: ReadonlyMap<string, number | undefined>): Promise<boolean> {
    const { client, servicePorts, compile, fixed } = this.#table;
    const sets = this.#table.ruleset().sets.filter(({ name }) => odd.has(name));
    const lists = new Map(sets.map((set) => [set.name, client.keyList(set)]));
    const add = (element: Element): void => lists.get(element.set)?.add(element);
    await forEachSliced(servicePorts.values(), (port) => compile(port).forEach(add), this.#timeSlice);
    await forEachSliced(this.#table.shared(), add, this.#timeSlice, ELEMENTS_PER_LOOKUP);
    fixed.forEach(add);
    for (const set of sets) {
      const list = lists.get(set.name);
      const others = list && (await client.others(set, list));
      for (const element of others ?? []) this.#suspect(element, false);
      const extra = odd.get(set.name);
      const isExplained = others && (extra === undefined || (extra >= 0 && extra <= others.length));
      if (!isExplained) this.#sets.add(set.name);
    }
    return this.#table.quiet();
  }
}

/** Of a shared element it is that of any of its users. */
function withoutComment(element: Element): Element {
  if (element.comment === undefined) return element;
  const { comment: _, ...rest } = element;
  return rest;
}

interface Structure {
  readonly isThere: boolean;
  readonly objects: readonly string[];
  readonly sets: readonly string[];
}

function differences(
  state: TableState | undefined,
  { sets, chains }: Ruleset,
  fixed: readonly Element[],
): Structure {
  if (!state) return { isThere: false, objects: ['the table'], sets: [] };
  const [wantedSets, wantedChains] = [byName(sets), byName(chains)];
  const elements = groupBy(fixed, ({ set }) => set);
  const different = sets
    .filter((set) => {
      const { name } = set;
      if (state.sets.get(name) !== 'same') return true;
      const found = state.elements.get(name);
      return isOfIntervals(set) && !hasExactly(found, elements.get(name) ?? []);
    })
    .map(({ name }) => name);
  const unknown = state.deleteUnknown ? [...state.elements.keys()] : [];
  const changed = [...new Set([...different, ...unknown])];
  return {
    isThere: true,
    sets: changed,
    objects: [
      ...(state.isDormant ? ['the table'] : []),
      ...changed.map((name) => `set ${name}`),
      ...[...state.sets.keys()].filter((name) => !wantedSets.has(name)).map((name) => `set ${name}`),
      ...chains.filter(({ name }) => state.chains.get(name) !== 'same').map(({ name }) => `chain ${name}`),
      ...[...state.chains.keys()].filter((name) => !wantedChains.has(name)).map((name) => `chain ${name}`),
    ],
  };
}

function hasExactly(found: ReadonlyMap<string, Element> | undefined, wanted: readonly Element[]): boolean {
  const byId = new Map(Array.from(found?.values() ?? [], (element) => [idOf(element), element]));
  return (
    byId.size === wanted.length &&
    wanted.every((element) => {
      const same = byId.get(idOf(element));
      return same !== undefined && isSameElement(same, element);
    })
  );
}
