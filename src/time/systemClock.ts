import type { Clock } from './clock.ts';

/**
 * The machine's monotonic time and its timers. Without a delay, the next turn of the event loop: Node runs a timer that comes due while
 * others run in the same turn, so that two loops of work and `setTimeout(0)` kept sockets from being read for as long as they lasted.
 */
export const systemClock: Clock = {
  now: () => performance.now(),
  schedule: (delayMs, callback) => {
    if (delayMs <= 0) {
      const immediate = setImmediate(callback);
      return () => clearImmediate(immediate);
    }
    const timer = setTimeout(callback, delayMs);
    return () => clearTimeout(timer);
  },
};
