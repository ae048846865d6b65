/** Long work in small pieces, so that others get their turn. */
import type { Breath } from '../../iptables/rules/tableDoor.ts';

export async function eachCalmly<T>(
  items: Iterable<T>,
  work: (item: T) => void | Promise<void>,
  breath: Breath | undefined,
): Promise<void> {
  breath?.begin();
  for (const item of items) {
    const waiting = work(item);
    if (waiting) {
      await waiting;
      breath?.begin();
    }
    const pause = breath?.take();
    if (pause) await pause;
  }
}

/** The steps of one piece of work, in the same way; it goes on with the slice that has begun. */
export async function calmly<T>(steps: Generator<unknown, T>, breath: Breath | undefined): Promise<T> {
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
    const pause = breath?.take();
    if (pause) await pause;
  }
}
