/** A dump that is given away a datagram at a time. A filter leaves out what nobody wants, so that it is not decoded. */
import {
  forEachMessage,
  isEnd,
  LITTLE_ENDIAN,
  NLM_F_DUMP_INTR,
  NLMSG_NOOP,
  NLMSG_OVERRUN,
  viewOf,
} from '../codec.ts';
import { exchange } from '../request.ts';
import type { DatagramSocket } from '../socket.ts';
import { TimeSlice, runSliced } from '../../time/timeSlice.ts';
import { systemClock } from '../../time/systemClock.ts';
import { type ElementFilter, elementTest } from './elementFilter.ts';

export type ScanFilter = ElementFilter;

/** What of a message is wanted, as a whole message; `undefined`: nothing. Counts what it looked at. */
export interface MessageTest {
  readonly examined: number;
  take(message: Uint8Array): Uint8Array | undefined;
}

/**
 * Returns how many objects were examined. What is emitted ends with the kernel's last message, which says whether the dump was
 * interrupted, whatever was left out.
 */
export async function scanTable(
  socket: DatagramSocket,
  request: Uint8Array,
  filter: ScanFilter | undefined,
  emit: (bytes: Uint8Array) => void,
): Promise<number> {
  const timeSlice = new TimeSlice(systemClock);
  const test = filter && (await runSliced(testOf(filter), timeSlice));
  const last = viewOf(request).getUint32(8, LITTLE_ENDIAN);
  let interrupted = 0;
  for await (const datagram of exchange(socket, request, [{ bytes: request.length, last, isDump: true }]))
    forEachMessage(datagram, (view, offset, length) => {
      const type = view.getUint16(offset + 4, LITTLE_ENDIAN);
      const flags = view.getUint16(offset + 6, LITTLE_ENDIAN);
      interrupted |= flags & NLM_F_DUMP_INTR;
      if (isEnd(type)) view.setUint16(offset + 6, flags | interrupted, LITTLE_ENDIAN);
      const message = datagram.subarray(offset, offset + length);
      const isData = !isEnd(type) && type !== NLMSG_NOOP && type !== NLMSG_OVERRUN;
      const kept = test && isData ? test.take(message) : message;
      if (kept) emit(kept);
    });
  return test?.examined ?? 0;
}

function testOf(filter: ScanFilter): Generator<void, MessageTest> {
  switch (filter.kind) {
    case 'elements':
      return elementTest(filter);
  }
}
