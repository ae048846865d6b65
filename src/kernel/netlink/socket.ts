/**
 * A netlink socket with blocking calls: the kernel answers a request before `sendto` returns, so there is nothing to
 * wait for but a long dump. It belongs to the network namespace that the calling thread is in when it is opened.
 */
import { constants } from 'node:os';
import { JunctionError } from '../../errors.ts';
import { errnoName, libc } from '../libc.ts';
import {
  type Message,
  type MessageHeader,
  MessageWriter,
  NLMSG_DONE,
  NLMSG_ERROR,
  NLMSG_NOOP,
  NLMSG_OVERRUN,
  NLM_F_ACK,
  NLM_F_DUMP,
  NLM_F_DUMP_INTR,
  NLM_F_REQUEST,
  decodeErrno,
  decodeMessages,
} from './codec.ts';

/** linux/netlink.h */
export const NETLINK_ROUTE = 0;
export const NETLINK_NETFILTER = 12;
export const NETLINK_GENERIC = 16;

export interface NetlinkRequest extends Pick<MessageHeader, 'type' | 'flags'> {
  readonly payload: (writer: MessageWriter) => void;
}

export type NetlinkReply =
  | {
      readonly kind: 'answered';
      readonly messages: readonly Message[];
      /** The kernel's objects changed during the dump: ask again. */
      readonly interrupted: boolean;
    }
  | NetlinkRefusal;

/** The kernel said no: `{ errno: 16, name: 'EBUSY' }`. */
export interface NetlinkRefusal {
  readonly kind: 'refused';
  readonly errno: number;
  readonly name: string;
}

/** How a reply ended whose messages were handed out before. */
export type NetlinkEnd = { readonly kind: 'answered'; readonly interrupted: boolean } | NetlinkRefusal;

const AF_NETLINK = 16;
const SOCK_RAW = 3;
const SOCK_CLOEXEC = 0o2000000;
const SOL_SOCKET = 1;
const SO_RCVTIMEO = 20;
const SO_SNDBUFFORCE = 32;
const SO_RCVBUFFORCE = 33;
const MSG_TRUNC = 0x20;
/** Answers wait here until a whole batch has been worked through; the system's default holds some two hundred. */
const KERNEL_BUFFER_BYTES = 4 << 20;
/** The kernel's own dump buffers are 32 KiB at most. */
const RECEIVE_BYTES = 1 << 17;

export class NetlinkSocket {
  readonly #fd: number;
  readonly #buffer = new Uint8Array(RECEIVE_BYTES);
  readonly #kernel = kernelAddress();
  #sequence = 0;
  #open = true;

  private constructor(fd: number) {
    this.#fd = fd;
  }

