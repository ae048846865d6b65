/**
 * The kernel's end of a netlink socket, as a script. As strict as the kernel: it takes whole messages that are
 * requests, answers them in their order, says nothing unasked, and a closed socket is closed.
 */
import { JunctionError } from '../../../src/errors.ts';
import {
  decodeMessages,
  LITTLE_ENDIAN,
  type Message,
  MessageWriter,
  NLM_F_ACK,
  NLM_F_DUMP,
  NLM_F_DUMP_INTR,
  NLM_F_REQUEST,
  NLMSG_DONE,
  NLMSG_ERROR,
} from '../../../src/netlink/codec.ts';
import { type DatagramSocket, ReceiveOverrun } from '../../../src/netlink/socket.ts';

/** A datagram, or the end of waiting for one. */
const NLM_F_MULTI = 0x02;

export type Incoming = Uint8Array | 'ENOBUFS' | 'silence';

/** What one request is answered. It may have no end. */
export type Script = (request: Message) => Iterable<Incoming>;

export class KernelPeer implements DatagramSocket {
  readonly requests: Message[] = [];
  /** How many messages came in each datagram. */
  readonly datagrams: number[] = [];
  readonly #script: Script;
  readonly #answers: Iterator<Incoming>[] = [];
  #isOpen = true;

  constructor(script: Script) {
    this.#script = script;
  }

  send(bytes: Uint8Array): void {
    this.#assertOpen();
    // A copy: whoever sends may write over the bytes as soon as they are sent.
    const messages = decodeMessages(bytes.slice());
    if (messages.length === 0) throw new Error('an empty datagram');
    for (const message of messages) {
      if ((message.flags & NLM_F_REQUEST) === 0) throw new Error('a message that is no request');
      this.#answers.push(this.#script(message)[Symbol.iterator]());
    }
    this.requests.push(...messages);
    this.datagrams.push(messages.length);
  }

  receive(): Uint8Array {
    this.#assertOpen();
    const incoming = this.#next();
    if (incoming === 'ENOBUFS') throw new ReceiveOverrun();
    if (incoming === 'silence') throw new JunctionError('NETLINK_TIMED_OUT', 'netlink: no answer in time');
    return incoming;
  }

  close(): void {
    this.#isOpen = false;
  }

  #next(): Incoming {
    for (;;) {
      const [first] = this.#answers;
      if (!first) return 'silence';
      const step = first.next();
      if (!step.done) return step.value;
      this.#answers.shift();
    }
  }

  #assertOpen(): void {
    if (!this.#isOpen) throw new Error('EBADF');
  }
}

/** Of requests that ask for it. */
export function acknowledge(request: Message): readonly Uint8Array[] {
  return (request.flags & NLM_F_ACK) === 0 ? [] : [refusal(request, 0)];
}

export function refusal({ sequence, type, flags, payload }: Message, errno: number): Uint8Array {
  const number = new Uint8Array(4);
  new DataView(number.buffer).setInt32(0, -errno, LITTLE_ENDIAN);
  const theirs = new MessageWriter().message({ type, flags, sequence }, (writer) => writer.raw(payload));
  return datagram({ type: NLMSG_ERROR, flags: 0, sequence }, number, theirs.finish());
}

/** One object of the answer to a request. */
export function object({ sequence, flags }: Message, type: number, payload: Uint8Array): Uint8Array {
  const isDump = (flags & NLM_F_DUMP) === NLM_F_DUMP;
  return datagram({ type, flags: isDump ? NLM_F_MULTI : 0, sequence }, payload);
}

export function done({ sequence }: Message, interrupted = false): Uint8Array {
  const flags = NLM_F_MULTI | (interrupted ? NLM_F_DUMP_INTR : 0);
  return datagram({ type: NLMSG_DONE, flags, sequence }, new Uint8Array(4));
}

function datagram(header: Parameters<MessageWriter['message']>[0], ...parts: Uint8Array[]): Uint8Array {
  const writer = new MessageWriter().message(header, (body) => parts.forEach((part) => body.raw(part)));
  return writer.finish().slice();
}
