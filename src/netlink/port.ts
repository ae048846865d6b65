/** Whole datagrams to the kernel and back. What stands in for the kernel in tests is one of these too. */
import { close } from 'node:fs';
import { constants } from 'node:os';
import { isMainThread } from 'node:worker_threads';
import { JunctionError } from '../errors.ts';
import { countFault } from '../faults.ts';
import { errnoName, libc } from '../system/libc.ts';
import { LITTLE_ENDIAN } from './codec.ts';

export interface DatagramPort {
  /** Of one or many whole messages. The kernel has worked through them all when this returns. */
  send(bytes: Uint8Array): void;
  /** Waits for the next one, which is the caller's to keep. */
  receive(): Uint8Array;
  close(): void;
}

export interface PortOptions {
  /** How long to wait for an answer. */
  readonly timeoutMs?: number;
  /** A descriptor; when there is something to read from it, waiting ends with `PortStopped`. */
  readonly stop?: number;
}

export function netlinkFailed(what: string, errno: number): JunctionError {
  return new JunctionError('NETLINK_FAILED', `netlink: ${what}: ${errnoName(errno)}`);
}

/** The kernel had more to say than the socket's buffer holds. What was done is done; nobody knows what. */
export class AnswersLost extends JunctionError {
  constructor(why = 'the buffer of the socket was full: ENOBUFS') {
    super('NETLINK_FAILED', `netlink: answers were lost, because ${why}`);
  }
}

/** Nobody is interested in the answer any more. */
export class PortStopped extends Error {
  override readonly name = 'PortStopped';
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
const DEFAULT_TIMEOUT_MS = 5000;
/** struct sockaddr_nl: family and padding, port id, groups. */
const ADDRESS_BYTES = 12;
const PORT_WORD = 1;
const KERNEL_PORT = 0;
/** So many messages of other processes are dropped in one go; then others have their turn. */
const MOST_DROPPED = 256;

export class KernelPort implements DatagramPort {
  readonly descriptor: number;
  readonly #timeoutMs: number;
  readonly #stop: number | undefined;
  readonly #buffer = new Uint8Array(RECEIVE_BYTES);
  readonly #kernel = kernelAddress();
  // Kept with their views: a verification receives 80,000 times.
  readonly #sender = new Uint8Array(ADDRESS_BYTES);
  readonly #senderWords = new Uint32Array(this.#sender.buffer);
  readonly #senderLength = new Uint32Array(1);
  readonly #senderLengthBytes = new Uint8Array(this.#senderLength.buffer);
  #sendBytes = KERNEL_BUFFER_BYTES;
  #open = true;

  private constructor(descriptor: number, { timeoutMs = DEFAULT_TIMEOUT_MS, stop }: PortOptions) {
    this.descriptor = descriptor;
    this.#timeoutMs = timeoutMs;
    this.#stop = stop;
  }

  static open(protocol: number, options: PortOptions = {}): KernelPort {
    const { socket, bind, errno } = libc();
    const descriptor = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
    if (descriptor < 0) throw netlinkFailed(`cannot open a socket of protocol ${protocol}`, errno());
    const port = new KernelPort(descriptor, options);
    const address = kernelAddress(); // port 0 also means: choose one for us
    if (bind(descriptor, address, address.length) !== 0) {
      const code = errno();
      port.close();
      throw netlinkFailed(`cannot set up a socket of protocol ${protocol}`, code);
    }
    // Refused to root of a user namespace, who then has the system's default.
    port.#set(SOL_SOCKET, SO_SNDBUFFORCE, KERNEL_BUFFER_BYTES);
    port.#set(SOL_SOCKET, SO_RCVBUFFORCE, KERNEL_BUFFER_BYTES);
    // Since Linux 4.3: refusals come without the message that was refused, which may have 64 KiB.
    port.#set(SOL_NETLINK, NETLINK_CAP_ACK, 1);
    return port;
  }

