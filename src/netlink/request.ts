/** Requests and changes as messages, and what the kernel's answers to them mean. Numbers from linux/netlink.h. */
import { constants } from 'node:os';
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

const DONE = { state: 'done' } as const;
export const EXISTS: ReadonlyMap<number, 'exists'> = new Map([[constants.errno.EEXIST, 'exists']]);
export const NOTHING: ReadonlyMap<number, never> = new Map<number, never>();

export function outcomeOf({ expected, nameOf = errnoName }: Change, errno: number): ChangeOutcome {
  if (errno === 0) return DONE;
  const state = expected.get(errno);
  return state ? { state } : { state: 'refused', errno, name: nameOf(errno) };
}

/** Gives out the numbers of messages. */
export class Sequence {
  #last = 0;

  next(): number {
    this.#last = (this.#last + 1) >>> 0;
    return this.#last;
  }
}

interface Answer {
  readonly messages: Message[];
  isInterrupted: boolean;
  /** Set by an acknowledgement, a refusal, or the end of a dump. */
  errno?: number;
}

/** Four times a million flows, the largest table. */
const LIMIT_BYTES = 1 << 30;
/** Smaller datagrams count as this. */
const DATAGRAM_BYTES = 1 << 14;

/** Messages that go out as one datagram, and the kernel's answers to each of them. */
export class Exchange {
  readonly #sequence: Sequence;
  readonly #writer: MessageWriter;
  readonly #answers = new Map<number, Answer>();
  /** An answer to one of these messages is the end of all answers. */
  readonly #final = new Set<number>();
  #isDump = false;
  #isAsked = false;

  constructor(sequence: Sequence, capacity = 1024) {
    this.#sequence = sequence;
    this.#writer = new MessageWriter(capacity);
  }

  get bytes(): Uint8Array<ArrayBuffer> {
    return this.#writer.finish();
  }

  /**
   * Returns its number. The `last` message is acknowledged, and with it all before it are done or refused: refusals come unasked.
   * When the first message of a transaction is refused, nothing else is answered.
   */
  add({ type, flags, payload }: NetlinkRequest, place: 'first' | 'between' | 'last' = 'last'): number {
    const number = this.#sequence.next();
    const isDump = (flags & NLM_F_DUMP) === NLM_F_DUMP;
    const asked = place === 'last' && !isDump ? NLM_F_REQUEST | NLM_F_ACK : NLM_F_REQUEST;
    this.#writer.message({ type, flags: flags | asked, sequence: number }, payload);
    this.#answers.set(number, { messages: [], isInterrupted: false });
    if (place !== 'between') this.#final.add(number);
    this.#isDump ||= isDump;
    this.#isAsked ||= place === 'last';
    return number;
  }

  /** `onAnswers`: some have come. A transaction without messages has nothing to do. */
  async run(socket: DatagramSocket, onAnswers?: () => void): Promise<void> {
    if (!this.#isAsked) return;
    await socket.send(this.bytes);
    // An answer without an end must not hang.
    let left = LIMIT_BYTES;
    for (let isEnded = false; !isEnded; ) {
      const datagram = await socket.receive(this.#isDump);
      left -= Math.max(datagram.length, DATAGRAM_BYTES);
      if (left < 0)
        throw new JunctionError(
          'NETLINK_FAILED',
          'netlink: the kernel goes on answering without coming to an end',
        );
      isEnded = this.take(datagram);
      onAnswers?.();
    }
  }

  /** Returns whether it has the end of the answers. Passes over late answers to other requests. */
  take(datagram: Uint8Array): boolean {
    let isEnded = false;
    for (const message of decodeMessages(datagram)) {
      const { type, flags, sequence, payload } = message;
      const answer = this.#answers.get(sequence);
      if (!answer || answer.errno !== undefined || type === NLMSG_NOOP) continue;
      if (type === NLMSG_OVERRUN)
        throw new JunctionError('NETLINK_FAILED', 'netlink: the kernel says that answers were lost');
      answer.isInterrupted ||= (flags & NLM_F_DUMP_INTR) !== 0;
      if (isEnd(type)) {
        answer.errno = payload.length === 0 ? 0 : decodeErrno(payload);
        isEnded ||= this.#final.has(sequence);
      } else answer.messages.push(message);
    }
    return isEnded;
  }

  /** What the message of this number was refused with; 0: it was not. */
  errnoOf(number: number): number {
    return this.#answers.get(number)?.errno ?? 0;
  }

  /** The objects that came since this was last asked. */
  messagesOf(number: number): readonly Message[] {
    return this.#answers.get(number)?.messages.splice(0) ?? [];
  }

  replyTo(number: number): NetlinkReply {
    const { errno, isInterrupted: interrupted, messages = [] } = this.#answers.get(number) ?? {};
    if (errno === undefined || interrupted === undefined) throw noEnd();
    return errno === 0
      ? { kind: 'answered', interrupted, messages }
      : { kind: 'refused', errno, name: errnoName(errno) };
  }
}

/** Small questions that cannot wait, on a socket of their own. Returns the reply, or why there is none. */
export function requestOnce(protocol: number, request: NetlinkRequest): NetlinkReply | string {
  let socket: NetlinkSocket | undefined;
  try {
    socket = NetlinkSocket.open(protocol);
    const exchange = new Exchange(new Sequence());
    const number = exchange.add(request);
    socket.sendNow(exchange.bytes);
    for (let isEnded = false; !isEnded; ) {
      const datagram = socket.take();
      if (!datagram) throw noEnd();
      isEnded = exchange.take(datagram);
    }
    return exchange.replyTo(number);
  } catch (error) {
    if (isJunctionError(error)) return error.message;
    throw error;
  } finally {
    socket?.close();
  }
}

/** What the objects in the reply have; none where the request is refused, or cannot be sent. */
export function payloadsNow(protocol: number, request: NetlinkRequest): readonly Uint8Array[] {
  const reply = requestOnce(protocol, request);
  if (typeof reply === 'string' || reply.kind === 'refused') return [];
  return reply.messages.map(({ payload }) => payload);
}

function noEnd(): JunctionError {
  return malformedMessage('an answer without an end');
}
