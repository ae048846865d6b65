/** The stream of events: each client has a queue of its own, and one that reads too slowly learns how many it lost. */
import type { WatchEvent } from '../../explain/types.ts';
import type { Clock } from '../../time/clock.ts';
import { RecentEvents } from './recentEvents.ts';

interface WatchFeedOptions {
  readonly clock: Clock;
  /** Milliseconds since the epoch. */
  readonly wallTime: () => number;
}

const MOST_QUEUED = 1000;
const MOST_QUEUED_BYTES = 1024 * 1024;
/** An empty line: whoever waits knows that the proxy is there, and we that the client is. */
const HEARTBEAT_MS = 15_000;

export class WatchFeed {
  readonly #options: WatchFeedOptions;
  readonly #clients = new Set<Client>();
  readonly #recent = new RecentEvents();
  #isClosed = false;

  constructor(options: WatchFeedOptions) {
    this.#options = options;
  }

  get clients(): number {
    return this.#clients.size;
  }

  /** Those that there were, oldest first. */
  recent(): readonly WatchEvent[] {
    return this.#recent.all();
  }

  /** Costs next to nothing while nobody watches. */
  emit(event: WatchEvent): void {
    this.#recent.add(event);
    if (this.#clients.size === 0) return;
    const line = `${JSON.stringify(event)}\n`;
    for (const client of this.#clients) client.add(line);
  }

  /** Every stream ends, after what it has. */
  close(): void {
    this.#isClosed = true;
    for (const client of this.#clients) client.wake();
  }

  /** Lines of JSON, from now on, until the signal. */
  async *subscribe(signal: AbortSignal): AsyncGenerator<string> {
    const { clock, wallTime } = this.#options;
    const client = new Client();
    this.#clients.add(client);
    try {
      while (!signal.aborted) {
        const lines = client.take(wallTime);
        if (lines !== '') yield lines;
        else if (this.#isClosed) return;
        else if (!(await client.wait(clock, signal))) yield '\n';
      }
    } finally {
      this.#clients.delete(client);
    }
  }
}

class Client {
  #lines: string[] = [];
  #bytes = 0;
  #lost = 0;
  #wake: ((hasCome: boolean) => void) | undefined;

  add(line: string): void {
    if (this.#lines.length >= MOST_QUEUED || this.#bytes + line.length > MOST_QUEUED_BYTES) this.#lost++;
    else {
      this.#lines.push(line);
      this.#bytes += line.length;
    }
    this.wake();
  }

  wake(): void {
    this.#wake?.(true);
  }

  take(wallTime: () => number): string {
    const lines = this.#lines;
    this.#lines = [];
    this.#bytes = 0;
    if (this.#lost > 0) {
      const lost: WatchEvent = { kind: 'lost', at: wallTime(), events: this.#lost };
      lines.push(`${JSON.stringify(lost)}\n`);
      this.#lost = 0;
    }
    return lines.join('');
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
