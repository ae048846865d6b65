/** Long work in small pieces, so that others get their turn. */
import type { Breath } from '../iptables/backend.ts';

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
