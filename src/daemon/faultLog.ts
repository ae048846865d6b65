/** Says which faults the process survives: each kind at most once a minute, with how often it happened since. */
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
}

/** Returns what ends it. */
export function logFaults(log: Log, clock: Clock): () => void {
  const pauses = new Map<FaultName, Pause>();
  const cancels = new Map<FaultName, () => void>();
  const say = (fault: FaultName, count: number, detail: string): void => {
    const message = MESSAGES[fault];
    if (message === undefined) return;
    log.warn(message, { count, detail });
    const pause: Pause = { count: 0, detail: '' };
    pauses.set(fault, pause);
    cancels.set(
      fault,
      clock.schedule(PAUSE_MS, () => {
        pauses.delete(fault);
        if (pause.count > 0) say(fault, pause.count, pause.detail);
      }),
    );
  };
  const end = onFault((fault, detail, times) => {
    const pause = pauses.get(fault);
    if (!pause) {
      say(fault, times, detail);
      return;
    }
    pause.count += times;
    pause.detail = detail;
  });
  return () => {
    end();
    for (const cancel of cancels.values()) cancel();
  };
}