  join(group: number): void {
    if (this.#set(SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, group)) return;
    throw netlinkFailed(`cannot join the group ${group}`, libc().errno());
  }

  /** What the kernel calls this socket (its port id): messages that come of its requests say so. */
  get name(): number {
    const address = new Uint8Array(ADDRESS_BYTES);
    const length = new Uint8Array(new Uint32Array([ADDRESS_BYTES]).buffer);
    const { getsockname, errno } = libc();
    if (getsockname(this.descriptor, address, length) !== 0)
      throw netlinkFailed('cannot ask for the name of a socket', errno());
    return new Uint32Array(address.buffer)[PORT_WORD] ?? KERNEL_PORT;
  }

  /** From now on; an earlier filter is replaced. */
  setFilter({ notFrom, onlyType }: MessageFilter): void {
    const program = filterProgram(notFrom, onlyType);
    const count = program.length / FILTER_INSTRUCTION_BYTES;
    if (libc().attachFilter(this.descriptor, program, count) === 0) return;
    throw netlinkFailed('cannot set a filter', libc().errno());
  }

  send(bytes: Uint8Array): void {
    const { sendto, errno } = libc();
    for (;;) {
      const sent = sendto(this.descriptor, bytes, bytes.length, 0, this.#kernel, this.#kernel.length);
      if (sent === bytes.length) return;
      const code = errno();
      if (code === constants.errno.EMSGSIZE && this.#fit(bytes.length)) continue;
      if (code !== constants.errno.EINTR) throw netlinkFailed('cannot send', code);
    }
  }

  receive(): Uint8Array {
    // One limit for the whole wait: what others send us must not prolong it.
    const until = performance.now() + this.#timeoutMs;
    for (;;) {
      const datagram = this.take();
      if (datagram) return datagram;
      const waited = this.#stop === undefined ? [this.descriptor] : [this.descriptor, this.#stop];
      const ready = poll(waited, Math.max(0, Math.ceil(until - performance.now())));
      if (this.#stop !== undefined && ready.has(this.#stop)) throw new PortStopped();
      if (ready.size === 0) throw new JunctionError('NETLINK_TIMED_OUT', 'netlink: no answer in time');
    }
  }

  /** What the kernel has sent already, if anything. */
  take(): Uint8Array | undefined {
    const { recvfrom, errno } = libc();
    for (let dropped = 0; dropped < MOST_DROPPED; ) {
      this.#senderLength[0] = this.#sender.length;
      const length = recvfrom(
        this.descriptor,
        this.#buffer,
        this.#buffer.length,
        MSG_TRUNC | MSG_DONTWAIT,
        this.#sender,
        this.#senderLengthBytes,
      );
      if (length < 0) {
        const code = errno();
        if (code === constants.errno.EAGAIN) return undefined;
        if (code === constants.errno.ENOBUFS) throw new AnswersLost();
        if (code !== constants.errno.EINTR) throw netlinkFailed('cannot receive', code);
        continue;
      }
      // Any process with CAP_NET_ADMIN in this network namespace may send to our socket, and what it sends looks like an
      // answer or a notification. Only the sender's address tells the difference, and the kernel fills that in.
      const hasAddress = (this.#senderLength[0] ?? 0) >= ADDRESS_BYTES;
      const sender = hasAddress ? this.#senderWords[PORT_WORD] : undefined;
      if (sender !== KERNEL_PORT) {
        countFault('netlink_not_from_kernel', `port id ${sender ?? 'unknown'}`);
        dropped++;
        continue;
      }
      if (length > this.#buffer.length) throw new AnswersLost(`one of them has ${length} bytes`);
      return this.#buffer.slice(0, length);
    }
    return undefined;
  }

  /**
   * After a transaction of nf_tables the kernel lets this wait for its clean-up, 40 ms. The main thread has it done by
   * another; in ours, Node would warn of a descriptor that it did not open.
   */
  close(): void {
    if (!this.#open) return;
    this.#open = false;
    if (isMainThread) close(this.descriptor, () => {});
    else libc().close(this.descriptor);
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

/** Waits for descriptors. Returns those that have something to read or an error; none when the time is over. */
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

/*
 * Which messages a netlink socket gets, as a classic BPF program that the kernel runs before it queues one. What is
 * dropped there costs neither room in the socket's buffer nor a thread's time: a cold start of ours would arrive with
 * a hundred thousand messages. Numbers from linux/filter.h.
 */

const LOAD_WORD = 0x20;
const LOAD_HALF = 0x28;
const JUMP_IF_EQUAL = 0x15;
const RETURN = 0x06;
const FILTER_INSTRUCTION_BYTES = 8;
const EVERYTHING = 0xffffffff;
/** struct nlmsghdr */
const TYPE_OFFSET = 4;
const SENDER_OFFSET = 12;

type Instruction = readonly [code: number, value: number, ifTrue?: number, ifFalse?: number];

export interface MessageFilter {
  /** Names of sockets (port ids) whose requests cause no notification. */
  readonly notFrom: readonly number[];
  /** Only messages of this type; all messages of a datagram are taken to be of the first one's. */
  readonly onlyType?: number | undefined;
}

function filterProgram(notFrom: readonly number[], onlyType?: number): Uint8Array {
  const drop: Instruction = [RETURN, 0];
  const instructions: Instruction[] = [];
  if (onlyType !== undefined)
    instructions.push([LOAD_HALF, TYPE_OFFSET], [JUMP_IF_EQUAL, bigEndian(onlyType, 16), 1], drop);
  instructions.push([LOAD_WORD, SENDER_OFFSET]);
  for (const sender of notFrom) instructions.push([JUMP_IF_EQUAL, bigEndian(sender, 32), 0, 1], drop);
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
function bigEndian(value: number, bits: 16 | 32): number {
  const view = new DataView(new ArrayBuffer(4));
  view.setUint32(0, bits === 16 ? value << 16 : value);
  return bits === 16 ? view.getUint16(0, LITTLE_ENDIAN) : view.getUint32(0, LITTLE_ENDIAN);
}
