/**
 * The last events, for who opens a timeline. Events are kept as they are, without making text of them: adding one costs a
 * sync less than a microsecond. Changes have a ring of their own, so that a thousand of them push no sync out.
 */
import type { WatchEvent } from '../../explain/types.ts';

interface RecentEventsOptions {
  /** Of each ring. */
  readonly most?: number;
  /** About, in characters. */
  readonly mostBytes?: number;
}

const MOST = 1000;
const MOST_BYTES = 512 * 1024;
/** Of an event without its texts. */
const EVENT_BYTES = 200;

interface Kept {
  /** Of all events. */
  readonly index: number;
  readonly event: WatchEvent;
  readonly bytes: number;
}

export class RecentEvents {
  readonly #changes: Ring;
  readonly #others: Ring;
  #index = 0;

  constructor({ most = MOST, mostBytes = MOST_BYTES }: RecentEventsOptions = {}) {
    this.#changes = new Ring(most, mostBytes);
    this.#others = new Ring(most, mostBytes);
  }

  add(event: WatchEvent): void {
    const ring = event.kind === 'change' ? this.#changes : this.#others;
    ring.add({ index: this.#index++, event, bytes: bytesOf(event) });
  }

  /** Oldest first. */
  all(): readonly WatchEvent[] {
    const kept = [...this.#changes.all(), ...this.#others.all()];
    return kept.sort((a, b) => a.index - b.index).map(({ event }) => event);
  }
}

class Ring {
  readonly #most: number;
  readonly #mostBytes: number;
  #kept: Kept[] = [];
  /** Those before it are dropped, and deleted now and then. */
  #first = 0;
  #bytes = 0;

  constructor(most: number, mostBytes: number) {
    this.#most = most;
    this.#mostBytes = mostBytes;
  }

  add(kept: Kept): void {
    this.#kept.push(kept);
    this.#bytes += kept.bytes;
    while (this.#kept.length - this.#first > this.#most || this.#bytes > this.#mostBytes)
      this.#bytes -= this.#kept[this.#first++]?.bytes ?? 0;
    // Shifting each time would move all of them.
    if (this.#first * 4 < this.#most) return;
    this.#kept = this.all();
    this.#first = 0;
  }

  all(): Kept[] {
    return this.#kept.slice(this.#first);
  }
}

/** About; to make text of it would cost a sync more. */
export function bytesOf(event: WatchEvent): number {
  let bytes = EVENT_BYTES;
  for (const value of Object.values(event)) {
    if (typeof value === 'string') bytes += value.length;
    else if (Array.isArray(value)) for (const text of value as readonly string[]) bytes += text.length;
  }
  return bytes;
}
