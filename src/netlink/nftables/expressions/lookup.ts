/** Finds registers in a set, and loads what a map has for them: `[ lookup reg 1 set any-3 dreg 1 ]`. A miss ends the rule. */
import { decodeString, requiredAttribute } from '../../codec.ts';
import type { Register } from '../registers.ts';
import { type ExpressionCodec, readNumber, readOptionalNumber } from './codec.ts';

const NFTA_LOOKUP_SET = 1;
const NFTA_LOOKUP_SREG = 2;
const NFTA_LOOKUP_DREG = 3;
const NFTA_LOOKUP_FLAGS = 5;
const NFT_LOOKUP_F_INV = 1;

export interface LookupExpression {
  readonly kind: 'lookup';
  readonly set: string;
  readonly from: Register;
  /** Of a map. The register of verdicts for a map of verdicts. */
  readonly into?: Register;
  /** It is a hit that ends the rule. */
  readonly isInverted?: true;
}

export const lookup: ExpressionCodec<LookupExpression> = {
  name: 'lookup',
  write: (writer, { set, from, into, isInverted }) => {
    writer.string(NFTA_LOOKUP_SET, set).u32be(NFTA_LOOKUP_SREG, from);
    if (into !== undefined) writer.u32be(NFTA_LOOKUP_DREG, into);
    if (isInverted) writer.u32be(NFTA_LOOKUP_FLAGS, NFT_LOOKUP_F_INV);
  },
  read: (attributes) => {
    const into = readOptionalNumber(attributes, NFTA_LOOKUP_DREG);
    const flags = readOptionalNumber(attributes, NFTA_LOOKUP_FLAGS) ?? 0;
    if ((flags & ~NFT_LOOKUP_F_INV) !== 0) return undefined;
    return {
      kind: 'lookup',
      set: decodeString(requiredAttribute(attributes, NFTA_LOOKUP_SET, 'the set of a lookup')),
      from: readNumber(attributes, NFTA_LOOKUP_SREG, 'the register of a lookup'),
      ...(into !== undefined && { into }),
      ...(flags !== 0 && { isInverted: true }),
    };
  },
};
