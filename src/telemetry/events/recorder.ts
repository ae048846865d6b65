/**
 * Sends events to the API server, without anybody waiting for it.
 *
 * `record` puts a report in a queue of bounded length and returns. What happens again within six minutes is one
 * event with a count: the first repetition is sent at once, later ones at most every six minutes, so that something
 * that fails at every sync costs the API server next to nothing.
 */
import type { Log } from '../../log/log.ts';
import type { Clock } from '../../time/clock.ts';
import {
  type EventBody,
  eventBody,
  type EventReport,
  type EventSeries,
  eventsPath,
  microTime,
  seriesKey,
} from './event.ts';
import { type Delivery, type EndLimits, EventSender, type SendEvent } from './sender.ts';

export interface RecorderOptions {
  readonly nodeName: string;
  readonly clock: Clock;
  readonly log?: Pick<Log, 'warn' | 'verbose'> | undefined;
  readonly capacity?: number | undefined;
  /** Milliseconds since the epoch. */
  readonly time?: (() => number) | undefined;
  /** From 0 up to, but not including, 1. */
  readonly random?: (() => number) | undefined;
}

/** An API server that does not answer must not delay the end of the process. */
export const END_LIMITS: EndLimits = { deadlineMs: 2000, answerMs: 500 };
/** An event says why the process ends, and nobody waits for it. */
export const END_LIMITS_OF_FAILURE: EndLimits = { deadlineMs: 5000, answerMs: 5000 };

const CAPACITY = 1000;
const SERIES_MS = 6 * 60_000;

interface Series {
  body: EventBody;
  count: number;
  /** By the clock that measures, and by the one on the wall. */
  lastSeen: number;
  lastTime: number;
  /** The count that the API server has, or will have from what is in the queue. */
  sentCount: number;
  cancel: () => void;
}

export class EventRecorder {
  readonly #options: RecorderOptions;
  readonly #time: () => number;
  readonly #random: () => number;
  readonly #sender: EventSender;
  readonly #series = new Map<string, Series>();
  #dropped = 0;
  #stopped = false;

  constructor(options: RecorderOptions) {
    this.#options = options;
    this.#time = options.time ?? Date.now;
    this.#random = options.random ?? Math.random;
    const { clock, log } = options;
    this.#sender = new EventSender({ clock, log, random: this.#random });
  }

  /** Dropped: for want of room, or after the end. Failed: refused, or the API server could not be reached for too long. */
  get counts() {
    return { sent: this.#sender.sent, failed: this.#sender.failed, dropped: this.#dropped };
  }

  /** What was recorded before is sent now. */
  start(send: SendEvent): void {
    this.#sender.start(send);
  }

  record(report: EventReport): void {
    if (this.#stopped) {
      this.#drop(report);
      return;
    }
    const key = seriesKey(report);
    const series = this.#series.get(key);
    if (series && this.#quietFor(series) < SERIES_MS) {
      this.#repeat(series);
      return;
    }
    series?.cancel();
    this.#begin(key, report);
  }

  /** Sends what waits, for no longer than this; what is left is dropped. */
  async stop(limits = END_LIMITS): Promise<void> {
    if (this.#stopped) return;
    this.#stopped = true;
    for (const series of this.#series.values()) {
      series.cancel();
      if (series.count > series.sentCount) this.#sendCount(series);
    }
    this.#series.clear();
    this.#dropped += await this.#sender.stop(limits);
  }

  #begin(key: string, report: EventReport): void {
    const time = this.#time();
    const series: Series = {
      body: this.#body(report, time),
      count: 1,
      lastSeen: this.#options.clock.now(),
      lastTime: time,
      sentCount: 1,
      cancel: () => undefined,
    };
    this.#series.delete(key);
    if (!this.#enqueue(creation(series.body), report)) return;
    this.#series.set(key, series);
    this.#lookAgain(key, series);
  }

  #repeat(series: Series): void {
    series.count += 1;
    series.lastSeen = this.#options.clock.now();
    series.lastTime = this.#time();
    if (series.count === 2) this.#sendCount(series);
  }

  /** Ends a series that has gone quiet, and sends the count of one that has not. */
  #lookAgain(key: string, series: Series): void {
    series.cancel = this.#options.clock.schedule(SERIES_MS, () => {
      if (series.count > series.sentCount) this.#sendCount(series);
      if (this.#quietFor(series) >= SERIES_MS) this.#series.delete(key);
      else this.#lookAgain(key, series);
    });
  }

  #quietFor({ lastSeen }: Series): number {
    return this.#options.clock.now() - lastSeen;
  }

  #sendCount(series: Series): void {
    const seriesNow = (): EventSeries => {
      series.sentCount = series.count;
      return { count: series.count, lastObservedTime: microTime(series.lastTime) };
    };
    const isQueued = this.#enqueue(
      {
        reason: series.body.reason,
        request: () => ({
          method: 'PATCH',
          path: eventsPath(series.body.metadata.namespace, series.body.metadata.name),
          contentType: 'application/merge-patch+json',
          body: { series: seriesNow() },
        }),
        // Events live for an hour or so, and a series may go on for longer.
        whenGone: () => {
          series.body = this.#body(series.body, this.#time(), seriesNow());
          return creation(series.body);
        },
      },
      series.body,
    );
    if (isQueued) series.sentCount = series.count;
  }

  #body(report: EventReport, time: number, series?: EventSeries): EventBody {
    return eventBody(report, { nodeName: this.#options.nodeName, time, random: this.#random() }, series);
  }

  #enqueue(delivery: Delivery, report: EventReport): boolean {
    if (this.#sender.queue.length < (this.#options.capacity ?? CAPACITY)) {
      this.#sender.add(delivery);
      return true;
    }
    this.#drop(report);
    return false;
  }

  #drop({ reason, note }: EventReport): void {
    this.#dropped += 1;
    this.#options.log?.verbose(2, 'Dropped an event', { reason, note, dropped: this.#dropped });
  }
}

function creation(body: EventBody): Delivery {
  return {
    reason: body.reason,
    request: () => ({
      method: 'POST',
      path: eventsPath(body.metadata.namespace),
      contentType: 'application/json',
      body,
    }),
  };
}
