import { describe, expect, it } from 'vitest';
import type { DumpReply, NetlinkChannel } from '../../../src/netlink/channel.ts';
import { readElements } from '../../../src/netlink/nftables/elements.ts';
import { unhex } from '../../system/support/bytes.ts';
import { INTERVAL_ELEMENTS, MAP_ELEMENT, RANGE_ELEMENT } from './support/golden.ts';

const PLACE = { family: 'ip', table: 't' } as const;
const ENOENT: DumpReply = { kind: 'refused', errno: 2, name: 'ENOENT' };

const answer = (...payloads: readonly Uint8Array[]): DumpReply => ({
  kind: 'answered',
  messages: payloads.map((payload) => ({ type: 0, flags: 0, sequence: 0, payload })),
});

/** Answers one question after the other; the last answer stands for all that follow. */
function channelWith(
  ...answers: readonly (readonly DumpReply[])[]
): Pick<NetlinkChannel, 'dumpAll'> & { asked: number[] } {
  const asked: number[] = [];
  return {
    asked,
    dumpAll: (requests) => {
      const replies = answers[Math.min(asked.length, answers.length - 1)] ?? [];
      asked.push(requests.length);
      return Promise.resolve(replies);
    },
  };
}

describe('elements', () => {
  const places = [
    { ...PLACE, set: 'any-3' },
    { ...PLACE, set: 'allowed' },
    { ...PLACE, set: 'none' },
  ];

  it('of several sets are answered in their order, and a set that is not there is told', async () => {
    const channel = channelWith([answer(MAP_ELEMENT), answer(RANGE_ELEMENT), ENOENT]);
    const replies = await readElements(channel, places);
    expect(replies.map((reply) => (reply.kind === 'answered' ? reply.elements.length : reply.name))).toEqual([
      1,
      1,
      'ENOENT',
    ]);
  });

  it('that are answered twice are read again, which are those of that set alone', async () => {
    const channel = channelWith(
      [answer(MAP_ELEMENT), answer(RANGE_ELEMENT, RANGE_ELEMENT), ENOENT],
      [answer(RANGE_ELEMENT)],
    );
    const replies = await readElements(channel, places);
    expect(channel.asked).toEqual([3, 1]);
    expect(replies.map(({ kind }) => kind)).toEqual(['answered', 'answered', 'refused']);
    expect(replies[1]).toMatchObject({ elements: [{}] });
  });

  it('that end an interval and begin another at the same address are two', async () => {
    const touching = Buffer.from(INTERVAL_ELEMENTS.slice());
    touching[touching.indexOf(unhex('0a000000'))] = 0x0b;
    const channel = channelWith([answer(touching)]);
    expect(await readElements(channel, [{ ...PLACE, set: 'cidrs' }])).toMatchObject([{ kind: 'answered' }]);
    expect(channel.asked).toEqual([1]);
  });

  it('that never come to rest are an error', async () => {
    const channel = channelWith([answer(MAP_ELEMENT, MAP_ELEMENT)]);
    await expect(readElements(channel, [{ ...PLACE, set: 'any-3' }])).rejects.toMatchObject({
      code: 'NETLINK_FAILED',
    });
    expect(channel.asked).toHaveLength(10);
  });
});
