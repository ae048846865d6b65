/** Sends datagrams and passes on what answers them. Of the messages, only as much is read as tells where they end. */
import { HEADER_BYTES, LITTLE_ENDIAN, align, malformedMessage, viewOf } from '../codec.ts';
import type { DatagramPort } from '../port.ts';
import { ReplyBudget, isEnd } from '../socket.ts';
import type { Exchange } from './protocol.ts';

export function exchange(
  port: DatagramPort,
  bytes: Uint8Array,
  exchanges: readonly Exchange[],
  answers: Pick<Parts, 'add'>,
  beforeEach: () => void = () => undefined,
): void {
  let offset = 0;
  for (const { bytes: length, last, begin } of exchanges) {
    beforeEach();
    port.send(bytes.subarray(offset, offset + length));
    offset += length;
    const budget = new ReplyBudget();
    for (let isEnded = false; !isEnded; ) {
      const datagram = port.receive();
      budget.spend(datagram.length);
      isEnded = endsAnswer(datagram, last, begin);
      answers.add(datagram);
    }
  }
}

/** Throws at what is no message: beside the next datagram, it could look like one. */
export function endsAnswer(datagram: Uint8Array, last: number, begin = last): boolean {
  const view = viewOf(datagram);
  let isEnded = false;
  for (let offset = 0; offset < datagram.length; ) {
    const left = datagram.length - offset;
    const length = left < HEADER_BYTES ? 0 : view.getUint32(offset, LITTLE_ENDIAN);
    if (length < HEADER_BYTES || length > left)
      throw malformedMessage(`a message claims ${length} of ${left} bytes`);
    const type = view.getUint16(offset + 4, LITTLE_ENDIAN);
    const sequence = view.getUint32(offset + 8, LITTLE_ENDIAN);
    isEnded ||= isEnd({ type }) && (sequence === last || sequence === begin);
    offset += align(length);
  }
  return isEnded;
}

const SENDER_OFFSET = 12;

/**
 * The kernel puts the name of the socket into a message whose request it comes of. Of the first message, which is also that of the others in an answer; `undefined` where
 * there is none.
 */
export function senderOf(datagram: Uint8Array): number | undefined {
  return datagram.length < HEADER_BYTES
    ? undefined
    : viewOf(datagram).getUint32(SENDER_OFFSET, LITTLE_ENDIAN);
}

/** Whether all of these messages, each of which is whole, come of one socket's requests. */
export function isAllFrom(datagram: Uint8Array, sender: number | undefined): boolean {
  if (sender === undefined) return false;
  const view = viewOf(datagram);
  for (let offset = 0; offset < datagram.length; ) {
    if (view.getUint32(offset + SENDER_OFFSET, LITTLE_ENDIAN) !== sender) return false;
    offset += align(view.getUint32(offset, LITTLE_ENDIAN));
  }
  return true;
}

/** What the other thread decodes without being held up. */
const PART_BYTES = 1 << 18;
const FIRST_BYTES = 1 << 12;

/** Many small datagrams as a few large pieces: handing a piece to another thread costs more than its bytes. */
export class Parts {
  readonly #emit: (bytes: Uint8Array<ArrayBuffer>) => void;
  #bytes = new Uint8Array(FIRST_BYTES);
  #length = 0;

  constructor(emit: (bytes: Uint8Array<ArrayBuffer>) => void) {
    this.#emit = emit;
  }

  add(datagram: Uint8Array): void {
    // The last message of a datagram is not padded, and another one follows here.
    const end = this.#length + align(datagram.length);
    if (end > PART_BYTES && this.#length > 0) {
      this.flush();
      this.add(datagram);
      return;
    }
    if (end > this.#bytes.length) {
      const larger = new Uint8Array(Math.max(end, Math.min(this.#bytes.length * 4, PART_BYTES)));
      larger.set(this.#bytes.subarray(0, this.#length));
      this.#bytes = larger;
    }
    this.#bytes.set(datagram, this.#length);
    this.#length = end;
  }

  flush(): void {
    if (this.#length === 0) return;
    this.#emit(this.#bytes.subarray(0, this.#length));
    this.#bytes = new Uint8Array(FIRST_BYTES);
    this.#length = 0;
  }
}
