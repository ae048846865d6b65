/** Bytes that no kernel would send, for the decoders of all but nftables. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isJunctionError } from '../../src/errors.ts';
import { HEADER_BYTES, decodeMessages } from '../../src/netlink/codec.ts';
import { decodeAttributes } from './support/attributes.ts';
import { fuzz } from './support/fuzz.ts';
import { DECODERS } from './support/golden.ts';

fuzz(DECODERS);

describe('what is decoded is never more than there are bytes for', () => {
  const attempt = <Result>(act: () => readonly Result[]): readonly Result[] => {
    try {
      return act();
    } catch (error) {
      if (isJunctionError(error, 'NETLINK_MALFORMED')) return [];
      throw error;
    }
  };
  /** Small numbers, which are lengths that come out right now and then. */
  const plausible = fc
    .array(fc.oneof(fc.constantFrom(0, 4, 8, 16, 20), fc.nat(255)), { maxLength: 600 })
    .map((bytes) => Uint8Array.from(bytes));

  it('messages and attributes', () => {
    fc.assert(
      fc.property(plausible, (bytes) => {
        expect(attempt(() => decodeMessages(bytes)).length).toBeLessThanOrEqual(bytes.length / HEADER_BYTES);
        expect(attempt(() => decodeAttributes(bytes)).length).toBeLessThanOrEqual(bytes.length / 4);
      }),
    );
  });
});
