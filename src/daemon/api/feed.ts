/** The stream of events: each client has a queue of its own, and one that reads too slowly learns how many it lost. */
import type { WatchEvent } from '../../explain/types.ts';
import type { Clock } from '../../time/clock.ts';

interface WatchFeedOptions {
  readonly clock: Clock;
  /** Milliseconds since the epoch. */
  readonly wallTime: () => number;
  /** Resolves when text may be made for a client: one after the other, and not during a sync. */
  readonly turn?: () => Promise<void>;
}

/** Kept for whoever asks what happened of late. */
const MAX_RECENT = 1000;
const MAX_RECENT_BYTES = 1024 * 1024;
const MOST_QUEUED = 1000;
const MOST_QUEUED_BYTES = 1024 * 1024;
/**
 * Characters that are made for one client in a turn. Measured with 1,000 changes in one sync and 20 clients on a busy machine: all at
 * once kept the event loop for 50 ms; in parts of this size and in turns, for no longer than one change did.
 */
const MOST_TAKEN = 16 * 1024;
/** An empty line: whoever waits knows that the proxy is there, and we that the client is. */
const HEARTBEAT_MS = 15_000;

export class WatchFeed {
  readonly #options: WatchFeedOptions;
  readonly #clients = new Set<Client>();
  readonly #recent: WatchEvent[] = [];
  #recentBytes = 0;
  #isClosed = false;

  constructor(options: WatchFeedOptions) {
    this.#options = options;
  }

  get clients(): number {
    return this.#clients.size;
  }

  /** The last events, oldest first. */
  get recent(): readonly WatchEvent[] {
    return this.#recent;
  }

  /** Costs next to nothing while nobody watches. */
  emit(event: WatchEvent): void {
    this.#recent.push(event);
    this.#recentBytes += bytesOf(event);
    while (this.#recent.length > MAX_RECENT || this.#recentBytes > MAX_RECENT_BYTES)
      this.#recentBytes -= bytesOf(this.#recent.shift() ?? event);
    if (this.#clients.size === 0) return;
    const line = new EventLine(event);
    for (const client of this.#clients) client.add(line);
  }

  /** Every stream ends, after what it has. */
  close(): void {
    this.#isClosed = true;
    for (const client of this.#clients) client.wake();
  }

  /** Lines of JSON, from now on, until the signal. */
  async *subscribe(signal: AbortSignal): AsyncGenerator<string> {
    const { clock, wallTime, turn } = this.#options;
    const client = new Client();
    this.#clients.add(client);
    try {
      while (!signal.aborted) {
        if (client.hasLines) {
          await turn?.();
          yield client.take(wallTime);
        } else if (this.#isClosed) return;
        else if (!(await client.wait(clock, signal))) yield '\n';
      }
    } finally {
      this.#clients.delete(client);
    }
  }
}

/** Its text is made for the first client that takes it, after the sync. */
class EventLine {
  readonly bytes: number;
  readonly #event: WatchEvent;
  #text: string | undefined;

  constructor(event: WatchEvent) {
    this.#event = event;
    this.bytes = bytesOf(event);
  }

  get text(): string {
    this.#text ??= `${JSON.stringify(this.#event)}\n`;
    return this.#text;
  }
}

class Client {
  readonly #lines: EventLine[] = [];
  #bytes = 0;
  #lost = 0;
  #wake: ((hasCome: boolean) => void) | undefined;

  get hasLines(): boolean {
    return this.#lines.length > 0;
  }

  /** Once one is lost, all are until the client has taken what it has: the notice stands where they would. */
  add(line: EventLine): void {
    const isFull = this.#lines.length >= MOST_QUEUED || this.#bytes + line.bytes > MOST_QUEUED_BYTES;
    if (isFull || this.#lost > 0) this.#lost++;
    else {
      this.#lines.push(line);
      this.#bytes += line.bytes;
    }
    this.wake();
  }

  wake(): void {
    this.#wake?.(true);
  }

  /** Some of them, oldest first. */
  take(wallTime: () => number): string {
    let text = '';
    let count = 0;
    for (const line of this.#lines) {
      if (text.length >= MOST_TAKEN) break;
      text += line.text;
      this.#bytes -= line.bytes;
      count++;
    }
    this.#lines.splice(0, count);
    if (this.hasLines || this.#lost === 0) return text;
    const lost: WatchEvent = { kind: 'lost', at: wallTime(), events: this.#lost };
    this.#lost = 0;
    return `${text}${JSON.stringify(lost)}\n`;
  }

  /** False: nothing came for so long. */
  wait(clock: Clock, signal: AbortSignal): Promise<boolean> {
    return new Promise((resolve) => {
      const end = (hasCome: boolean): void => {
        cancel();
        signal.removeEventListener('abort', abort);
        this.#wake = undefined;
        resolve(hasCome);
      };
      const abort = (): void => end(true);
      const cancel = clock.schedule(HEARTBEAT_MS, () => end(false));
      signal.addEventListener('abort', abort);
      this.#wake = end;
    });
  }
}

/** Of an event without its texts. */
const EVENT_BYTES = 200;

/** About; to make text of it would cost a sync more. */
function bytesOf(event: WatchEvent): number {
  let bytes = EVENT_BYTES;
  for (const value of Object.values(event)) {
    if (typeof value === 'string') bytes += value.length;
    else if (Array.isArray(value)) for (const text of value as readonly string[]) bytes += text.length;
  }
  return bytes;
}
