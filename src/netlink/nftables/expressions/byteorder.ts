/** Turns numbers around: `[ byteorder reg 9 = hton(reg 9, 2, 1) ]`. */
import { names } from '../names.ts';
import type { Register } from '../registers.ts';
import { type ExpressionCodec, readNumber } from './codec.ts';

const NFTA_BYTEORDER_SREG = 1;
const NFTA_BYTEORDER_DREG = 2;
const NFTA_BYTEORDER_OP = 3;
const NFTA_BYTEORDER_LEN = 4;
const NFTA_BYTEORDER_SIZE = 5;

export interface ByteorderExpression {
  readonly kind: 'byteorder';
  readonly operation: 'ntoh' | 'hton';
  readonly from: Register;
  readonly into: Register;
  /** Of all numbers together. */
  readonly bytes: number;
  /** Of each: 2, 4 or 8. */
  readonly size: number;
}

const OPERATIONS = names<ByteorderExpression['operation']>({ ntoh: 0, hton: 1 });

export const byteorder: ExpressionCodec<ByteorderExpression> = {
  name: 'byteorder',
  write: (writer, { operation, from, into, bytes, size }) =>
    writer
      .u32be(NFTA_BYTEORDER_SREG, from)
      .u32be(NFTA_BYTEORDER_DREG, into)
      .u32be(NFTA_BYTEORDER_OP, OPERATIONS.number(operation))
      .u32be(NFTA_BYTEORDER_LEN, bytes)
      .u32be(NFTA_BYTEORDER_SIZE, size),
  read: (attributes) => {
    const number = (type: number): number => readNumber(attributes, type, 'a part of a byteorder expression');
    const operation = OPERATIONS.name(number(NFTA_BYTEORDER_OP));
    if (!operation) return undefined;
    return {
      kind: 'byteorder',
      operation,
      from: number(NFTA_BYTEORDER_SREG),
      into: number(NFTA_BYTEORDER_DREG),
      bytes: number(NFTA_BYTEORDER_LEN),
      size: number(NFTA_BYTEORDER_SIZE),
    };
  },
};
