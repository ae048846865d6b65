/** What the log needs of libc to write to standard error without waiting. */
import { writeSync } from 'node:fs';
import { isJunctionError } from '../errors.ts';
import type { DescriptorCalls } from '../log/sink.ts';
import { libc } from './libc.ts';

const MSG_DONTWAIT = 0x40;
const MSG_NOSIGNAL = 0x4000;
/** asm-generic/poll.h */
const POLLOUT = 4;

export const descriptorCalls: DescriptorCalls = {
  sendNow: (descriptor, bytes) =>
    withLibc(
      ({ send, errno }) => {
        const sent = send(descriptor, bytes, bytes.length, MSG_DONTWAIT | MSG_NOSIGNAL);
        return sent < 0 ? -errno() : sent;
      },
      () => writeSync(descriptor, bytes),
    ),
  isWritable: (descriptor) =>
    withLibc(
      ({ poll }) => {
        // struct pollfd: 32 bits of descriptor, 16 of what is asked, 16 of what is so.
        const asked = new Int32Array([descriptor, POLLOUT]);
        return poll(new Uint8Array(asked.buffer), 1, 0) > 0;
      },
      () => true,
    ),
};

/** A machine without a build of koffi has a log all the same. */
function withLibc<T>(call: (functions: ReturnType<typeof libc>) => T, otherwise: () => T): T {
  try {
    return call(libc());
  } catch (error) {
    if (isJunctionError(error, 'NATIVE_UNAVAILABLE')) return otherwise();
    throw error;
  }
}

/** Ends the process at once, whatever its other threads wait for. Exit listeners are not called. */
export function exitNow(code: number): never {
  try {
    libc().exitNow(code);
  } catch {
    // No koffi here.
  }
  process.kill(process.pid, 'SIGKILL');
  throw new Error('this process has been killed');
}
