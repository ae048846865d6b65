/** Whatever the bytes, a decoder answers or says NETLINK_MALFORMED: nothing else. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isJunctionError } from '../../../../src/errors.ts';
import { decodeChain } from '../../../../src/kernel/netlink/nftables/chain.ts';
import { decodeElements } from '../../../../src/kernel/netlink/nftables/elements.ts';
import { decodeExpression } from '../../../../src/kernel/netlink/nftables/expressions/expression.ts';
import { decodeGenerationNews } from '../../../../src/kernel/netlink/nftables/generation.ts';
import { decodeNews } from '../../../../src/kernel/netlink/nftables/news.ts';
import { decodeRule } from '../../../../src/kernel/netlink/nftables/rule.ts';
import { decodeSet } from '../../../../src/kernel/netlink/nftables/set.ts';
import { decodeTable } from '../../../../src/kernel/netlink/nftables/table.ts';
import { decodeComment } from '../../../../src/kernel/netlink/nftables/userData.ts';
import { unhex } from '../../support/bytes.ts';
import { GOLDEN_EXPRESSIONS } from './support/expressions.ts';
import * as golden from './support/golden.ts';

interface Decoder {
  readonly name: string;
  readonly decode: (bytes: Uint8Array) => unknown;
  readonly bytes: Uint8Array;
}

const decoder = (name: string, decode: (bytes: Uint8Array) => unknown, bytes: Uint8Array): Decoder => ({
  name,
  decode,
  bytes,
});

const DECODERS: readonly Decoder[] = [
  decoder('a table', decodeTable, golden.TABLE),
  decoder('a base chain', decodeChain, golden.BASE_CHAIN),
  decoder('a plain chain', decodeChain, golden.PLAIN_CHAIN),
  decoder('a rule', decodeRule, golden.RULE),
  decoder('a map', decodeSet, golden.MAP),
  decoder('a set of concatenated intervals', decodeSet, golden.CONCATENATED_INTERVALS),
  decoder('a dynamic map', decodeSet, golden.DYNAMIC_MAP),
  decoder('an element of a map', decodeElements, golden.MAP_ELEMENT),
  decoder('an element that is a range', decodeElements, golden.RANGE_ELEMENT),
  decoder('an element with a verdict', decodeElements, golden.VERDICT_ELEMENT),
  decoder('elements that are intervals', decodeElements, golden.INTERVAL_ELEMENTS),
  decoder('an element with a time-out', decodeElements, golden.TIMED_ELEMENT),
  decoder('a generation', decodeGenerationNews, golden.GENERATION),
  decoder('news', (payload) => decodeNews({ type: (10 << 8) | 6, payload }), golden.RULE),
  decoder('a comment', (bytes) => [decodeComment(bytes)], unhex('0005 6d696e6500')),
  ...GOLDEN_EXPRESSIONS.map(({ line, bytes }) => decoder(line, decodeExpression, bytes)),
];

/** Exactly as long, so that reading beyond the end cannot go unseen. */
function outcome({ decode }: Decoder, bytes: Uint8Array): unknown {
  try {
    decode(bytes.slice());
    return 'answered';
  } catch (error) {
    return isJunctionError(error, 'NETLINK_MALFORMED') ? 'malformed' : error;
  }
}

const OUTCOMES = expect.toBeOneOf(['answered', 'malformed']) as unknown;

describe.each(DECODERS)('$name', (each) => {
  const { bytes, decode } = each;

  it('reads what is well', () => expect(decode(bytes)).toBeDefined());

  it('survives every truncation', () => {
    for (let length = 0; length <= bytes.length; length++)
      expect(outcome(each, bytes.subarray(0, length))).toEqual(OUTCOMES);
  });

  it('survives every single flipped bit', () => {
    for (let bit = 0; bit < bytes.length * 8; bit++) {
      const flipped = bytes.slice();
      flipped[bit >> 3] = (flipped[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      expect(outcome(each, flipped)).toEqual(OUTCOMES);
    }
  });

  it('survives bytes that are overwritten, cut and added', () => {
    const edit = fc.tuple(fc.nat(bytes.length), fc.nat(255));
    fc.assert(
      fc.property(
        fc.array(edit, { maxLength: 8 }),
        fc.nat(bytes.length),
        fc.uint8Array({ maxLength: 24 }),
        (edits, length, tail) => {
          const edited = new Uint8Array([...bytes.subarray(0, length), ...tail]);
          for (const [at, value] of edits) if (at < edited.length) edited[at] = value;
          expect(outcome(each, edited)).toEqual(OUTCOMES);
        },
      ),
      { numRuns: 200 },
    );
  });

  it('survives noise', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 400 }), (noise) => {
        expect(outcome(each, noise)).toEqual(OUTCOMES);
      }),
      { numRuns: 200 },
    );
  });
});
