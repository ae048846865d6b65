/**
 * Requests and their replies. The kernel answers a request before `sendto` returns, so there is nothing to wait for but a
 * long dump. A socket belongs to the network namespace that the calling thread is in when it is opened.
 */
import { JunctionError, isJunctionError } from '../errors.ts';
import { errnoName } from '../system/libc.ts';
import {
  type Message,
  type MessageHeader,
  MessageWriter,
  NLMSG_NOOP,
  NLMSG_OVERRUN,
  NLM_F_ACK,
  NLM_F_DUMP,
  NLM_F_DUMP_INTR,
  NLM_F_REQUEST,
  decodeErrno,
  decodeMessages,
  malformedMessage,
} from './codec.ts';
import { type Exchange, endsAnswer, isEnd } from './exchange.ts';
import { KernelPort } from './port.ts';
import type { Reduction } from './reduction.ts';

/** linux/netlink.h */
export const NETLINK_ROUTE = 0;
export const NETLINK_NETFILTER = 12;
export const NETLINK_GENERIC = 16;

export interface NetlinkRequest extends Pick<MessageHeader, 'type' | 'flags'> {
  readonly payload: (writer: MessageWriter) => void;
}

/** The kernel said no: `{ errno: 16, name: 'EBUSY' }`. */
export interface NetlinkRefusal {
  readonly kind: 'refused';
  readonly errno: number;
  readonly name: string;
}

interface Answered {
  readonly kind: 'answered';
  /** The kernel's objects changed during the dump: ask again. */
  readonly interrupted: boolean;
}

export type NetlinkReply = (Answered & { readonly messages: readonly Message[] }) | NetlinkRefusal;

/** How a reply ended whose messages were handed out before. */
export type NetlinkEnd = Answered | NetlinkRefusal;

/** Whole messages in datagrams, and what becomes of the answers to them. */
export interface Job<Result> {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly exchanges: readonly Exchange[];
  readonly take: (messages: readonly Message[]) => void;
  /** Instead of `take`: this gets what all answers were reduced to. */
  readonly reduced?: { readonly by: Reduction; readonly take: (bytes: Uint8Array) => void };
  /** When all answers have come. */
  readonly result: () => Result;
}

/** Gives out the numbers of messages. */
export class Sequence {
  #last = 0;

  next(): number {
    this.#last = (this.#last + 1) >>> 0;
    return this.#last;
  }
}

/** Waits in the calling thread: for small questions. */
export class NetlinkSocket {
  readonly sequence = new Sequence();
  readonly port: KernelPort;

  constructor(port: KernelPort) {
    this.port = port;
  }

  static open(protocol: number, options: { readonly timeoutMs?: number } = {}): NetlinkSocket {
    return new NetlinkSocket(KernelPort.open(protocol, options));
  }

  /** Sends one message and reads until the kernel has acknowledged it, or its dump is done. */
  request(request: NetlinkRequest): NetlinkReply {
    const [reply] = this.perform(requestJob([request], this.sequence));
    return reply ?? noEnd();
  }

  /** The same, a datagram at a time: of a long dump, no more is in memory than is being read. */
  *batches(request: NetlinkRequest): Generator<readonly Message[], NetlinkEnd, undefined> {
    const last = this.sequence.next();
    const writer = new MessageWriter(256);
    writeRequest(writer, request, last);
    const reader = new ReplyReader();
    for (const datagram of this.#exchange(writer.finish(), [{ bytes: writer.length, last }])) {
      // Others answer a request that timed out before.
      for (const message of decodeMessages(datagram)) if (message.sequence === last) reader.take(message);
      const messages = reader.messages.splice(0);
      if (messages.length > 0) yield messages;
    }
    return reader.end ?? noEnd();
  }

  perform<Result>({ bytes, exchanges, take, result }: Job<Result>): Result {
    for (const datagram of this.#exchange(bytes, exchanges)) take(decodeMessages(datagram));
    return result();
  }

  close(): void {
    this.port.close();
  }

  *#exchange(bytes: Uint8Array, exchanges: readonly Exchange[]): Generator<Uint8Array, void, undefined> {
    let offset = 0;
    for (const { bytes: length, last, begin } of exchanges) {
      this.port.sendNow(bytes.subarray(offset, offset + length));
      offset += length;
      for (let isEnded = false; !isEnded; ) {
        const datagram = this.port.receiveNow();
        isEnded = endsAnswer(datagram, last, begin);
        yield datagram;
      }
    }
  }
}

/** Each request in a datagram of its own. Replies in their order. */
export function requestJob(
  requests: readonly NetlinkRequest[],
  sequence: Sequence,
): Job<readonly NetlinkReply[]> {
  const writer = new MessageWriter(requests.length * 64);
  const readers = new Map<number, ReplyReader>();
  const exchanges: Exchange[] = [];
  for (const request of requests) {
    const start = writer.length;
    const last = sequence.next();
    writeRequest(writer, request, last);
    readers.set(last, new ReplyReader());
    const isDump = (request.flags & NLM_F_DUMP) === NLM_F_DUMP;
    exchanges.push({ bytes: writer.length - start, last, isDump });
  }
  return {
    bytes: writer.finish(),
    exchanges,
    take: (messages) => {
      for (const message of messages) readers.get(message.sequence)?.take(message);
    },
    result: () =>
      Array.from(readers.values(), ({ end = noEnd(), messages }) =>
        end.kind === 'refused' ? end : { ...end, messages },
      ),
  };
}

/** What is a dump is answered with an end, and all else asks for an acknowledgement. */
export function writeRequest(writer: MessageWriter, request: NetlinkRequest, sequence: number): void {
  writeMessage(writer, request, sequence, (request.flags & NLM_F_DUMP) !== NLM_F_DUMP);
}

export function writeMessage(
  writer: MessageWriter,
  { type, flags, payload }: NetlinkRequest,
  sequence: number,
  isAcknowledged: boolean,
): void {
  writer.message(
    { type, flags: flags | NLM_F_REQUEST | (isAcknowledged ? NLM_F_ACK : 0), sequence },
    payload,
  );
}

/** On a socket of its own. Returns the reply, or why there is none. */
export function requestOnce(protocol: number, request: NetlinkRequest): NetlinkReply | string {
  let socket: NetlinkSocket | undefined;
  try {
    socket = NetlinkSocket.open(protocol);
    return socket.request(request);
  } catch (error) {
    if (isJunctionError(error)) return error.message;
    throw error;
  } finally {
    socket?.close();
  }
}

/** Reads the answer to one request, message by message. */
export class ReplyReader {
  /** Those that were asked for, without those about the answer. */
  readonly messages: Message[] = [];
  /** Once it is known. */
  end: NetlinkEnd | undefined;
  #interrupted = false;

  take(message: Message): void {
    if (message.type === NLMSG_NOOP || this.end) return;
    if (message.type === NLMSG_OVERRUN)
      throw new JunctionError('NETLINK_FAILED', 'netlink: the kernel says that answers were lost');
    this.#interrupted ||= (message.flags & NLM_F_DUMP_INTR) !== 0;
    if (!isEnd(message.type)) {
      this.messages.push(message);
      return;
    }
    const errno = message.payload.length === 0 ? 0 : decodeErrno(message.payload);
    this.end =
      errno === 0
        ? { kind: 'answered', interrupted: this.#interrupted }
        : { kind: 'refused', errno, name: errnoName(errno) };
  }
}

function noEnd(): never {
  throw malformedMessage('an answer without an end');
}
