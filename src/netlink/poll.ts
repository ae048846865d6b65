/** Waiting for descriptors. From asm-generic/poll.h. */
import { constants } from 'node:os';
import { libc } from '../system/libc.ts';
import { netlinkFailed } from './failure.ts';

const POLLIN = 1;

/** Those that have something to read or an error to tell; none when the time is over. */
export function poll(descriptors: readonly number[], timeoutMs: number): ReadonlySet<number> {
  // struct pollfd: 32 bits of descriptor, 16 of what is asked, 16 of what is so.
  const halves = new Int16Array(descriptors.length * 4);
  const words = new Int32Array(halves.buffer);
  for (const [index, descriptor] of descriptors.entries()) {
    words[index * 2] = descriptor;
    halves[index * 4 + 2] = POLLIN;
  }
  const { poll: wait, errno } = libc();
  while (wait(new Uint8Array(halves.buffer), descriptors.length, timeoutMs) < 0) {
    const code = errno();
    if (code !== constants.errno.EINTR) throw netlinkFailed('cannot wait', code);
  }
  return new Set(descriptors.filter((_, index) => halves[index * 4 + 3] !== 0));
}
