/** Sends datagrams and passes on what answers them. Of the messages, only as much is read as tells where they end. */
import { JunctionError } from '../errors.ts';
import { ByteBuffer, LITTLE_ENDIAN, NLMSG_DONE, NLMSG_ERROR, align, forEachMessage } from './codec.ts';
import type { DatagramPort } from './port.ts';

/** One datagram, and the sequence number whose acknowledgement or end of dump is the end of the answers to it. */
export interface Exchange {
  readonly bytes: number;
  readonly last: number;
  /** Of a transaction, the one that begins it: when that is refused, nothing else is answered. */
  readonly begin?: number;
}

/** Four times what a million flows take, the largest table that anybody asks for. */
const LIMIT_BYTES = 1 << 30;
/** What a datagram takes at least, so that small ones come to an end too. */
const DATAGRAM_BYTES = 4096;

/** Yields the datagrams that answer, also those that answer a request before, which timed out. */
export function* exchange(
  port: DatagramPort,
  bytes: Uint8Array,
  exchanges: readonly Exchange[],
  beforeEach: () => void = () => undefined,
): Generator<Uint8Array, void, undefined> {
  let offset = 0;
  for (const { bytes: length, last, begin } of exchanges) {
    beforeEach();
    port.send(bytes.subarray(offset, offset + length));
    offset += length;
    // An answer without an end is a fault that must not become a hang.
    let left = LIMIT_BYTES;
    for (let isEnded = false; !isEnded; ) {
      const datagram = port.receive();
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

/** The type of an acknowledgement, a refusal, or the end of a dump. */
export function isEnd(type: number): boolean {
  return type === NLMSG_ERROR || type === NLMSG_DONE;
}

const SENDER_OFFSET = 12;

/** Whether all of these messages come of one socket's requests: the kernel puts its name into them. */
export function isAllFrom(datagram: Uint8Array, sender: number | undefined): boolean {
  let isAll = sender !== undefined;
  forEachMessage(datagram, (view, offset) => {
    isAll &&= view.getUint32(offset + SENDER_OFFSET, LITTLE_ENDIAN) === sender;
  });
  return isAll;
}

/** What the other thread decodes without being held up. */
const PART_BYTES = 1 << 18;
const FIRST_BYTES = 1 << 12;

/** Many small datagrams as a few large pieces: handing a piece to another thread costs more than its bytes. */
export class Parts extends ByteBuffer {
  readonly #emit: (bytes: Uint8Array<ArrayBuffer>) => void;
  readonly #most: number;

  constructor(emit: (bytes: Uint8Array<ArrayBuffer>) => void, most = PART_BYTES) {
    super(FIRST_BYTES);
    this.#emit = emit;
    this.#most = most;
  }

  add(datagram: Uint8Array): void {
    // The last message of a datagram is not padded, and another one follows here.
    if (this.used + align(datagram.length) > this.#most) this.flush();
    const start = this.reserve(datagram.length);
    this.bytes.set(datagram, start);
  }

  flush(): void {
    if (this.used === 0) return;
    this.#emit(this.bytes.subarray(0, this.used));
    this.renew(FIRST_BYTES);
  }
}
