/** What the socket makes of whatever the kernel may answer, against a kernel that does as it is told. */
import { constants } from 'node:os';
import { describe, expect, it } from 'vitest';
import { addAddress, decodeLink, getLink, getLinks, newLink } from '../../src/netlink/rtnetlink.ts';
import type { Change } from '../../src/netlink/request.ts';
import type { NetlinkChannel } from '../../src/netlink/channel.ts';
import { HEADER_BYTES, type Message, NLM_F_ACK } from '../../src/netlink/codec.ts';
import { type Ip, parseIp } from '../../src/model/ip.ts';
import { unhex } from '../system/support/bytes.ts';
import { directChannel } from './support/directChannel.ts';
import {
  type Incoming,
  KernelPeer,
  type Script,
  acknowledge,
  done,
  object,
  refusal,
} from './support/kernelPeer.ts';

const RTM_NEWLINK = 16;
const LO = unhex('00000403 01000000 49000100 00000000 07000300 6c6f0000');
const { EBUSY, EEXIST, ENODEV, EPERM } = constants.errno;

const failure = (code: string, text: RegExp | string): unknown =>
  expect.objectContaining({ code, message: expect.stringMatching(text) as string });
const channelBy = (script: Script): NetlinkChannel => directChannel(new KernelPeer(script));
const address = (index: number): Change =>
  addAddress(1, parseIp(`10.0.${index >> 8}.${index & 255}`) ?? ('' as Ip));

describe('a request', () => {
  it('passes over answers to those before it', async () => {
    const earlier: Message[] = [];
    const channel = channelBy((request) => {
      const [old] = earlier;
      earlier.push(request);
      if (!old) return ['silence'];
      return [object(old, RTM_NEWLINK, LO), ...acknowledge(old), refusal(request, ENODEV)];
    });
    await expect(channel.request(getLink('lo'))).rejects.toEqual(
      failure('NETLINK_TIMED_OUT', 'no answer in time'),
    );
    expect(await channel.request(getLink('none0'))).toMatchObject({ kind: 'refused', name: 'ENODEV' });
  });

  it('is not waited for when answers were lost, and the next one is as good as any', async () => {
    let isFirst = true;
    const channel = channelBy((request) => {
      const answers: Incoming[] = isFirst ? ['ENOBUFS'] : [...acknowledge(request)];
      isFirst = false;
      return answers;
    });
    await expect(channel.request(newLink('a', 'dummy'))).rejects.toEqual(
      failure('NETLINK_FAILED', 'ENOBUFS'),
    );
    expect(await channel.request(newLink('b', 'dummy'))).toMatchObject({ kind: 'answered' });
  });

  it.each<[string, (request: Message) => Incoming]>([
    ['of its own', (request) => object(request, RTM_NEWLINK, LO)],
    ['of others', (request) => object({ ...request, sequence: 99 }, RTM_NEWLINK, LO)],
    ['of nothing', () => new Uint8Array()],
  ])('gives up on an answer without an end: messages %s', async (_, again) => {
    const channel = channelBy(function* (request) {
      for (;;) yield again(request);
    });
    await expect(channel.request(getLink('lo'))).rejects.toEqual(
      failure('NETLINK_FAILED', 'without coming to an end'),
    );
  });
});

describe('garbage', () => {
  it.each<[string, Uint8Array]>([
    ['a datagram that is too short for a header', new Uint8Array(HEADER_BYTES - 1)],
    ['a message that claims four gigabytes', unhex('ffffffff 10000000 01000000 00000000')],
    ['an acknowledgement without a number', unhex('12000000 02000000 01000000 00000000 0000')],
  ])('%s is an error', async (_, bytes) => {
    await expect(channelBy(() => [bytes]).request(getLink('lo'))).rejects.toEqual(
      failure('NETLINK_MALFORMED', ''),
    );
  });
});

describe('a dump', () => {
  /** Interrupted so many times, first in the midst and then at the end. */
  const interruptedTimes = (times: number): KernelPeer => {
    let left = times;
    return new KernelPeer((request) => {
      left -= 1;
      return [object(request, RTM_NEWLINK, LO), done(request, left >= 0)];
    });
  };

  it('is read again when it was interrupted', async () => {
    const peer = interruptedTimes(9);
    const channel = directChannel(peer);
    expect(await channel.list(getLinks(), 'the links', decodeLink)).toMatchObject([{ name: 'lo' }]);
    expect(peer.requests).toHaveLength(10);
  });

  it('is given up when it is interrupted ten times', async () => {
    const peer = interruptedTimes(10);
    const channel = directChannel(peer);
    await expect(channel.list(getLinks(), 'the links', decodeLink)).rejects.toEqual(
      failure('NETLINK_FAILED', 'the links changed during each of 10 readings'),
    );
    expect(peer.requests).toHaveLength(10);
  });

  it('of what does not exist has nothing; another refusal is an error, also one at its end', async () => {
    const list = (channel: NetlinkChannel) => channel.list(getLinks(), 'the links', decodeLink);
    expect(await list(channelBy((request) => [refusal(request, ENODEV)]))).toEqual([]);
    await expect(list(channelBy((request) => [refusal(request, EBUSY)]))).rejects.toEqual(
      failure('NETLINK_FAILED', 'cannot read the links: EBUSY'),
    );
    const failing = channelBy((request) => {
      const end = done(request);
      new DataView(end.buffer).setInt32(HEADER_BYTES, -EPERM, true);
      return [object(request, RTM_NEWLINK, LO), end];
    });
    await expect(list(failing)).rejects.toEqual(failure('NETLINK_FAILED', 'cannot read the links: EPERM'));
  });
});

describe('many changes', () => {
  it('go out in few datagrams, of which only the last message is acknowledged', async () => {
    const peer = new KernelPeer(acknowledge);
    const changes = Array.from({ length: 300 }, (_, index) => address(index));
    expect(await directChannel(peer).apply(changes)).toEqual(changes.map(() => ({ state: 'done' })));
    expect(peer.datagrams).toEqual([128, 128, 44]);
    const acknowledged = peer.requests.flatMap(({ flags }, index) =>
      (flags & NLM_F_ACK) === 0 ? [] : [index],
    );
    expect(acknowledged).toEqual([127, 255, 299]);
  });

  it('find their own refusals among those of others', async () => {
    const channel = channelBy((request) => {
      const stray = refusal({ ...request, sequence: 5000 + request.sequence }, EPERM);
      if (request.sequence % 3 === 0) return [stray, refusal(request, EEXIST)];
      return request.sequence % 3 === 1 ? [refusal(request, EPERM)] : acknowledge(request);
    });
    const outcomes = await channel.apply(Array.from({ length: 6 }, (_, index) => address(index)));
    expect(outcomes.map((outcome) => ('name' in outcome ? outcome.name : outcome.state))).toEqual([
      'EPERM',
      'done',
      'exists',
      'EPERM',
      'done',
      'exists',
    ]);
  });

  it('fail together when the kernel lost answers, stays silent, or never comes to an end', async () => {
    const apply = (script: Script): Promise<unknown> => channelBy(script).apply([address(1), address(2)]);
    await expect(apply(() => ['ENOBUFS'])).rejects.toEqual(failure('NETLINK_FAILED', 'answers were lost'));
    await expect(apply(() => [])).rejects.toEqual(failure('NETLINK_TIMED_OUT', ''));
    const endless: Script = function* (request) {
      for (;;) yield refusal({ ...request, sequence: 5000 }, EPERM);
    };
    await expect(apply(endless)).rejects.toEqual(failure('NETLINK_FAILED', 'without coming to an end'));
  });
});
