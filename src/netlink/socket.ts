/**
 * A netlink socket with blocking calls: the kernel answers a request before `sendto` returns, so there is nothing to
 * wait for but a long dump. It belongs to the network namespace that the calling thread is in when it is opened.
 */
import { JunctionError, isJunctionError } from '../errors.ts';
import { errnoName } from '../system/libc.ts';
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
  malformedMessage,
} from './codec.ts';
import { type DatagramPort, KernelPort } from './port.ts';

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

/** Four times what a million flows take, the largest table that anybody asks for. */
const LIMIT_BYTES = 1 << 30;
/** What a datagram takes at least, so that small ones come to an end too. */
const DATAGRAM_BYTES = 4096;

export class NetlinkSocket {
  readonly #port: DatagramPort;
  #sequence = 0;

  constructor(port: DatagramPort) {
    this.#port = port;
  }

  static open(protocol: number, options: { readonly timeoutMs?: number } = {}): NetlinkSocket {
    return new NetlinkSocket(KernelPort.open(protocol, options));
  }

  /** Sends one message and reads until the kernel has acknowledged it, or its dump is done. */
  request(request: NetlinkRequest): NetlinkReply {
    const messages: Message[] = [];
    const batches = this.batches(request);
    for (;;) {
      const { done, value } = batches.next();
      if (done) return value.kind === 'refused' ? value : { ...value, messages };
      for (const message of value) messages.push(message);
    }
  }

  /** The same, a datagram at a time: of a long dump, no more is in memory than is being read. */
  *batches(request: NetlinkRequest): Generator<readonly Message[], NetlinkEnd, undefined> {
    const sequence = this.takeSequence();
    const writer = new MessageWriter(256);
    writeRequest(writer, request, sequence);
    this.send(writer.finish());
    const reader = new ReplyReader();
    for (const datagram of this.answers(sequence)) {
      // Others answer a request that timed out before.
      const ours = datagram.filter((message) => message.sequence === sequence && reader.take(message));
      if (ours.length > 0) yield ours;
    }
    if (!reader.end) throw malformedMessage('an answer without an end');
    return reader.end;
  }

  close(): void {
    this.#port.close();
  }

  takeSequence(): number {
    this.#sequence = (this.#sequence + 1) >>> 0;
    return this.#sequence;
  }

  /** Of one or many whole messages. The kernel has worked through them all when this returns. */
  send(bytes: Uint8Array): void {
    this.#port.send(bytes);
  }

  /**
   * The messages of each datagram, whoever asked for them, up to the one that ends the answer to `last`, or to the one
   * that begins a transaction: what that is answered, nothing else is.
   */
  *answers(last: number, begin = last): Generator<readonly Message[], void, undefined> {
    const budget = new ReplyBudget();
    for (;;) {
      const datagram = this.#port.receive();
      budget.spend(datagram.length);
      const messages = decodeMessages(datagram);
      yield messages;
      if (
        messages.some(
          (message) => isEnd(message) && (message.sequence === last || message.sequence === begin),
        )
      )
        return;
    }
  }
}

export function writeRequest(writer: MessageWriter, request: NetlinkRequest, sequence: number): void {
  const isDump = (request.flags & NLM_F_DUMP) === NLM_F_DUMP;
  const flags = request.flags | NLM_F_REQUEST | (isDump ? 0 : NLM_F_ACK);
  writer.message({ type: request.type, flags, sequence }, request.payload);
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

/** Follows the answer to one request, message by message. */
export class ReplyReader {
  #interrupted = false;
  #end: NetlinkEnd | undefined;

  /** Once it is known. */
  get end(): NetlinkEnd | undefined {
    return this.#end;
  }

  /** Returns whether the message is one that was asked for, rather than one about the answer. */
  take(message: Message): boolean {
    if (message.type === NLMSG_NOOP || this.#end) return false;
    if (message.type === NLMSG_OVERRUN)
      throw new JunctionError('NETLINK_FAILED', 'netlink: the kernel says that answers were lost');
    this.#interrupted ||= (message.flags & NLM_F_DUMP_INTR) !== 0;
    if (!isEnd(message)) return true;
    const errno = message.payload.length === 0 ? 0 : decodeErrno(message.payload);
    this.#end =
      errno === 0
        ? { kind: 'answered', interrupted: this.#interrupted }
        : { kind: 'refused', errno, name: errnoName(errno) };
    return false;
  }
}

/** An acknowledgement, a refusal, or the end of a dump. */
export function isEnd({ type }: Pick<Message, 'type'>): boolean {
  return type === NLMSG_ERROR || type === NLMSG_DONE;
}

/** How much is read in answer to one request. An answer without an end is a fault that must not become a hang. */
export class ReplyBudget {
  #left = LIMIT_BYTES;

  spend(datagramBytes: number): void {
    this.#left -= Math.max(datagramBytes, DATAGRAM_BYTES);
    if (this.#left >= 0) return;
    throw new JunctionError(
      'NETLINK_FAILED',
      `netlink: the kernel goes on answering without coming to an end`,
    );
  }
}
