/**
 * A dump that is read a datagram at a time, between which the thread does other jobs, on a socket of its own: a change
 * never waits for it. A filter leaves out here what nobody wants, so that the main thread does not decode it.
 */
import {
  LITTLE_ENDIAN,
  NLM_F_DUMP_INTR,
  NLMSG_NOOP,
  NLMSG_OVERRUN,
  forEachMessage,
  viewOf,
} from '../codec.ts';
import { Parts, exchange, isEnd } from '../exchange.ts';
import type { DatagramPort } from '../port.ts';
import { type ChainFilter, chainTest } from './chainFilter.ts';
import { type ElementFilter, elementTest } from './elementFilter.ts';
import { type FlowFilter, flowTest } from './flowFilter.ts';

export type ScanFilter = ElementFilter | FlowFilter | ChainFilter;

/** What of a message is wanted, as a whole message; `undefined`: nothing. Counts what it looked at. */
export interface MessageTest {
  readonly examined: number;
  take(message: Uint8Array): Uint8Array | undefined;
}

/** Small enough to be decoded without holding anything up. */
const PART_BYTES = 1 << 16;

/**
 * Yields after each datagram; returns how many objects were examined. What is emitted ends with the kernel's last message,
 * which says whether the dump was interrupted, whatever was left out.
 */
export function* scanTable(
  port: DatagramPort,
  request: Uint8Array,
  filter: ScanFilter | undefined,
  emit: (bytes: Uint8Array<ArrayBuffer>) => void,
): Generator<void, number> {
  const test = filter && (yield* testOf(filter));
  const parts = new Parts(emit, PART_BYTES);
  const last = viewOf(request).getUint32(8, LITTLE_ENDIAN);
  let interrupted = 0;
  for (const datagram of exchange(port, request, [{ bytes: request.length, last }])) {
    forEachMessage(datagram, (view, offset, length) => {
      const type = view.getUint16(offset + 4, LITTLE_ENDIAN);
      const flags = view.getUint16(offset + 6, LITTLE_ENDIAN);
      interrupted |= flags & NLM_F_DUMP_INTR;
      if (isEnd(type)) view.setUint16(offset + 6, flags | interrupted, LITTLE_ENDIAN);
      const message = datagram.subarray(offset, offset + length);
      const isData = !isEnd(type) && type !== NLMSG_NOOP && type !== NLMSG_OVERRUN;
      const kept = test && isData ? test.take(message) : message;
      if (kept) parts.add(kept);
    });
    yield;
  }
  parts.flush();
  return test?.examined ?? 0;
}

function testOf(filter: ScanFilter): Generator<void, MessageTest> {
  switch (filter.kind) {
    case 'flows':
      return flowTest(filter);
    case 'elements':
      return elementTest(filter);
    case 'chains':
      return chainTest(filter);
  }
}
