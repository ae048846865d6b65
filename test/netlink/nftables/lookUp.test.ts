/** Elements compared and filtered as bytes, without being decoded. */
import fc from 'fast-check';
import { constants } from 'node:os';
import { describe, expect, test } from 'vitest';
import { HEADER_BYTES, MessageWriter } from '../../../src/netlink/codec.ts';
import { ElementList } from '../../../src/netlink/nftables/elementList.ts';
import { decodeElements, getElements } from '../../../src/netlink/nftables/elements.ts';
import { writeRequest } from '../../../src/netlink/socket.ts';
import { type ElementFilter, elementTest } from '../../../src/netlink/worker/elementFilter.ts';
import { lookUpAll, readDiffering } from '../../../src/netlink/worker/lookUp.ts';
import { runToEnd } from '../../../src/time/timeSlice.ts';
import { fuzz } from '../support/fuzz.ts';
import { acknowledge, KernelPeer, refusal, type Script } from '../support/kernelPeer.ts';
import * as golden from './support/golden.ts';

const PLACE = { family: 'ip', table: 't', set: 'm' } as const;

interface Pair {
  readonly key: number;
  readonly value: number;
  readonly comment: string;
}

const bytesOf = (number: number): Uint8Array => Uint8Array.of(10, 0, number >> 8, number & 255);

function listOf(pairs: readonly Pair[]): ElementList {
  const list = new ElementList();
  for (const { key, value, comment } of pairs)
    list.begin().raw(bytesOf(key)).data().raw(bytesOf(value)).comment(comment).end();
  return list;
}

function requestOf(sequence: number): Uint8Array {
  const writer = new MessageWriter();
  writeRequest(writer, getElements(PLACE), sequence);
  return writer.finish().slice();
}

/** A message with these elements, as the kernel sends it. */
function messageOf(pairs: readonly Pair[], sequence: number): Uint8Array {
  const writer = new MessageWriter();
  writer.message({ type: (10 << 8) | 12, flags: 0, sequence }, () => {
    writer
      .raw(Uint8Array.of(2, 0, 0, 0))
      .string(1, 't')
      .string(2, 'm');
    writer.nested(3, (inner) => inner.raw(listOf(pairs).finish()));
  });
  return writer.finish().slice();
}

const numberOf = (key: Uint8Array): number => ((key[2] ?? 0) << 8) | (key[3] ?? 0);

/** Answers each key up to the first that it does not have. */
const kernelWith = (has: ReadonlyMap<number, Pair>): Script =>
  function* (request) {
    for (const { key } of decodeElements(request.payload).elements) {
      const found = has.get(numberOf(key));
      if (!found) return yield refusal(request, constants.errno.ENOENT);
      yield messageOf([found], request.sequence);
    }
    yield* acknowledge(request);
  };

const pair = fc.record({
  key: fc.nat(40),
  value: fc.nat(3),
  comment: fc.constantFrom('a/x', 'a/y', 'a/longer-name'),
});
const byKey = (pairs: readonly Pair[]): ReadonlyMap<number, Pair> =>
  new Map(pairs.map((each) => [each.key, each]));

describe('a lookup', () => {
  test('says which are missing and which are different, however many', () => {
    fc.assert(
      fc.property(
        fc.array(pair, { maxLength: 60 }),
        fc.array(pair, { maxLength: 60 }),
        (wantedPairs, foundPairs) => {
          const wanted = [...byKey(wantedPairs).values()];
          const has = byKey(foundPairs);
          const peer = new KernelPeer(kernelWith(has));
          const [found = []] = readDiffering(
            lookUpAll(peer, [{ request: requestOf(7), elements: listOf(wanted).finish() }]),
          );
          const expected = wanted.flatMap((each, place) => {
            const other = has.get(each.key);
            if (!other) return [{ place, isMissing: true }];
            const isSame = other.value === each.value && other.comment === each.comment;
            return isSame ? [] : [{ place, isMissing: false }];
          });
          expect([...found].sort((a, b) => a.place - b.place)).toEqual(expected);
        },
      ),
    );
  });

  test('an element without a comment is right with any', () => {
    const peer = new KernelPeer(kernelWith(byKey([{ key: 1, value: 2, comment: 'a/x' }])));
    const list = new ElementList();
    list.begin().raw(bytesOf(1)).data().raw(bytesOf(2)).end();
    expect(readDiffering(lookUpAll(peer, [{ request: requestOf(7), elements: list.finish() }]))).toEqual([
      [],
    ]);
  });

  test('more than one message takes', () => {
    const pairs = Array.from({ length: 1000 }, (_, key) => ({ key, value: key, comment: 'a/x' }));
    const has = byKey(pairs.filter(({ key }) => key % 100 !== 3));
    const peer = new KernelPeer(kernelWith(has));
    const [found = []] = readDiffering(
      lookUpAll(peer, [{ request: requestOf(7), elements: listOf(pairs).finish() }]),
    );
    expect(found.map(({ place }) => place)).toEqual([3, 103, 203, 303, 403, 503, 603, 703, 803, 903]);
  });

  test('what the kernel refuses otherwise fails', () => {
    const peer = new KernelPeer((request) => [refusal(request, constants.errno.EPERM)]);
    const elements = listOf([{ key: 1, value: 1, comment: 'a' }]).finish();
    expect(() => lookUpAll(peer, [{ request: requestOf(7), elements }])).toThrow('EPERM');
  });
});

describe('a filter by keys', () => {
  const filterOf = (keys: readonly number[], isExcluding: boolean): ElementFilter => ({
    kind: 'elements',
    // Behind the first two bytes, which are the same for all.
    parts: [{ offset: 2, width: 2, values: Uint8Array.from(keys.flatMap((key) => [key >> 8, key & 255])) }],
    isExcluding,
  });

  test('keeps the elements that it names, or all others', () => {
    fc.assert(
      fc.property(
        fc.array(pair, { maxLength: 30 }),
        fc.array(fc.nat(40), { maxLength: 20 }),
        fc.boolean(),
        (pairs, keys, isExcluding) => {
          const filter = runToEnd(elementTest(filterOf(keys, isExcluding)));
          const kept = filter.take(messageOf(pairs, 1));
          const elements = kept ? decodeElements(kept.subarray(HEADER_BYTES)).elements : [];
          expect(elements.map(({ key }) => numberOf(key))).toEqual(
            pairs.filter(({ key }) => keys.includes(key) !== isExcluding).map(({ key }) => key),
          );
          expect(filter.examined).toBe(pairs.length);
        },
      ),
    );
  });

  const message = (payload: Uint8Array): Uint8Array =>
    new Uint8Array([...new Uint8Array(HEADER_BYTES), ...payload]);
  fuzz(
    [golden.MAP_ELEMENT, golden.TIMED_ELEMENT, golden.INTERVAL_ELEMENTS].map((payload, index) => ({
      name: `elements ${index}`,
      decode: (bytes) => [runToEnd(elementTest(filterOf([1], true))).take(bytes)],
      golden: message(payload),
    })),
  );
});
