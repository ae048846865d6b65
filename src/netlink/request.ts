/**
 * Requests and changes as messages, and what the kernel's answers mean. Numbers from linux/netlink.h.
 */
import { constants } from 'node:os';
import { JunctionError, isJunctionError } from '../errors.ts';
import { errnoName } from '../system/libc.ts';
import {
  LITTLE_ENDIAN,
  type Message,
  type MessageHeader,
  MessageWriter,
  NLMSG_ERROR,
  NLMSG_NOOP,
  NLMSG_OVERRUN,
  NLM_F_ACK,
  NLM_F_DUMP,
  NLM_F_DUMP_INTR,
  NLM_F_REQUEST,
  decodeErrno,
  decodeMessages,
  forEachMessage,
  isEnd,
  malformedMessage,
} from './codec.ts';
import { type DatagramSocket, NetlinkSocket } from './socket.ts';

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

/** How a dump ended whose messages were handed out. */
export type NetlinkEnd = Answered | NetlinkRefusal;

/** Small questions that cannot wait, on a socket of their own. Returns the reply, or why there is none. */
export function requestOnce(protocol: number, request: NetlinkRequest): NetlinkReply | string {
  let socket: NetlinkSocket | undefined;
  try {
    socket = NetlinkSocket.open(protocol);
    const { bytes, exchanges, take, result } = requestJob([request], new Sequence());
    for (const { last } of exchanges) {
      socket.sendNow(bytes);
      for (let isEnded = false; !isEnded; ) {
        const datagram = socket.take();
        if (!datagram) throw malformedMessage('an answer without an end');
        isEnded = endsAnswer(datagram, last);
        take(decodeMessages(datagram));
      }
    }
    return result()[0] ?? noEnd();
  } catch (error) {
    if (isJunctionError(error)) return error.message;
    throw error;
  } finally {
    socket?.close();
  }
}

/** One datagram, and the sequence number whose acknowledgement or end of dump is the end of the answers to it. */
export interface Exchange {
  readonly bytes: number;
  readonly last: number;
  /** Of a transaction, the one that begins it: when that is refused, nothing else is answered. */
  readonly begin?: number;
  readonly isDump?: boolean;
}

/** Whole messages in datagrams, and what becomes of the answers to them. */
export interface Job<Result> {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly exchanges: readonly Exchange[];
  readonly take: (messages: readonly Message[]) => void;
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

/** Four times a million flows, the largest table. */
const LIMIT_BYTES = 1 << 30;
/** Smaller datagrams count as this. */
const DATAGRAM_BYTES = 1 << 14;

/** Yields the answers, also late ones to a request that timed out. */
export async function* exchange(
  socket: DatagramSocket,
  bytes: Uint8Array,
  exchanges: readonly Exchange[],
): AsyncGenerator<Uint8Array, void, undefined> {
  let offset = 0;
  for (const { bytes: length, last, begin, isDump } of exchanges) {
    await socket.send(bytes.subarray(offset, offset + length));
    offset += length;
    // An answer without an end must not hang.
    let left = LIMIT_BYTES;
    for (let isEnded = false; !isEnded; ) {
      const datagram = await socket.receive(isDump);
      left -= Math.max(datagram.length, DATAGRAM_BYTES);
      if (left < 0)
        throw new JunctionError(
          'NETLINK_FAILED',
          'netlink: the kernel goes on answering without coming to an end',
        );
      isEnded = endsAnswer(datagram, last, begin);
      yield datagram;
    }
  }
}

export function endsAnswer(datagram: Uint8Array, last: number, begin = last): boolean {
  let isEnded = false;
  forEachMessage(datagram, (view, offset) => {
    if (!isEnd(view.getUint16(offset + 4, LITTLE_ENDIAN))) return;
    const sequence = view.getUint32(offset + 8, LITTLE_ENDIAN);
    isEnded ||= sequence === last || sequence === begin;
  });
  return isEnded;
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

/** A dump is answered with an end; anything else asks for an acknowledgement. */
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

/** Reads the answer to one request, message by message. */
export class ReplyReader {
  /** The objects, without acknowledgements and ends. */
  readonly messages: Message[] = [];
  /** Set when the answer is complete. */
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

export interface Change extends NetlinkRequest {
  /** Errors that mean that there is nothing to change. */
  readonly expected: ReadonlyMap<number, 'exists' | 'absent'>;
  /** Names the errors of a family that has its own. */
  readonly nameOf?: (errno: number) => string;
}

export type ChangeOutcome =
  | { readonly state: 'done' }
  /** It exists already. */
  | { readonly state: 'exists' }
  /** It, or what it is part of, does not exist. */
  | { readonly state: 'absent' }
  | { readonly state: 'refused'; readonly errno: number; readonly name: string };

/**
 * When every change is refused, the refusals wait in the receive buffer, at about a kilobyte each. So many fit into one of the
 * default size, which an unprivileged socket has.
 */
const MESSAGES_PER_DATAGRAM = 128;
/** Well under the default send buffer, to which the kernel adds its own overhead. */
const BYTES_PER_DATAGRAM = 1 << 16;

const DONE = { state: 'done' } as const;
export const EXISTS: ReadonlyMap<number, 'exists'> = new Map([[constants.errno.EEXIST, 'exists']]);
export const NOTHING: ReadonlyMap<number, never> = new Map<number, never>();

/** As many datagrams as the changes take. Outcomes in their order. */
export function changeJob(changes: readonly Change[], sequence: Sequence): Job<readonly ChangeOutcome[]> {
  const writer = new MessageWriter(changes.length * 64);
  const numbers: number[] = [];
  const exchanges: Exchange[] = [];
  let start = 0;
  let count = 0;
  for (const [index, change] of changes.entries()) {
    count += 1;
    const isLast =
      index === changes.length - 1 ||
      count === MESSAGES_PER_DATAGRAM ||
      writer.length - start >= BYTES_PER_DATAGRAM;
    const last = sequence.next();
    numbers.push(last);
    // Refusals come unasked. When the last change is acknowledged, all before it are done or refused.
    writeMessage(writer, change, last, isLast);
    if (!isLast) continue;
    exchanges.push({ bytes: writer.length - start, last });
    start = writer.length;
    count = 0;
  }
  const errors = new Map<number, number>();
  return {
    bytes: writer.finish(),
    exchanges,
    // Includes late answers to other requests.
    take: (messages) => {
      for (const { type, sequence: number, payload } of messages)
        if (type === NLMSG_ERROR) errors.set(number, decodeErrno(payload));
    },
    result: () => changes.map((change, index) => outcomeOf(change, errors.get(numbers[index] ?? 0) ?? 0)),
  };
}

function outcomeOf({ expected, nameOf = errnoName }: Change, errno: number): ChangeOutcome {
  if (errno === 0) return DONE;
  const state = expected.get(errno);
  return state ? { state } : { state: 'refused', errno, name: nameOf(errno) };
}
