/** Notes when changes arrive, when they are planned, and when their rules are text. */
import type { SyncOutcome } from '../../src/proxy/proxier.ts';
import type { ChurnReport, StartReport } from './messages.ts';
import { percentiles } from './meters.ts';

export class Stopwatch {
  /** The first transaction is complete. */
  readonly started: Promise<void>;
  #onStarted: () => void = () => {};
  onFirstPlan: () => void = () => {};
  readonly #begun = performance.now();
  #listedAt = 0;
  #firstPlannedAt = 0;
  #firstWrittenAt = 0;
  #bytes = 0;
  #printedAt = 0;
  #printedWall = 0;

  #events = 0;
  #syncs = 0;
  #waiting: number[] = [];
  #inPlan: readonly number[] = [];
  #toPlan: number[] = [];
  #toText: number[] = [];
  #fromServer: number[] = [];

  constructor() {
    this.started = new Promise((resolve) => {
      this.#onStarted = resolve;
    });
  }

  received(): void {
    if (this.#firstWrittenAt === 0) return;
    this.#events++;
    this.#waiting.push(performance.now());
  }

  listed(): void {
    this.#listedAt = performance.now();
  }

  planned(): void {
    const now = performance.now();
    if (this.#firstPlannedAt === 0) this.onFirstPlan();
    this.#firstPlannedAt ||= now;
    for (const at of this.#waiting) this.#toPlan.push(now - at);
    this.#inPlan = this.#waiting;
    this.#waiting = [];
  }

  printed(): void {
    this.#printedAt = performance.now();
    this.#printedWall = Date.now();
  }

  written({ report, triggers }: SyncOutcome): void {
    const now = this.#printedAt;
    this.#syncs++;
    for (const at of this.#inPlan) this.#toText.push(now - at);
    for (const trigger of triggers) this.#fromServer.push(this.#printedWall - trigger);
    if (this.#firstWrittenAt > 0) return;
    this.#firstWrittenAt = now;
    this.#bytes = report.counts['restore.bytes'] ?? 0;
    this.#onStarted();
  }

  reset(): void {
    this.#events = 0;
    this.#syncs = 0;
    this.#toPlan = [];
    this.#toText = [];
    this.#fromServer = [];
  }

  start(): Pick<StartReport, 'listedMs' | 'plannedMs' | 'compiledMs' | 'bytes'> {
    return {
      listedMs: this.#listedAt - this.#begun,
      plannedMs: this.#firstPlannedAt - this.#begun,
      compiledMs: this.#firstWrittenAt - this.#begun,
      bytes: this.#bytes,
    };
  }

  churned(): Pick<ChurnReport, 'events' | 'syncs' | 'toPlanMs' | 'toTextMs' | 'fromServerMs'> {
    return {
      events: this.#events,
      syncs: this.#syncs,
      toPlanMs: percentiles(this.#toPlan),
      toTextMs: percentiles(this.#toText),
      fromServerMs: percentiles(this.#fromServer),
    };
  }
}
