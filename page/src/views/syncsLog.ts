/** The events that the page keeps: a ring, of the past that the proxy knows and of what came since. */
import { timeOfEvent } from '../../../src/explain/events.ts';
import type { WatchEvent } from '../../../src/explain/types.ts';

export interface LoggedEvent {
  /** Of this page; newer ones have higher numbers. */
  readonly id: number;
  readonly at: number;
  readonly event: WatchEvent;
}

/** Nothing is known of this time. */
export interface Gap {
  readonly from: number;
  readonly to: number;
}

const MOST_EVENTS = 4000;
const MOST_GAPS = 50;

export class EventLog {
  readonly #most: number;
  #entries: readonly LoggedEvent[] = [];
  /** Not in the list yet: it is copied once for each drawing, not once for each event. */
  #added: LoggedEvent[] = [];
  #gaps: readonly Gap[] = [];
  #nextId = 1;

  constructor(most = MOST_EVENTS) {
    this.#most = most;
  }

  /** Oldest first. Another list after each change, so that one may be kept. */
  get entries(): readonly LoggedEvent[] {
    if (this.#added.length > 0) {
      this.#keep([...this.#entries, ...this.#added]);
      this.#added = [];
    }
    return this.#entries;
  }

  get gaps(): readonly Gap[] {
    return this.#gaps;
  }

  /** What just happened. */
  add(events: readonly WatchEvent[]): void {
    let last = (this.#added.at(-1) ?? this.#entries.at(-1))?.at;
    for (const event of events) {
      const entry = this.#entryOf(event);
      if (event.kind === 'lost') this.#addGap({ from: Math.min(last ?? entry.at, entry.at), to: entry.at });
      last = entry.at;
      this.#added.push(entry);
    }
    if (this.#added.length > this.#most) this.#added = this.#added.slice(-this.#most);
  }

  /**
   * What the proxy knows of the past, with what is here already. If they have nothing in common, something happened
   * between them that nobody knows.
   */
  merge(past: readonly WatchEvent[]): void {
    const before = this.entries;
    const known = new Set(before.map(({ event }) => keyOf(event)));
    const unknown = past.filter((event) => !known.has(keyOf(event)));
    const [first] = unknown;
    if (!first) return;
    const last = before.at(-1)?.at ?? Number.NEGATIVE_INFINITY;
    if (known.size > 0 && unknown.length === past.length && timeOfEvent(first) > last)
      this.#addGap({ from: last, to: timeOfEvent(first) });
    const added = unknown.map((event) => this.#entryOf(event));
    // Numbers follow the order.
    if (added.every(({ at }) => at >= last)) this.#keep([...before, ...added]);
    else
      this.#keep(
        [...before, ...added].sort((a, b) => a.at - b.at).map((entry) => ({ ...entry, id: this.#nextId++ })),
      );
  }

  #entryOf(event: WatchEvent): LoggedEvent {
    return { id: this.#nextId++, at: timeOfEvent(event), event };
  }

  #addGap(gap: Gap): void {
    this.#gaps = [...this.#gaps, gap].slice(-MOST_GAPS);
  }

  #keep(entries: readonly LoggedEvent[]): void {
    this.#entries = entries.slice(-this.#most);
  }
}

/** Records of changes have numbers of their own, which begin again with the proxy. */
function keyOf(event: WatchEvent): string {
  if (event.kind === 'change') return `change ${event.id} ${event.seenAt}`;
  return JSON.stringify(event);
}
