import { describe, expect, it } from 'vitest';
import type { NetlinkChannel } from '../../../src/netlink/channel.ts';
import { readElements } from '../../../src/netlink/nftables/elements.ts';
import type { NetlinkRefusal } from '../../../src/netlink/request.ts';
import { unhex } from '../../system/support/bytes.ts';
import { INTERVAL_ELEMENTS, MAP_ELEMENT, RANGE_ELEMENT } from './support/golden.ts';

const PLACE = { family: 'ip', table: 't', set: 's' } as const;
const refused = (errno: number, name: string): NetlinkRefusal => ({ kind: 'refused', errno, name });

/** Answers one question after the other; the last answer stands for all that follow. */
function channelWith(
  ...answers: readonly (readonly Uint8Array[] | NetlinkRefusal)[]
): Pick<NetlinkChannel, 'scan'> & { asked: number } {
  return {
    asked: 0,
    async scan(_, take) {
      const answer = answers[Math.min(this.asked++, answers.length - 1)] ?? [];
      if ('kind' in answer) return answer;
      take(answer.map((payload) => ({ type: 0, flags: 0, sequence: 0, payload })));
      return { kind: 'answered', interrupted: false };
    },
  };
}

describe('elements', () => {
  it('of a set that is not there are none; another refusal is an error', async () => {
    expect(await readElements(channelWith(refused(2, 'ENOENT')), PLACE)).toEqual([]);
    await expect(readElements(channelWith(refused(1, 'EPERM')), PLACE)).rejects.toMatchObject({
      message: 'netlink: cannot read the elements of s: EPERM',
    });
  });

  it('that are answered twice are read again', async () => {
    const channel = channelWith([RANGE_ELEMENT, RANGE_ELEMENT], [RANGE_ELEMENT]);
    expect(await readElements(channel, PLACE)).toHaveLength(1);
    expect(channel.asked).toBe(2);
  });

  it('that end an interval and begin another at the same address are two', async () => {
    const touching = Buffer.from(INTERVAL_ELEMENTS.slice());
    touching[touching.indexOf(unhex('0a000000'))] = 0x0b;
    const channel = channelWith([touching]);
    expect((await readElements(channel, PLACE)).length).toBeGreaterThan(1);
    expect(channel.asked).toBe(1);
  });

  it('that never come to rest are an error', async () => {
    const channel = channelWith([MAP_ELEMENT, MAP_ELEMENT]);
    await expect(readElements(channel, PLACE)).rejects.toMatchObject({ code: 'NETLINK_FAILED' });
    expect(channel.asked).toBe(10);
  });
});
