/** The worker's own part: when an answer is over, and in what pieces it crosses. */
import { describe, expect, it } from 'vitest';
import {
  type Message,
  MessageWriter,
  NLMSG_DONE,
  NLMSG_ERROR,
  decodeMessages,
} from '../../src/netlink/codec.ts';
import { getLinks } from './support/readers.ts';
import { writeRequest } from '../../src/netlink/socket.ts';
import { exchange, Parts } from '../../src/netlink/exchange.ts';
import { KernelPeer, type Script, acknowledge, done, object, refusal } from './support/kernelPeer.ts';

const EPERM = 1;
const NOISE = Uint8Array.of(1, 2, 3);

/** Three requests in three datagrams, and what comes back across. */
function exchangeThree(script: Script): { readonly parts: Uint8Array[]; readonly peer: KernelPeer } {
  const writer = new MessageWriter();
  const exchanges = [7, 8, 9].map((last) => {
    const start = writer.length;
    writeRequest(writer, getLinks(), last);
    return { bytes: writer.length - start, last };
  });
  const peer = new KernelPeer(script);
  const parts: Uint8Array[] = [];
  const answers = new Parts((bytes) => parts.push(bytes));
  for (const datagram of exchange(peer, writer.finish(), exchanges)) answers.add(datagram);
  answers.flush();
  return { parts, peer };
}

const messagesOf = (parts: readonly Uint8Array[]): readonly Message[] =>
  parts.flatMap((part) => decodeMessages(part));

describe('an exchange', () => {
  it('sends each datagram when the one before is answered, and passes on every answer in one piece', () => {
    const { parts, peer } = exchangeThree((request) => [
      object(request, 16, NOISE),
      request.sequence === 8 ? refusal(request, EPERM) : done(request),
    ]);
    expect(peer.datagrams).toEqual([1, 1, 1]);
    expect(parts).toHaveLength(1);
    expect(messagesOf(parts).map(({ sequence, type }) => [sequence, type])).toEqual([
      [7, 16],
      [7, NLMSG_DONE],
      [8, 16],
      [8, NLMSG_ERROR],
      [9, 16],
      [9, NLMSG_DONE],
    ]);
  });

  it('keeps messages apart that are not padded', () => {
    const unpadded = (request: Message): Uint8Array => {
      const bytes = object(request, 16, NOISE).slice(0, -1);
      new DataView(bytes.buffer).setUint32(0, bytes.length, true);
      return bytes;
    };
    const { parts } = exchangeThree((request) => [unpadded(request), ...acknowledge(request)]);
    expect(messagesOf(parts).filter(({ type }) => type === 16)).toHaveLength(3);
    expect(messagesOf(parts)[0]?.payload).toEqual(NOISE);
  });

  it('cuts a long answer into pieces, none of which cuts a message', () => {
    const { parts } = exchangeThree((request) => [
      ...Array.from({ length: 100 }, () => object(request, 16, new Uint8Array(10_000))),
      done(request),
    ]);
    expect(parts.length).toBeGreaterThan(10);
    expect(Math.max(...parts.map(({ length }) => length))).toBeLessThanOrEqual(1 << 18);
    expect(messagesOf(parts)).toHaveLength(303);
  });

  it.each<[string, Script, string, RegExp]>([
    ['silence', () => [], 'NETLINK_TIMED_OUT', /no answer in time/],
    ['what is no message', () => [NOISE], 'NETLINK_MALFORMED', /claims 0 of 3 bytes/],
    ['lost answers', () => ['ENOBUFS'], 'NETLINK_FAILED', /ENOBUFS/],
    [
      'an answer without an end',
      function* endless(request) {
        for (;;) yield done({ ...request, sequence: 1 });
      },
      'NETLINK_FAILED',
      /without coming to an end/,
    ],
  ])('fails on %s', (_, script, code, message) => {
    expect(() => exchangeThree(script)).toThrow(
      expect.objectContaining({ code, message: expect.stringMatching(message) as string }),
    );
  });
});
