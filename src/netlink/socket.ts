/**
 * A netlink socket: whole datagrams to the kernel and back. It belongs to the network namespace that the process is in when
 * it is opened. Calls that may take long run on libuv's pool: a large transaction, a wait for
 * another program's, each datagram of a long dump. Where the pool is full they run in this thread, so that no sync waits
 * for what fills it.
 */
import { close } from 'node:fs';
import { constants } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { JunctionError } from '../errors.ts';
import { countFault } from '../faults.ts';
import { callInPool, callNow, errnoName, libc, poolHasRoom } from '../system/libc.ts';
import { LITTLE_ENDIAN } from './codec.ts';

/** linux/netlink.h */
export const NETLINK_ROUTE = 0;
export const NETLINK_NETFILTER = 12;
export const NETLINK_GENERIC = 16;

/** A socket, or what stands in for the kernel in tests. */
export interface DatagramSocket {
  /** One or many whole messages. The kernel has worked through them all when this is done. */
  send(bytes: Uint8Array): void | Promise<void>;
  /** Waits for the next one, which is the caller's to keep. `isDump`: the kernel makes another one meanwhile. */
  receive(isDump?: boolean): Uint8Array | Promise<Uint8Array>;
  close(): void;
}

export function netlinkFailed(what: string, errno: number): JunctionError {
  return new JunctionError('NETLINK_FAILED', `netlink: ${what}: ${errnoName(errno)}`);
}

export function closedError(): JunctionError {
  return new JunctionError('NETLINK_FAILED', 'netlink: the socket was closed');
}

/** The kernel had more to say than the socket's buffer holds. What was done is done; nobody knows what. */
export class ReceiveOverrun extends JunctionError {
  constructor(why = 'the buffer of the socket was full: ENOBUFS') {
    super('NETLINK_FAILED', `netlink: answers were lost, because ${why}`);
  }
}

const AF_NETLINK = 16;
const SOCK_RAW = 3;
const SOCK_CLOEXEC = 0o2000000;
const SOL_SOCKET = 1;
const SO_SNDBUFFORCE = 32;
const SO_RCVBUFFORCE = 33;
const SOL_NETLINK = 270;
const NETLINK_ADD_MEMBERSHIP = 1;
const NETLINK_CAP_ACK = 10;
const MSG_TRUNC = 0x20;
const MSG_DONTWAIT = 0x40;
/** Replies wait here until a whole batch has been worked through; the system's default holds some two hundred. */
const KERNEL_BUFFER_BYTES = 4 << 20;
/** The kernel's own dump buffers are 32 KiB at most. */
const RECEIVE_BYTES = 1 << 17;
/** For an answer. */
const TIMEOUT_MS = 5000;
const MAX_PAUSE_MS = 16;
/** struct sockaddr_nl: family and padding, port id, groups. */
const ADDRESS_BYTES = 12;
const PORT_WORD = 1;
const KERNEL_PORT = 0;
/** So many messages of other processes are dropped in one go; then others have their turn. */
const MAX_DROPPED = 256;
const MAX_DRAINED = 100_000;

export class NetlinkSocket implements DatagramSocket {
  readonly descriptor: number;
  readonly #buffer = new Uint8Array(RECEIVE_BYTES);
  readonly #kernel = kernelAddress();
  readonly #sender = new Uint8Array(ADDRESS_BYTES);
  readonly #senderWords = new Uint32Array(this.#sender.buffer);
  readonly #senderLength = new Uint32Array(1);
  readonly #senderLengthBytes = new Uint8Array(this.#senderLength.buffer);
  #sendBytes = KERNEL_BUFFER_BYTES;
  #isOpen = true;
  /** A call runs on the pool: until it returns, the number of the descriptor must not become another file's. */
  #isBusy = false;

  private constructor(descriptor: number) {
    this.descriptor = descriptor;
  }

  static open(protocol: number): NetlinkSocket {
    const { socket, bind, errno } = libc();
    const descriptor = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
    if (descriptor < 0) throw netlinkFailed(`cannot open a socket of protocol ${protocol}`, errno());
    const opened = new NetlinkSocket(descriptor);
    const address = kernelAddress(); // port 0 also means: choose one for us
    if (bind(descriptor, address, address.length) !== 0) {
      const code = errno();
      opened.close();
      throw netlinkFailed(`cannot set up a socket of protocol ${protocol}`, code);
    }
    // Refused to root of a user namespace, who then has the system's default.
    opened.#set(SOL_SOCKET, SO_SNDBUFFORCE, KERNEL_BUFFER_BYTES);
    opened.#set(SOL_SOCKET, SO_RCVBUFFORCE, KERNEL_BUFFER_BYTES);
    // Since Linux 4.3: refusals come without the message that was refused, which may have 64 KiB.
    opened.#set(SOL_NETLINK, NETLINK_CAP_ACK, 1);
    return opened;
  }

