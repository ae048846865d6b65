/**
 * A netlink socket with blocking calls: the kernel answers a request before `sendto` returns, so there is nothing to
 * wait for but a long dump. It belongs to the network namespace that the calling thread is in when it is opened.
 */
import {
  type Message,
  type MessageHeader,
  MessageWriter,
  NLM_F_ACK,
  NLM_F_DUMP,
  NLM_F_REQUEST,
  decodeMessages,
  malformed,
} from './codec.ts';
import { type DatagramPort, KernelPort } from './port.ts';
import { type NetlinkEnd, type NetlinkReply, ReplyReader, isEnd } from './reply.ts';
import { ReplyBudget } from './replyBudget.ts';

export type { NetlinkEnd, NetlinkRefusal, NetlinkReply } from './reply.ts';

/** linux/netlink.h */
export const NETLINK_ROUTE = 0;
export const NETLINK_NETFILTER = 12;
export const NETLINK_GENERIC = 16;

export interface NetlinkRequest extends Pick<MessageHeader, 'type' | 'flags'> {
  readonly payload: (writer: MessageWriter) => void;
}

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
    if (!reader.end) throw malformed('an answer without an end');
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
