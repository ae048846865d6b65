/** Whatever the bytes, a decoder answers or says NETLINK_MALFORMED: nothing else, and soon. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isJunctionError } from '../../../src/errors.ts';
import { unhex } from '../../system/support/bytes.ts';

export interface Decoder {
  readonly name: string;
  readonly decode: (bytes: Uint8Array) => unknown;
  /** What it reads when all is well. */
  readonly golden: Uint8Array;
  /** As what, where that is known. */
  readonly value?: unknown;
}

export function decoder(
  name: string,
  decode: Decoder['decode'],
  golden: Uint8Array | string,
  value?: unknown,
): Decoder {
  return { name, decode, golden: typeof golden === 'string' ? unhex(golden) : golden, value };
}

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

/** Tests of each decoder, whatever it decodes. */
export function fuzz(decoders: readonly Decoder[]): void {
  describe.each(decoders)('$name', (decoder) => {
    const { golden, decode, value = expect.anything() as unknown } = decoder;

    it('reads what is well', () => expect(decode(golden)).toEqual(value));

    it('survives every truncation', () => {
      for (let length = 0; length <= golden.length; length++)
        expect(outcome(decoder, golden.subarray(0, length))).toEqual(OUTCOMES);
    });

    it('survives every single flipped bit', () => {
      for (let bit = 0; bit < golden.length * 8; bit++) {
        const bytes = golden.slice();
        bytes[bit >> 3] = (bytes[bit >> 3] ?? 0) ^ (1 << (bit & 7));
        expect(outcome(decoder, bytes)).toEqual(OUTCOMES);
      }
    });

    it('survives bytes that are overwritten, cut and added', () => {
      const edit = fc.tuple(fc.nat(golden.length), fc.nat(255));
      fc.assert(
        fc.property(
          fc.array(edit, { maxLength: 8 }),
          fc.nat(golden.length),
          fc.uint8Array({ maxLength: 24 }),
          (edits, length, tail) => {
            const bytes = new Uint8Array([...golden.subarray(0, length), ...tail]);
            for (const [at, value] of edits) if (at < bytes.length) bytes[at] = value;
            expect(outcome(decoder, bytes)).toEqual(OUTCOMES);
          },
        ),
      );
    });

    it('survives attributes that lie about their length', () => {
      fc.assert(
        fc.property(
          fc.nat(golden.length >> 2),
          fc.oneof(fc.nat(8), fc.nat(0xffff), fc.constantFrom(0, 3, 4, 5, 0x7fff, 0x8000, 0xfffc, 0xffff)),
          (word, length) => {
            const bytes = golden.slice();
            if (word * 4 + 2 <= bytes.length) new DataView(bytes.buffer).setUint16(word * 4, length, true);
            expect(outcome(decoder, bytes)).toEqual(OUTCOMES);
          },
        ),
      );
    });

    it('survives noise', () => {
      fc.assert(
        fc.property(fc.uint8Array({ maxLength: 400 }), (bytes) => {
          expect(outcome(decoder, bytes)).toEqual(OUTCOMES);
        }),
      );
    });
  });
}
