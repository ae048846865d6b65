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
  /** The kernel said no: `{ errno: 16, name: 'EBUSY' }`. */
  | { readonly kind: 'refused'; readonly errno: number; readonly name: string };

const AF_NETLINK = 16;
const SOCK_RAW = 3;
const SOCK_CLOEXEC = 0o2000000;
const SOL_SOCKET = 1;
const SO_RCVTIMEO = 20;
const MSG_TRUNC = 0x20;
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
    return new NetlinkSocket(fd);
  }

  /** Sends one message and reads until the kernel has acknowledged it, or its dump is done. */
  request(request: NetlinkRequest): NetlinkReply {
    this.#sequence = (this.#sequence + 1) >>> 0;
    const sequence = this.#sequence;
    const dump = (request.flags & NLM_F_DUMP) === NLM_F_DUMP;
    const flags = request.flags | NLM_F_REQUEST | (dump ? 0 : NLM_F_ACK);
    const writer = new MessageWriter(256);
    this.#send(writer.message({ type: request.type, flags, sequence }, request.payload).finish());
    return this.#receive(sequence);
  }

  close(): void {
    if (!this.#open) return;
    this.#open = false;
    libc().close(this.#fd);
  }

  #send(bytes: Uint8Array): void {
    const { sendto, errno } = libc();
    for (;;) {
      const sent = sendto(this.#fd, bytes, bytes.length, 0, this.#kernel, this.#kernel.length);
      if (sent === bytes.length) return;
      const code = errno();
      if (code !== constants.errno.EINTR) throw failed('cannot send', code);
    }
  }

  #receive(sequence: number): NetlinkReply {
    const messages: Message[] = [];
    let interrupted = false;
    for (;;) {
      for (const message of decodeMessages(this.#datagram())) {
        // An answer to a request that timed out before.
        if (message.sequence !== sequence || message.type === NLMSG_NOOP) continue;
        if (message.type === NLMSG_OVERRUN) throw failed('answers were lost', constants.errno.ENOBUFS);
        interrupted ||= (message.flags & NLM_F_DUMP_INTR) !== 0;
        if (message.type === NLMSG_ERROR || message.type === NLMSG_DONE) {
          const errno = message.payload.length === 0 ? 0 : decodeErrno(message.payload);
          if (errno !== 0) return { kind: 'refused', errno, name: errnoName(errno) };
          return { kind: 'answered', messages, interrupted };
        }
        messages.push(message);
      }
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
