/**
 * The table of services, kept while the page is open: who comes back to it sees it without waiting. After events only the
 * services that changed are asked for; while nobody looks at the table, none.
 */
import { serviceLine } from '../../../../src/explain/serviceTable.ts';
import type { ServiceRow, WatchEvent } from '../../../../src/explain/types.ts';
import { serviceOfPortId } from '../../../../src/model/serviceTracker.ts';
import { type ApiFailure, failureOf } from '../../apiFailure.ts';
import { Refresher } from '../../refresher.ts';
import { serviceQuestions } from './batches.ts';
import { differingLines, type LineChanges, withChanges } from './changes.ts';
import { readLine, type ServiceLine } from './line.ts';

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

interface ServiceStoreOptions {
  /** All, by name. `onFirst`: enough to fill a screen. */
  readonly load: (
    signal: AbortSignal,
    onFirst: (lines: readonly ServiceLine[]) => void,
  ) => Promise<readonly ServiceLine[]>;
  /** Rows of the services that the question names. */
  readonly ask: (question: string) => Promise<readonly ServiceRow[]>;
  readonly subscribe: (listener: (events: readonly WatchEvent[]) => void) => void;
  readonly mayPass: (error: unknown) => boolean;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

/** Events of one sync come together. */
const TOGETHER_MS = 150;
/** The whole table is one question, and so many services would be several. */
const MOST_SERVICES = 300;
const MARKED_MS = 2500;

export class ServiceStore {
  readonly #options: ServiceStoreOptions;
  readonly #watchers = new Set<() => void>();
  readonly #whole: Refresher<readonly ServiceLine[]>;
  /** Changed, and not asked for yet. */
  readonly #pending = new Set<string>();
  #current: StoredServices = { lines: [], progress: 'loading', at: 0, changed: new Map() };
  #isSubscribed = false;
  #isOld = true;
  #loads = 0;
  #isLoading = false;
  #isAsking = false;
  #views = 0;
  #flushTimer: ReturnType<typeof setTimeout> | undefined;

  constructor(options: ServiceStoreOptions) {
    this.#options = options;
    this.#whole = new Refresher<readonly ServiceLine[]>({
      ask: (signal) => this.#load(signal),
      onAnswer: (lines) => this.#replace(lines),
      onFailure: (error) => {
        this.#isOld = true;
        this.#set({ failure: failureOf(error) });
      },
      mayPass: (error) => this.#views > 0 && options.mayPass(error),
    });
  }

  get current(): StoredServices {
    return this.#current;
  }

  onChange(watcher: () => void): () => void {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  /** Somebody looks at it. Returns what ends that. */
  open(): () => void {
    if (!this.#isSubscribed) this.#options.subscribe((events) => this.#onEvents(events));
    this.#isSubscribed = true;
    this.#views++;
    if (this.#isOld) this.#whole.now();
    else this.#flushSoon();
    return () => {
      this.#views--;
    };
  }

  again(): void {
    this.#whole.now();
  }

  #set(change: Partial<StoredServices>): void {
    this.#current = { ...this.#current, ...change };
    for (const watcher of this.#watchers) watcher();
  }

  async #load(signal: AbortSignal): Promise<readonly ServiceLine[]> {
    const { load, now } = this.#options;
    this.#isOld = false;
    this.#pending.clear();
    this.#loads++;
    this.#isLoading = true;
    const isFirst = this.#current.progress !== 'all';
    try {
      return await load(signal, (lines) => {
        if (isFirst) this.#set({ lines, progress: 'first', at: now() });
      });
    } finally {
      this.#isLoading = false;
    }
  }

  #replace(lines: readonly ServiceLine[]): void {
    const { progress, lines: before } = this.#current;
    const names = progress === 'all' ? differingLines(before, lines) : [];
    // After a long gap everything may be another: that is no change to be seen.
    const changed = this.#marked(names.length > MOST_SERVICES ? [] : names);
    this.#set({ lines, progress: 'all', at: this.#options.now(), failure: undefined, changed });
    this.#flushSoon();
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
    if (this.#pending.size === 0 || this.#flushTimer !== undefined || this.#views === 0) return;
    this.#flushTimer = setTimeout(() => {
      this.#flushTimer = undefined;
      if (this.#views === 0 || this.#isLoading || this.#isAsking || this.#isOld) return;
      const services = [...this.#pending];
      this.#pending.clear();
      void this.#askFor(services, services);
    }, TOGETHER_MS);
  }

  async #askFor(services: readonly string[], marked: readonly string[]): Promise<void> {
    const load = this.#loads;
    this.#isAsking = true;
    const changes = await this.#read(services);
    this.#isAsking = false;
    // A table that was asked for later has newer lines.
    if (load === this.#loads) {
      if (changes) this.#apply(changes, marked);
      else this.#isOld = true;
      if (!changes && this.#views > 0) this.#whole.touch();
    }
    this.#flushSoon();
  }

  async #read(services: readonly string[]): Promise<LineChanges | undefined> {
    const changes = new Map<string, ServiceLine | undefined>(services.map((service) => [service, undefined]));
    try {
      for (const question of serviceQuestions(services))
        for (const row of await this.#options.ask(question))
          changes.set(row.service, readLine(serviceLine(row)));
      return changes;
    } catch {
      return undefined;
    }
  }

  #apply(changes: LineChanges, marked: readonly string[]): void {
    const lines = withChanges(this.#current.lines, changes);
    if (lines === this.#current.lines && marked.length === 0) return;
    this.#set({ lines, at: this.#options.now(), changed: this.#marked(marked), failure: undefined });
  }

  #marked(services: readonly string[]): ReadonlyMap<string, number> {
    const now = this.#options.now();
    const marks = new Map([...this.#current.changed].filter(([, at]) => now - at < MARKED_MS));
    for (const service of services) marks.set(service, now);
    if (services.length > 0) setTimeout(() => this.#set({ changed: this.#marked([]) }), MARKED_MS + 50);
    return marks;
  }
}
