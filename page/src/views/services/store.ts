/**
 * The table of services, kept while the page is open: who comes back to it sees it without waiting. After events only the
 * services that changed are asked for; while nobody looks at the table, none.
 */
import { serviceLine } from '../../../../src/explain/serviceTable.ts';
import type { ServiceRow, WatchEvent } from '../../../../src/explain/types.ts';
import { serviceOfPortId } from '../../../../src/model/serviceTracker.ts';
import { type ApiFailure, askJson } from '../../api.ts';
import { live } from '../../live.ts';
import { Refresher } from '../../refresher.ts';
import { failureOf, mayPass } from '../../useAnswer.ts';
import { serviceQuestions } from './batches.ts';
import { differingLines, type LineChanges, withChanges } from './changes.ts';
import { readLine, type ServiceLine } from './line.ts';
import { loadLines } from './loadLines.ts';

export interface StoredServices {
  /** By name. */
  readonly lines: readonly ServiceLine[];
  /** `first`: more are on their way. */
  readonly progress: 'loading' | 'first' | 'all';
  readonly at: number;
  readonly failure?: ApiFailure | undefined;
  /** Those that changed while they were looked at, each with when. */
  readonly changed: ReadonlyMap<string, number>;
}

/** Events of one sync come together. */
const TOGETHER_MS = 150;
/** The whole table is one question, and so many services would be several. */
const MOST_SERVICES = 300;
/** Of what is seen: rates change without an event. */
const SEEN_PAUSE_MS = 5000;
const MARKED_MS = 2500;

class ServiceStore {
  #now: StoredServices = {
    lines: [],
    progress: 'loading',
    at: 0,
    changed: new Map(),
  };
  readonly #watchers = new Set<() => void>();
  readonly #pending = new Set<string>();
  #isSubscribed = false;
  #isOld = true;
  #isAsking = false;
  #views = 0;
  #flushTimer: ReturnType<typeof setTimeout> | undefined;
  #seenTimer: ReturnType<typeof setTimeout> | undefined;
  #seen: readonly string[] = [];
  #isAllSeen = false;
  readonly #whole = new Refresher<readonly ServiceLine[]>({
    ask: (signal) => live.opened().then(() => this.#load(signal)),
    onAnswer: (lines) => this.#replace(lines),
    onFailure: (error) => {
      this.#isOld = true;
      this.#set({ failure: failureOf(error) });
    },
    mayPass: (error) => this.#views > 0 && mayPass(error),
  });

  get now(): StoredServices {
    return this.#now;
  }

  onChange(watcher: () => void): () => void {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  /** Somebody looks at it. Returns what ends that. */
  open(): () => void {
    if (!this.#isSubscribed) live.subscribe((events) => this.#onEvents(events));
    this.#isSubscribed = true;
    this.#views++;
    if (this.#isOld) this.#whole.now();
    else this.#flushSoon();
    this.#askForSeenLater();
    return () => {
      if (--this.#views === 0) this.#askForSeenLater();
    };
  }

  again(): void {
    this.#whole.now();
  }

  /** `isAll`: what is seen depends on all, as in the order of rates. */
  setSeen(services: readonly string[], isAll: boolean): void {
    this.#seen = services;
    this.#isAllSeen = isAll;
  }

  #set(change: Partial<StoredServices>): void {
    this.#now = { ...this.#now, ...change };
    for (const watcher of this.#watchers) watcher();
  }

  #load(signal: AbortSignal): Promise<readonly ServiceLine[]> {
    this.#isOld = false;
    this.#pending.clear();
    this.#isAsking = true;
    const isFirst = this.#now.progress !== 'all';
    return loadLines(signal, (lines) => {
      if (isFirst) this.#set({ lines, progress: 'first', at: Date.now() });
    }).finally(() => (this.#isAsking = false));
  }

  #replace(lines: readonly ServiceLine[]): void {
    const { progress, lines: before } = this.#now;
    const names = progress === 'all' ? differingLines(before, lines) : [];
    // After a long gap everything may be another: that is no change to be seen.
    const changed = names.length > MOST_SERVICES ? this.#now.changed : this.#marked(names);
    this.#set({ lines, progress: 'all', at: Date.now(), failure: undefined, changed });
    this.#flushSoon();
    this.#askForSeenLater();
  }

  #onEvents(events: readonly WatchEvent[]): void {
    if (events.length === 0 || events.some(({ kind }) => kind === 'lost')) this.#isOld = true;
    for (const event of events) {
      if (event.kind === 'change') this.#pending.add(event.service);
      if (event.kind === 'refused') this.#pending.add(serviceOfPortId(event.servicePort));
    }
    if (this.#pending.size > MOST_SERVICES) this.#isOld = true;
    if (this.#isOld) this.#pending.clear();
    if (this.#views === 0) return;
    if (this.#isOld) this.#whole.touch();
    else this.#flushSoon();
  }

  #flushSoon(): void {
    if (this.#pending.size === 0 || this.#flushTimer !== undefined) return;
    this.#flushTimer = setTimeout(() => {
      this.#flushTimer = undefined;
      void this.#flush();
    }, TOGETHER_MS);
  }

  async #flush(): Promise<void> {
    if (this.#views === 0 || this.#isAsking || this.#isOld) return;
    const services = [...this.#pending];
    this.#pending.clear();
    const changes = await this.#ask(services);
    if (changes) this.#apply(changes, services);
  }

  /** Neither in a hidden tab nor of a recording. */
  #askForSeenLater(): void {
    clearTimeout(this.#seenTimer);
    this.#seenTimer = undefined;
    if (this.#views === 0 || document.hidden || live.state.kind !== 'connected') return;
    this.#seenTimer = setTimeout(() => this.#askForSeen(), SEEN_PAUSE_MS);
  }

  #askForSeen(): void {
    this.#seenTimer = undefined;
    if (document.hidden || this.#views === 0 || live.state.kind !== 'connected') return;
    const services = this.#seen.filter((service) => !this.#pending.has(service));
    if (services.length === 0 || this.#isAsking || this.#isOld) this.#askForSeenLater();
    else if (this.#isAllSeen) this.#whole.touch();
    else void this.#ask(services).then((changes) => changes && this.#apply(changes, []));
  }

  /** Nothing where they cannot be asked for; the whole table will be. */
  async #ask(services: readonly string[]): Promise<LineChanges | undefined> {
    this.#isAsking = true;
    try {
      const changes = new Map<string, ServiceLine | undefined>(
        services.map((service) => [service, undefined]),
      );
      for (const question of serviceQuestions(services))
        for (const row of await askJson<readonly ServiceRow[]>(question))
          changes.set(row.service, readLine(serviceLine(row)));
      return changes;
    } catch {
      this.#isOld = true;
      if (this.#views > 0) this.#whole.touch();
      return undefined;
    } finally {
      this.#isAsking = false;
      this.#flushSoon();
      this.#askForSeenLater();
    }
  }

  #apply(changes: LineChanges, marked: readonly string[]): void {
    const lines = withChanges(this.#now.lines, changes);
    this.#set({ lines, at: Date.now(), changed: this.#marked(marked), failure: undefined });
  }

  #marked(services: readonly string[]): ReadonlyMap<string, number> {
    const now = Date.now();
    const marks = new Map([...this.#now.changed].filter(([, at]) => now - at < MARKED_MS));
    for (const service of services) marks.set(service, now);
    if (services.length > 0) setTimeout(() => this.#set({ changed: this.#marked([]) }), MARKED_MS + 50);
    return marks;
  }
}

export const serviceStore = new ServiceStore();