  static open(protocol: number, options: { readonly timeoutMs?: number } = {}): NetlinkSocket {
    const { socket, bind, setsockopt, close, errno } = libc();
    const fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
    if (fd < 0) throw failed(`cannot open a netlink socket of protocol ${protocol}`, errno());
    const address = kernelAddress(); // port 0 also means: choose one for us
    const timeout = timeval(options.timeoutMs ?? 5000);
    if (
      setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, timeout, timeout.length) !== 0 ||
      bind(fd, address, address.length) !== 0
    ) {
      const code = errno();
      close(fd);
      throw failed(`cannot set up a netlink socket of protocol ${protocol}`, code);
    }
    // Refused to root of a user namespace, who then has the system's default.
    const size = new Uint8Array(new Int32Array([KERNEL_BUFFER_BYTES]).buffer);
    setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, size, size.length);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, size, size.length);
    return new NetlinkSocket(fd);
  }

  /** Sends one message and reads until the kernel has acknowledged it, or its dump is done. */
  request(request: NetlinkRequest): NetlinkReply {
    const messages: Message[] = [];
    const batches = this.batches(request);
    for (;;) {
      const { done, value } = batches.next();
      if (!done) messages.push(...value);
      else return value.kind === 'refused' ? value : { ...value, messages };
    }
  }

  /** The same, a datagram at a time: of a long dump, no more is in memory than is being read. */
  *batches(request: NetlinkRequest): Generator<readonly Message[], NetlinkEnd, undefined> {
    const sequence = this.takeSequence();
    const dump = (request.flags & NLM_F_DUMP) === NLM_F_DUMP;
    const flags = request.flags | NLM_F_REQUEST | (dump ? 0 : NLM_F_ACK);
    const writer = new MessageWriter(256);
    this.send(writer.message({ type: request.type, flags, sequence }, request.payload).finish());
    return yield* this.#replies(sequence);
  }

  close(): void {
    if (!this.#open) return;
    this.#open = false;
    libc().close(this.#fd);
  }

  takeSequence(): number {
    this.#sequence = (this.#sequence + 1) >>> 0;
    return this.#sequence;
  }

  /** Of one or many whole messages. The kernel has worked through them all when this returns. */
  send(bytes: Uint8Array): void {
    const { sendto, errno } = libc();
    for (;;) {
      const sent = sendto(this.#fd, bytes, bytes.length, 0, this.#kernel, this.#kernel.length);
      if (sent === bytes.length) return;
      const code = errno();
      if (code !== constants.errno.EINTR) throw failed('cannot send', code);
    }
  }

  /** The messages of the next datagram, whoever asked for them. */
  receive(): readonly Message[] {
    return decodeMessages(this.#datagram());
  }

  *#replies(sequence: number): Generator<readonly Message[], NetlinkEnd, undefined> {
    let interrupted = false;
    for (;;) {
      const messages: Message[] = [];
      for (const message of this.receive()) {
        // An answer to a request that timed out before.
        if (message.sequence !== sequence || message.type === NLMSG_NOOP) continue;
        if (message.type === NLMSG_OVERRUN) throw failed('answers were lost', constants.errno.ENOBUFS);
        interrupted ||= (message.flags & NLM_F_DUMP_INTR) !== 0;
        if (message.type === NLMSG_ERROR || message.type === NLMSG_DONE) {
          const errno = message.payload.length === 0 ? 0 : decodeErrno(message.payload);
          if (messages.length > 0) yield messages;
          if (errno !== 0) return { kind: 'refused', errno, name: errnoName(errno) };
          return { kind: 'answered', interrupted };
        }
        messages.push(message);
      }
      yield messages;
    }
  }

  /** A copy, because the messages that are decoded from it outlive the next call. */
  #datagram(): Uint8Array {
    const { recv, errno } = libc();
    for (;;) {
      const length = recv(this.#fd, this.#buffer, this.#buffer.length, MSG_TRUNC);
      if (length > this.#buffer.length)
        throw failed(`an answer of ${length} bytes`, constants.errno.EMSGSIZE);
      if (length >= 0) return this.#buffer.slice(0, length);
      const code = errno();
      if (code === constants.errno.EAGAIN)
        throw new JunctionError('NETLINK_TIMED_OUT', 'netlink: no answer in time');
      if (code !== constants.errno.EINTR) throw failed('cannot receive', code);
    }
  }
}

/** struct sockaddr_nl with port 0. */
function kernelAddress(): Uint8Array {
  const address = new Uint8Array(12);
  address.set(new Uint8Array(new Uint16Array([AF_NETLINK]).buffer));
  return address;
}

/** struct timeval of a 64-bit machine. */
function timeval(milliseconds: number): Uint8Array {
  const seconds = Math.floor(milliseconds / 1000);
  const microseconds = (milliseconds - seconds * 1000) * 1000;
  return new Uint8Array(new BigInt64Array([BigInt(seconds), BigInt(Math.round(microseconds))]).buffer);
}

function failed(what: string, errno: number): JunctionError {
  return new JunctionError('NETLINK_FAILED', `netlink: ${what}: ${errnoName(errno)}`);
}
