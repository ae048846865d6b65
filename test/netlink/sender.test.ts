import { describe, expect, it } from 'vitest';
import { MessageWriter } from '../../src/netlink/codec.ts';
import { isAllFrom } from '../../src/netlink/exchange.ts';

const SENDER_OFFSET = 12;

/** One message for each, with a body of odd length so that there is padding between them. */
function datagram(...senders: readonly number[]): Uint8Array {
  const writer = new MessageWriter();
  const offsets = senders.map(() => {
    const start = writer.length;
    writer.message({ type: 1, flags: 0, sequence: 0 }, (body) => body.string(1, 'abcd'));
    return start;
  });
  const bytes = writer.finish();
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  for (const [index, offset] of offsets.entries())
    view.setUint32(offset + SENDER_OFFSET, senders[index] ?? 0, true);
  return bytes;
}

describe('who is behind messages', () => {
  it.each([
    ['one of ours', [7], 7, true],
    ['several of ours', [7, 7, 7], 7, true],
    ['one of somebody else', [8], 7, false],
    ['ours, and then one of somebody else', [7, 7, 8], 7, false],
    ['of nobody who could be known yet', [7], undefined, false],
  ])('%s', (_, senders, own, expected) => {
    expect(isAllFrom(datagram(...senders), own)).toBe(expected);
  });
});
