/**
 * The few libc calls that Node does not have. Loaded on first use, so that a machine without a build of koffi can
 * run everything that needs none of them.
 */
import { createRequire } from 'node:module';
import { constants } from 'node:os';
import { JunctionError, isJunctionError } from '../errors.ts';
import { writeSync } from 'node:fs';
import type { DescriptorCalls } from '../log/sink.ts';

interface Libc {
  readonly flock: (fd: number, operation: number) => number;
  readonly socket: (domain: number, type: number, protocol: number) => number;
  readonly bind: (fd: number, address: Uint8Array, length: number) => number;
  readonly connect: (fd: number, address: Uint8Array, length: number) => number;
  readonly getsockopt: (
    fd: number,
    level: number,
    name: number,
    value: Uint8Array,
    /** A uint32 in the machine's order. */
    length: Uint8Array,
  ) => number;
  readonly setsockopt: (fd: number, level: number, name: number, value: Uint8Array, length: number) => number;
  /** SO_ATTACH_FILTER, with `struct sock_filter`s one behind the other. */
  readonly attachFilter: (fd: number, program: Uint8Array, count: number) => number;
  readonly sendto: (
    fd: number,
    bytes: Uint8Array,
    length: number,
    flags: number,
    to: Uint8Array,
    toLength: number,
  ) => number;
  /** Writes the sender's address and its length, 32 bits, to the last two. */
  readonly recvfrom: (
    fd: number,
    buffer: Uint8Array,
    length: number,
    flags: number,
    from: Uint8Array,
    fromLength: Uint8Array,
  ) => number;
  readonly send: (fd: number, bytes: Uint8Array, length: number, flags: number) => number;
  readonly close: (fd: number) => number;
  /** An array of `struct pollfd`, so many of them. */
  readonly poll: (descriptors: Uint8Array, count: number, timeoutMs: number) => number;
  readonly eventfd: (initial: number, flags: number) => number;
  readonly read: (fd: number, buffer: Uint8Array, length: number) => number;
  readonly write: (fd: number, bytes: Uint8Array, length: number) => number;
  /** Ends the process, all its threads included, and waits for none of them. */
  readonly exitNow: (code: number) => void;
  /** Of the last call, to be read before any other. */
  readonly errno: () => number;
}

const SOL_SOCKET = 1;
const SO_ATTACH_FILTER = 26;
/** sizeof(struct sock_fprog) where pointers have 64 bits, as on every machine that koffi is built for here. */
const FPROG_BYTES = 16;

let loaded: Libc | undefined;

export function libc(): Libc {
  loaded ??= load();
  return loaded;
}

function load(): Libc {
  try {
    const koffi = createRequire(import.meta.url)('koffi') as typeof import('koffi');
    const library = koffi.load('libc.so.6');
    // koffi's functions take and give `any`; the interface above says what they are.
    const filterType = koffi.pointer(koffi.struct({ len: 'uint16_t', filter: 'const void *' }));
    const attach = library.func('setsockopt', 'int', ['int', 'int', 'int', filterType, 'uint32_t']) as (
      ...args: readonly [number, number, number, object, number]
    ) => number;
    const bound = (prototype: string): never => library.func(prototype) as never;
    return {
      flock: bound('int flock(int fd, int operation)'),
      socket: bound('int socket(int domain, int type, int protocol)'),
      bind: bound('int bind(int fd, const void *address, uint32_t length)'),
      connect: bound('int connect(int fd, const void *address, uint32_t length)'),
      setsockopt: bound('int setsockopt(int fd, int level, int name, const void *value, uint32_t length)'),
      getsockopt: bound('int getsockopt(int fd, int level, int name, void *value, void *length)'),
      attachFilter: (fd, filter, len) =>
        attach(fd, SOL_SOCKET, SO_ATTACH_FILTER, { len, filter }, FPROG_BYTES),
      sendto: bound(
        'intptr_t sendto(int fd, const void *bytes, size_t length, int flags, const void *to, uint32_t toLength)',
      ),
      recvfrom: bound(
        'intptr_t recvfrom(int fd, void *buffer, size_t length, int flags, void *from, void *fromLength)',
      ),
      send: bound('intptr_t send(int fd, const void *bytes, size_t length, int flags)'),
      close: bound('int close(int fd)'),
      poll: bound('int poll(void *descriptors, unsigned long count, int timeout)'),
      eventfd: bound('int eventfd(unsigned int initial, int flags)'),
      read: bound('intptr_t read(int fd, void *buffer, size_t length)'),
      write: bound('intptr_t write(int fd, const void *bytes, size_t length)'),
      exitNow: bound('void _exit(int code)'),
      errno: () => koffi.errno(),
    };
  } catch (cause) {
    throw new JunctionError('NATIVE_UNAVAILABLE', `cannot call libc on ${process.platform} ${process.arch}`, {
      cause,
    });
  }
}

/** `EBUSY` */
export function errnoName(errno: number): string {
  const entry = Object.entries(constants.errno).find(([, value]) => value === errno);
  return entry ? entry[0] : `errno ${errno}`;
}

const MSG_DONTWAIT = 0x40;
const MSG_NOSIGNAL = 0x4000;
/** asm-generic/poll.h */
const POLLOUT = 4;

/** What the log needs of libc to write to standard error without waiting. */
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
