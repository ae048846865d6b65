/** Logs which faults the process survives: each kind at most once a minute, with how often it happened since. */
import { type FaultName, onFault } from '../faults.ts';
import type { Log } from '../log/log.ts';
import type { Clock } from '../time/clock.ts';

const PAUSE_MS = 60_000;

/** Programs that fail are named by the operation that failed with them. */
const MESSAGES: Readonly<Partial<Record<FaultName, string>>> = {
  netlink_malformed: 'Netlink notification could not be decoded; reading everything again',
  netlink_overrun: 'Netlink notifications were lost; reading everything again',
  netlink_not_from_kernel: 'Netlink messages were dropped: their sender is another process, not the kernel',
  netlink_thread_crashed: 'Netlink thread ended with an uncaught error, and was replaced',
};

interface Pause {
  count: number;
  detail: string;
  readonly cancel: () => void;
}

export class FaultLog {
  readonly #log: Log;
  readonly #clock: Clock;
  readonly #pauses = new Map<FaultName, Pause>();
  readonly #unsubscribe: () => void;

  constructor(log: Log, clock: Clock) {
    this.#log = log;
    this.#clock = clock;
    this.#unsubscribe = onFault((fault, detail, times) => {
      const pause = this.#pauses.get(fault);
      if (!pause) return this.#print(fault, times, detail);
      pause.count += times;
      pause.detail = detail;
    });
  }

  close(): void {
    this.#unsubscribe();
    for (const { cancel } of this.#pauses.values()) cancel();
  }

  #print(fault: FaultName, count: number, detail: string): void {
    const message = MESSAGES[fault];
    if (message === undefined) return;
    this.#log.warn(message, { count, detail });
    const cancel = this.#clock.schedule(PAUSE_MS, () => {
      const pause = this.#pauses.get(fault);
      this.#pauses.delete(fault);
      if (pause && pause.count > 0) this.#print(fault, pause.count, pause.detail);
    });
    this.#pauses.set(fault, { count: 0, detail: '', cancel });
  }
}
