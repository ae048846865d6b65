/** Sends datagrams and passes on what answers them. Of the messages, only as much is read as tells where they end. */
import { HEADER_BYTES, LITTLE_ENDIAN, malformed } from '../codec.ts';
import type { DatagramPort } from '../port.ts';
import { isEnd } from '../reply.ts';
import { ReplyBudget } from '../replyBudget.ts';
import type { Parts } from './parts.ts';
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
  const view = new DataView(datagram.buffer, datagram.byteOffset, datagram.byteLength);
  let isEnded = false;
  for (let offset = 0; offset < datagram.length; ) {
    const left = datagram.length - offset;
    const length = left < HEADER_BYTES ? 0 : view.getUint32(offset, LITTLE_ENDIAN);
    if (length < HEADER_BYTES || length > left)
      throw malformed(`a message claims ${length} of ${left} bytes`);
    const type = view.getUint16(offset + 4, LITTLE_ENDIAN);
    const sequence = view.getUint32(offset + 8, LITTLE_ENDIAN);
    isEnded ||= isEnd({ type }) && (sequence === last || sequence === begin);
    offset += (length + 3) & ~3;
  }
  return isEnded;
}
