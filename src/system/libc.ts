/**
 * The few libc calls that Node does not have. Loaded on first use, so that a machine without a build of koffi can
 * run everything that needs none of them.
 */
import { constants } from 'node:os';
import { JunctionError, isJunctionError } from '../errors.ts';
import { writeSync } from 'node:fs';
import { loadKoffi } from './koffi.ts';
import type { DescriptorCalls } from '../log/sink.ts';

type Libc = ReturnType<typeof load>;
type Bytes = Uint8Array;
interface Call<A extends readonly unknown[]> {
  (...args: A): number;
  /** On a thread of libuv's pool. */
  async(...args: [...A, done: (error: unknown, result: number) => void]): void;
}

/** asm-generic/socket.h, linux/socket.h, asm-generic/fcntl.h */
export const SOL_SOCKET = 1;
export const AF_UNIX = 1;
export const SOCK_STREAM = 1;
export const SOCK_CLOEXEC = 0o2000000;
const SO_PEERCRED = 17;
const SO_ATTACH_FILTER = 26;
const LOCK_EX = 2;
const LOCK_NB = 4;
/** sizeof(struct sock_fprog) where pointers have 64 bits, as on every machine that koffi is built for here. */
const FPROG_BYTES = 16;

let loaded: Libc | undefined;

export function libc(): Libc {
  try {
    loaded ??= load();
    return loaded;
  } catch (cause) {
    const reason = cause instanceof Error ? (cause.message.split('\n')[0] ?? '') : String(cause);
    const message = `cannot call libc on ${process.platform} ${process.arch}: ${reason}`;
    throw new JunctionError('NATIVE_UNAVAILABLE', message, { cause });
  }
}

function load() {
  const koffi = loadKoffi();
  const library = koffi.load('libc.so.6');
  // koffi's functions take and give `any`: what they are is said here.
  const call = (prototype: string): unknown => library.func(prototype);
  const flock = call('int flock(int fd, int operation)') as Call<[number, number]>;
  const filterType = koffi.pointer(koffi.struct({ len: 'uint16_t', filter: 'const void *' }));
  const attach = library.func('setsockopt', 'int', ['int', 'int', 'int', filterType, 'uint32_t']) as (
    ...args: readonly [number, number, number, object, number]
  ) => number;
  return {
    /** An exclusive lock, without waiting for it. */
    tryFlock: (fd: number) => flock(fd, LOCK_EX | LOCK_NB),
    socket: call('int socket(int domain, int type, int protocol)') as Call<[number, number, number]>,
    bind: call('int bind(int fd, const void *address, uint32_t length)') as Call<[number, Bytes, number]>,
    /** Writes the address and its length, 32 bits, to the last two. */
    getsockname: call('int getsockname(int fd, void *address, void *length)') as Call<[number, Bytes, Bytes]>,
    connect: call('int connect(int fd, const void *address, uint32_t length)') as Call<
      [number, Bytes, number]
    >,
    setsockopt: call(
      'int setsockopt(int fd, int level, int name, const void *value, uint32_t length)',
    ) as Call<[number, number, number, Bytes, number]>,
    /** `length` is a uint32 in the machine's order. */
    getsockopt: call('int getsockopt(int fd, int level, int name, void *value, void *length)') as Call<
      [number, number, number, Bytes, Bytes]
    >,
    /** SO_ATTACH_FILTER, with `struct sock_filter`s one behind the other. */
    attachFilter: (fd: number, filter: Bytes, len: number) =>
      attach(fd, SOL_SOCKET, SO_ATTACH_FILTER, { len, filter }, FPROG_BYTES),
    sendto: call(
      'intptr_t sendto(int fd, const void *bytes, size_t length, int flags, const void *to, uint32_t toLength)',
    ) as Call<[number, Bytes, number, number, Bytes, number]>,
    /** Writes the sender's address and its length, 32 bits, to the last two. */
    recvfrom: call(
      'intptr_t recvfrom(int fd, void *buffer, size_t length, int flags, void *from, void *fromLength)',
    ) as Call<[number, Bytes, number, number, Bytes, Bytes]>,
    send: call('intptr_t send(int fd, const void *bytes, size_t length, int flags)') as Call<
      [number, Bytes, number, number]
    >,
    close: call('int close(int fd)') as Call<[number]>,
    getpid: call('int getpid()') as Call<[]>,
    /** An array of `struct pollfd`, so many of them. */
    poll: call('int poll(void *descriptors, unsigned long count, int timeout)') as Call<
      [Bytes, number, number]
    >,
    eventfd: call('int eventfd(unsigned int initial, int flags)') as Call<[number, number]>,
    read: call('intptr_t read(int fd, void *buffer, size_t length)') as Call<[number, Bytes, number]>,
    write: call('intptr_t write(int fd, const void *bytes, size_t length)') as Call<[number, Bytes, number]>,
    /** glibc's alone; looked up when it is asked for, because others lack it. */
    get memory() {
      return {
        mallopt: call('int mallopt(int parameter, int value)') as Call<[number, number]>,
        mallocTrim: call('int malloc_trim(size_t pad)') as Call<[number]>,
      };
    },
    /** Ends the process, all its threads included, and waits for none of them. */
    exitNow: call('void _exit(int code)') as Call<[number]>,
    /** Of the last call, to be read before any other. */
    errno: () => koffi.errno(),
  };
}

