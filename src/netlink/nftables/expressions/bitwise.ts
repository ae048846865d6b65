/** Keeps the bits of a mask, then turns those of another: `[ bitwise reg 1 = ( reg 1 & 0x00004000 ) ^ 0x00000000 ]`. */
import { malformed, requiredAttribute } from '../../codec.ts';
import { decodeValue, writeValue } from '../data.ts';
import type { Register } from '../registers.ts';
import { type ExpressionCodec, readNumber, readOptionalNumber } from './codec.ts';

const NFTA_BITWISE_SREG = 1;
const NFTA_BITWISE_DREG = 2;
const NFTA_BITWISE_LEN = 3;
const NFTA_BITWISE_MASK = 4;
const NFTA_BITWISE_XOR = 5;
const NFTA_BITWISE_OP = 6;
const NFT_BITWISE_MASK_XOR = 0;

export interface BitwiseExpression {
  readonly kind: 'bitwise';
  readonly from: Register;
  readonly into: Register;
  readonly mask: Uint8Array;
  /** As long as the mask. */
  readonly xor: Uint8Array;
}

export const bitwise: ExpressionCodec<BitwiseExpression> = {
  name: 'bitwise',
  // Kernels before 5.6 know no other operation, and do not ask which.
  write: (writer, { from, into, mask, xor }) => {
    if (mask.length !== xor.length) throw malformed('a mask and an xor of different lengths');
    writer.u32be(NFTA_BITWISE_SREG, from).u32be(NFTA_BITWISE_DREG, into).u32be(NFTA_BITWISE_LEN, mask.length);
    writeValue(writer, NFTA_BITWISE_MASK, mask);
    writeValue(writer, NFTA_BITWISE_XOR, xor);
  },
  read: (attributes) => {
    if ((readOptionalNumber(attributes, NFTA_BITWISE_OP) ?? NFT_BITWISE_MASK_XOR) !== NFT_BITWISE_MASK_XOR)
      return undefined;
    return {
      kind: 'bitwise',
      from: readNumber(attributes, NFTA_BITWISE_SREG, 'the source of a bitwise operation'),
      into: readNumber(attributes, NFTA_BITWISE_DREG, 'the destination of a bitwise operation'),
      mask: decodeValue(requiredAttribute(attributes, NFTA_BITWISE_MASK, 'the mask of a bitwise operation')),
      xor: decodeValue(requiredAttribute(attributes, NFTA_BITWISE_XOR, 'the xor of a bitwise operation')),
    };
  },
};
