/** Sends datagrams and passes on what answers them. Of the messages, only as much is read as tells where they end. */
import { JunctionError } from '../errors.ts';
import { LITTLE_ENDIAN, NLMSG_DONE, NLMSG_ERROR, forEachMessage } from './codec.ts';
import type { DatagramPort } from './port.ts';

/** One datagram, and the sequence number whose acknowledgement or end of dump is the end of the answers to it. */
export interface Exchange {
  readonly bytes: number;
  readonly last: number;
  /** Of a transaction, the one that begins it: when that is refused, nothing else is answered. */
  readonly begin?: number;
  readonly isDump?: boolean;
}

/** Four times what a million flows take, the largest table that anybody asks for. */
const LIMIT_BYTES = 1 << 30;
/** What a datagram takes at least, so that small ones come to an end too. */
const DATAGRAM_BYTES = 1 << 14;

/** Yields the datagrams that answer, also those that answer a request before, which timed out. */
export async function* exchange(
  port: DatagramPort,
  bytes: Uint8Array,
  exchanges: readonly Exchange[],
): AsyncGenerator<Uint8Array, void, undefined> {
  let offset = 0;
  for (const { bytes: length, last, begin, isDump } of exchanges) {
    await port.send(bytes.subarray(offset, offset + length));
    offset += length;
    // An answer without an end is a fault that must not become a hang.
    let left = LIMIT_BYTES;
    for (let isEnded = false; !isEnded; ) {
      const datagram = await port.receive(isDump);
      left -= Math.max(datagram.length, DATAGRAM_BYTES);
      if (left < 0) throw endlessAnswer();
      isEnded = endsAnswer(datagram, last, begin);
      yield datagram;
    }
  }
}

export function endlessAnswer(): JunctionError {
  return new JunctionError(
    'NETLINK_FAILED',
    'netlink: the kernel goes on answering without coming to an end',
  );
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