/** Returns what the call returns, or the negative error number. */
export function callNow<A extends readonly unknown[]>(call: Call<A>, ...args: A): number {
  const result = call(...args);
  return result < 0 ? -libc().errno() : result;
}

/** Returns what the call returns, or the negative error number. libuv's pool has four threads for all of the process. */
export function callInPool<A extends readonly unknown[]>(call: Call<A>, ...args: A): Promise<number> {
  const { errno } = libc();
  return new Promise((resolve, reject) => {
    call.async(...args, (error, result) => {
      void args; // koffi does not keep the buffers that the kernel uses meanwhile
      if (error instanceof Error) reject(error);
      else resolve(result < 0 ? -errno() : result);
    });
  });
}

/** A pool that takes longer to begin is full: of reads from files that hang, say. An idle one takes 0.01 ms. */
const FULL_AFTER_MS = 20;
let probe: { readonly answer: Promise<boolean>; readonly since: number } | undefined;

/** Whether libuv's pool has a thread to spare. */
export async function poolHasRoom(): Promise<boolean> {
  if (!probe) {
    const answer = callInPool(libc().getpid).then(() => true);
    probe = { answer, since: performance.now() };
    void answer.finally(() => (probe = undefined));
  }
  const { answer, since } = probe;
  let timer: NodeJS.Timeout | undefined;
  const full = new Promise<boolean>((resolve) => {
    timer = setTimeout(resolve, since + FULL_AFTER_MS - performance.now(), false);
  });
  const hasRoom = await Promise.race([answer, full]);
  clearTimeout(timer);
  return hasRoom;
}

/** `struct sockaddr_un`; an abstract name begins with a NUL. */
export function unixAddress(path: string): Uint8Array {
  return Uint8Array.from([
    ...new Uint8Array(new Uint16Array([AF_UNIX]).buffer),
    ...Buffer.from(path, 'latin1'),
  ]);
}

/** Who is at the other end of a unix socket, in our own pid namespace; or the error number. */
export function peerCredentials(fd: number): { readonly pid: number; readonly uid: number } | number {
  const { getsockopt, errno } = libc();
  const credential = new Int32Array(3); // struct ucred: pid, uid, gid
  const length = new Uint32Array([credential.byteLength]);
  const bytes = new Uint8Array(credential.buffer);
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, bytes, new Uint8Array(length.buffer)) !== 0) return errno();
  const [pid = 0, uid = 0] = credential;
  return { pid, uid };
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
function withLibc<T>(call: (functions: Libc) => T, otherwise: () => T): T {
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