  join(group: number): void {
    if (this.#set(SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, group)) return;
    throw netlinkFailed(`cannot join the group ${group}`, libc().errno());
  }

  /** Messages that come of this socket's requests have it. The kernel knows by it, too, who owns a table. */
  get portId(): number {
    const address = new Uint8Array(ADDRESS_BYTES);
    const length = new Uint8Array(new Uint32Array([ADDRESS_BYTES]).buffer);
    const { getsockname, errno } = libc();
    if (getsockname(this.descriptor, address, length) !== 0)
      throw netlinkFailed('cannot ask for the port id of a socket', errno());
    return new Uint32Array(address.buffer)[PORT_WORD] ?? KERNEL_PORT;
  }

  /** From now on nothing that is sent because of requests of sockets with these port ids. An earlier filter is replaced. */
  setFilter(notFrom: readonly number[]): void {
    const program = filterProgram(notFrom);
    const count = program.length / FILTER_INSTRUCTION_BYTES;
    if (libc().attachFilter(this.descriptor, program, count) === 0) return;
    throw netlinkFailed('cannot set a filter', libc().errno());
  }

  /** In this thread. */
  sendNow(bytes: Uint8Array): void {
    const sent = callNow(libc().sendto, this.descriptor, ...this.#from(bytes));
    if (sent < 0) throw netlinkFailed('cannot send', -sent);
  }

  async send(bytes: Uint8Array): Promise<void> {
    for (;;) {
      const sent = await this.#call(libc().sendto, ...this.#from(bytes));
      if (sent >= 0) return;
      if (-sent === constants.errno.EMSGSIZE && this.#fit(bytes.length)) continue;
      if (-sent !== constants.errno.EINTR) throw netlinkFailed('cannot send', -sent);
    }
  }

  async receive(isDump = false): Promise<Uint8Array> {
    // One limit for the whole wait: what others send us must not prolong it.
    const until = performance.now() + TIMEOUT_MS;
    for (let pauseMs = 1; ; pauseMs = Math.min(2 * pauseMs, MAX_PAUSE_MS)) {
      const taken = isDump ? this.#received(await this.#call(libc().recvfrom, ...this.#into())) : this.take();
      if (taken instanceof Uint8Array) return taken;
      if (performance.now() > until)
        throw new JunctionError('NETLINK_TIMED_OUT', 'netlink: no answer in time');
      // Hardly ever: the kernel has answered a request when it was sent.
      if (taken === undefined) await sleep(pauseMs);
      if (!this.#isOpen) throw closedError();
    }
  }

  /** What the kernel has sent already, if anything. */
  take(): Uint8Array | undefined {
    for (let dropped = 0; dropped < MAX_DROPPED; dropped++) {
      const taken = this.#received(callNow(libc().recvfrom, this.descriptor, ...this.#into()));
      if (taken !== 'dropped') return taken;
    }
    return undefined;
  }

  /** The arguments of `sendto`. */
  #from(bytes: Uint8Array): [Uint8Array, number, number, Uint8Array, number] {
    return [bytes, bytes.length, 0, this.#kernel, this.#kernel.length];
  }

  /** The arguments of `recvfrom`. */
  #into(): [Uint8Array, number, number, Uint8Array, Uint8Array] {
    this.#senderLength[0] = this.#sender.length;
    const flags = MSG_TRUNC | MSG_DONTWAIT;
    return [this.#buffer, this.#buffer.length, flags, this.#sender, this.#senderLengthBytes];
  }

  #received(length: number): Uint8Array | 'dropped' | undefined {
    if (length < 0) {
      if (-length === constants.errno.EAGAIN) return undefined;
      if (-length === constants.errno.ENOBUFS) throw new ReceiveOverrun();
      if (-length !== constants.errno.EINTR) throw netlinkFailed('cannot receive', -length);
      return 'dropped';
    }
    // Any process with CAP_NET_ADMIN in this network namespace may send to our socket, and what it sends looks like an
    // answer or a notification. Only the sender's address tells the difference, and the kernel fills that in.
    const hasAddress = (this.#senderLength[0] ?? 0) >= ADDRESS_BYTES;
    const sender = hasAddress ? this.#senderWords[PORT_WORD] : undefined;
    if (sender !== KERNEL_PORT) {
      countFault('netlink_not_from_kernel', `port id ${sender ?? 'unknown'}`);
      return 'dropped';
    }
    if (length > this.#buffer.length) throw new ReceiveOverrun(`one of them has ${length} bytes`);
    return this.#buffer.slice(0, length);
  }

  /** A socket that overflowed gets nothing more until it is empty. */
  drain(): void {
    for (let count = 0; count < MAX_DRAINED; count++) {
      try {
        if (!this.take()) return;
      } catch (error) {
        if (!(error instanceof ReceiveOverrun)) return;
      }
    }
  }

  /** A call under way fails when it returns. Closing is left to the pool: it took 83 ms while a large table was freed. */
  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    if (!this.#isBusy) close(this.descriptor, () => {});
  }

  async #call<A extends readonly unknown[]>(
    call: Parameters<typeof callInPool<[number, ...A]>>[0],
    ...args: A
  ): Promise<number> {
    const hasRoom = await poolHasRoom();
    if (!this.#isOpen) throw closedError();
    if (!hasRoom) return callNow(call, this.descriptor, ...args);
    this.#isBusy = true;
    try {
      const result = await callInPool(call, this.descriptor, ...args);
      if (this.#isOpen) return result;
      throw closedError();
    } finally {
      this.#isBusy = false;
      if (!this.#isOpen) close(this.descriptor, () => {});
    }
  }

  /** Makes the send buffer larger for a datagram that is. Returns false when it may not, or when that was no help. */
  #fit(bytes: number): boolean {
    if (bytes <= this.#sendBytes || !this.#set(SOL_SOCKET, SO_SNDBUFFORCE, bytes)) return false;
    this.#sendBytes = bytes;
    return true;
  }

  #set(level: number, name: number, value: number): boolean {
    const bytes = new Uint8Array(new Int32Array([value]).buffer);
    return libc().setsockopt(this.descriptor, level, name, bytes, bytes.length) === 0;
  }
}

/** struct sockaddr_nl with port 0. */
function kernelAddress(): Uint8Array {
  const address = new Uint8Array(ADDRESS_BYTES);
  address.set(new Uint8Array(new Uint16Array([AF_NETLINK]).buffer));
  return address;
}

/** asm-generic/poll.h */
const POLLIN = 1;
/** While the pool is full, or the kernel out of memory. */
const POLL_PAUSE_MS = 50;

/** Waits for descriptors. Returns those that have something to read or an error. */
export async function poll(descriptors: readonly number[]): Promise<ReadonlySet<number>> {
  // struct pollfd: 32 bits of descriptor, 16 of what is asked, 16 of what is so.
  const halves = new Int16Array(descriptors.length * 4);
  const words = new Int32Array(halves.buffer);
  for (const [index, descriptor] of descriptors.entries()) {
    words[index * 2] = descriptor;
    halves[index * 4 + 2] = POLLIN;
  }
  const bytes = new Uint8Array(halves.buffer);
  const hasRoom = await poolHasRoom();
  const count = hasRoom
    ? await callInPool(libc().poll, bytes, descriptors.length, -1)
    : callNow(libc().poll, bytes, descriptors.length, 0);
  if (!hasRoom || count < 0) await sleep(POLL_PAUSE_MS);
  return new Set(descriptors.filter((_, index) => halves[index * 4 + 3] !== 0));
}

/*
 * Which messages a netlink socket gets, as a classic BPF program that the kernel runs before it queues one. What is
 * dropped there takes neither room in the socket's buffer nor time: a start of ours makes a hundred thousand messages. Numbers from linux/filter.h.
 */

const LOAD_WORD = 0x20;
const JUMP_IF_EQUAL = 0x15;
const RETURN = 0x06;
const FILTER_INSTRUCTION_BYTES = 8;
const NOTHING = 0;
const EVERYTHING = 0xffffffff;
/** struct nlmsghdr */
const SENDER_OFFSET = 12;

type Instruction = readonly [code: number, value: number, ifTrue?: number, ifFalse?: number];

function filterProgram(notFrom: readonly number[]): Uint8Array {
  const instructions: Instruction[] = [[LOAD_WORD, SENDER_OFFSET]];
  for (const sender of notFrom)
    instructions.push([JUMP_IF_EQUAL, bigEndian(sender), 0, 1], [RETURN, NOTHING]);
  instructions.push([RETURN, EVERYTHING]);
  const view = new DataView(new ArrayBuffer(instructions.length * FILTER_INSTRUCTION_BYTES));
  for (const [index, [code, value, ifTrue = 0, ifFalse = 0]] of instructions.entries()) {
    const offset = index * FILTER_INSTRUCTION_BYTES;
    view.setUint16(offset, code, LITTLE_ENDIAN);
    view.setUint8(offset + 2, ifTrue);
    view.setUint8(offset + 3, ifFalse);
    view.setUint32(offset + 4, value, LITTLE_ENDIAN);
  }
  return new Uint8Array(view.buffer);
}

/** BPF reads in network order; netlink headers are in the machine's. */
function bigEndian(value: number): number {
  const view = new DataView(new ArrayBuffer(4));
  view.setUint32(0, value);
  return view.getUint32(0, LITTLE_ENDIAN);
}
