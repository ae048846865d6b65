import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MessageWriter } from '../../../src/netlink/codec.ts';
import {
  type Expression,
  decodeExpression,
  writeExpression,
  registerAt,
} from '../../../src/netlink/nftables/expressions.ts';
import { decodeExpressions, writeExpressions } from './support/messages.ts';
import { unhex } from '../../system/support/bytes.ts';
import { expressions } from './support/arbitraries.ts';
import { GOLDEN_EXPRESSIONS } from './support/expressions.ts';

function encoded(expression: Expression): Uint8Array {
  const writer = new MessageWriter();
  writeExpression(writer, expression);
  return writer.finish();
}

it.each(GOLDEN_EXPRESSIONS)('$line is written so that it is read as the same', ({ value }) =>
  expect(decodeExpression(encoded(value))).toEqual(value),
);

describe('every expression', () => {
  it('is read as it was written', () => {
    fc.assert(
      fc.property(expressions, (value) => {
        expect(decodeExpression(encoded(value))).toEqual(value);
      }),
    );
  });

  it('keeps its place in a rule', () => {
    fc.assert(
      fc.property(fc.array(expressions, { maxLength: 12 }), (values) => {
        const writer = new MessageWriter();
        writeExpressions(writer, values);
        expect(decodeExpressions(writer.finish())).toEqual(values);
      }),
    );
  });
});

describe('what has no word here keeps its bytes', () => {
  it.each([
    ['[ masq proto_min reg 1 proto_max reg 2 flags 0x2 ]', 'masq', '08000100 00000002 08000200 00000001'],
    [
      '[ payload write … ]',
      'payload',
      '08000500 00000001 08000200 00000001 08000300 00000000 08000400 00000001',
    ],
    [
      '[ numgen reg 1 = inc mod 5 offset 3 ]',
      'numgen',
      '08000100 00000001 08000200 00000005 08000300 00000000 08000400 00000003',
    ],
    [
      '[ bitwise reg 1 = ( reg 1 << 0x1 ) ]',
      'bitwise',
      '08000100 00000001 08000200 00000001 08000300 00000004 08000600 00000001',
    ],
    ['[ meta load priority => reg 1 ]', 'meta', '08000200 00000002 08000100 00000001'],
  ])('%s', (_, name, hex) => {
    const value: Expression = { kind: 'other', name, data: unhex(hex) };
    expect(decodeExpression(encoded(value))).toEqual(value);
  });
});

it('a mask and an xor are equally long', () => {
  const uneven: Expression = {
    kind: 'bitwise',
    from: 1,
    into: 1,
    mask: Uint8Array.of(1),
    xor: new Uint8Array(4),
  };
  expect(() => encoded(uneven)).toThrow('different lengths');
});

it('registers have one number each, as nft prints them', () => {
  expect(Array.from({ length: 16 }, (_, word) => registerAt(word))).toEqual([
    1, 9, 10, 11, 2, 13, 14, 15, 3, 17, 18, 19, 4, 21, 22, 23,
  ]);
});
