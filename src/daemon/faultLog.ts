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

/** Returns what ends it. */
export function logFaults(log: Log, clock: Clock): () => void {
  const pauses = new Map<FaultName, Pause>();
  const print = (fault: FaultName, count: number, detail: string): void => {
    const message = MESSAGES[fault];
    if (message === undefined) return;
    log.warn(message, { count, detail });
    const cancel = clock.schedule(PAUSE_MS, () => {
      const pause = pauses.get(fault);
      pauses.delete(fault);
      if (pause && pause.count > 0) print(fault, pause.count, pause.detail);
    });
    pauses.set(fault, { count: 0, detail: '', cancel });
  };
  const end = onFault((fault, detail, times) => {
    const pause = pauses.get(fault);
    if (!pause) return print(fault, times, detail);
    pause.count += times;
    pause.detail = detail;
  });
  return () => {
    end();
    for (const { cancel } of pauses.values()) cancel();
  };
}
