/** What a sync did, in the same words for every mode, and why. Logs, metrics and the check of flows read it. */
import type { ServicePortId } from '../model/serviceTracker.ts';

/** What a sync set out to do: read the kernel and write what differs, or write only what changed. */
export type SyncAttempt = 'full' | 'partial';

export interface SyncReport {
  readonly kind: 'full' | 'incremental' | 'nothing';
  /** Restores of iptables, transactions of nftables, batches of other netlink messages. */
  readonly commits: number;
  /** Rules, elements, virtual servers, addresses and whatever else was written or deleted. */
  readonly objects: number;
  /** Service ports that the kernel refused; what they had before stays in force. */
  readonly refused: ReadonlyMap<ServicePortId, Error>;
  /** What was not as we had left it, though nothing of ours changed it; for people, and not all of it. */
  readonly repaired: readonly string[];
  /** The mode wants another sync after this time, whatever changes. */
  readonly retryAfterMs: number | undefined;
  /** The mode has more to verify, and stopped because a change was waiting: the next sync follows at once. */
  readonly isUnfinished?: boolean;
  /** What other programs changed is not repaired yet: that goes on beside syncs. */
  readonly isRepairing?: boolean;
  /** What a mode counts besides. Names with a dot are for metrics only. */
  readonly counts: Readonly<Record<string, number>>;
}

/** Filled in by a mode while it syncs. */
export class ReportBuilder {
  commits = 0;
  objects = 0;
  readonly refused = new Map<ServicePortId, Error>();
  readonly repaired = new Set<string>();
  readonly counts: Record<string, number> = {};
  isUnfinished = false;
  #retryAfterMs: number | undefined;
  #isFull = false;

  count(name: string, by = 1): void {
    this.counts[name] = (this.counts[name] ?? 0) + by;
  }

  /** The earliest request decides. */
  retryAfter(milliseconds: number): void {
    this.#retryAfterMs = Math.min(this.#retryAfterMs ?? Number.POSITIVE_INFINITY, milliseconds);
  }

  /** Adds what one part of a mode did. */
  include(part: SyncReport): void {
    this.commits += part.commits;
    this.objects += part.objects;
    for (const [id, error] of part.refused) this.refused.set(id, error);
    for (const name of part.repaired) this.repaired.add(name);
    for (const [name, count] of Object.entries(part.counts)) this.count(name, count);
    if (part.retryAfterMs !== undefined) this.retryAfter(part.retryAfterMs);
    if (part.kind === 'full') this.#isFull = true;
  }

  end(attempt: SyncAttempt): SyncReport {
    const { commits, objects, refused, counts } = this;
    const isFull = this.#isFull || attempt === 'full';
    const kind = isFull ? 'full' : commits > 0 ? 'incremental' : 'nothing';
    const repaired = [...this.repaired];
    const report = {
      kind,
      commits,
      objects,
      refused,
      repaired,
      retryAfterMs: this.#retryAfterMs,
      counts,
    } as const;
    return this.isUnfinished ? { ...report, isUnfinished: true } : report;
  }
}

/** When to try again what the kernel did not take: after a second, and after twice as long each time. */
const FIRST_MS = 1000;
const LAST_MS = 60_000;
/** Timers may come a little early. */
const EARLY_MS = 10;

export class RetryDelay {
  #pauseMs = FIRST_MS;
  #at: number | undefined;

  get isWaiting(): boolean {
    return this.#at !== undefined;
  }

  /** Returns how long to wait. */
  failed(now: number): number {
    const pauseMs = this.#pauseMs;
    this.#at = now + pauseMs;
    this.#pauseMs = Math.min(LAST_MS, pauseMs * 2);
    return pauseMs;
  }

  succeeded(): void {
    this.#at = undefined;
    this.#pauseMs = FIRST_MS;
  }

  isDue(now: number): boolean {
    return this.#at === undefined || now >= this.#at - EARLY_MS;
  }

  /** `undefined`: nothing waits. */
  remainingMs(now: number): number | undefined {
    return this.#at === undefined ? undefined : Math.max(0, this.#at - now);
  }
}

/** Why a sync was made, for its line in the log: the first few causes in words, and how many more there were. */
const MOST_CAUSES = 3;

export class Causes {
  #texts: string[] = [];
  #more = 0;

  /** Makes no text once there are enough; `undefined`: it was no cause. */
  add(describe: () => string | undefined): void {
    if (this.#texts.length >= MOST_CAUSES) {
      this.#more++;
      return;
    }
    const text = describe();
    if (text !== undefined && !this.#texts.includes(text)) this.#texts.push(text);
  }

  /** The same cause again is no other one; `undefined`: there is none to name. */
  note(text: string | undefined): void {
    if (text !== undefined && !this.#texts.includes(text)) this.add(() => text);
  }

  /** Empty where nothing is known. */
  print(): string {
    const shown = this.#texts.join('; ');
    return this.#more > 0 ? `${shown}; and ${this.#more} more` : shown;
  }

  take(): Causes {
    const taken = new Causes();
    taken.join(this);
    this.#texts = [];
    this.#more = 0;
    return taken;
  }

  join(other: Causes): void {
    for (const text of other.#texts) this.note(text);
    this.#more += other.#more;
  }
}
