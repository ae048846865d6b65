/** Ends the rule unless a register compares as it says: `[ cmp eq reg 1 0x00000006 ]`. */
import { requiredAttribute } from '../../codec.ts';
import { decodeValue, writeValue } from '../data.ts';
import { names } from '../names.ts';
import type { Register } from '../registers.ts';
import { type ExpressionCodec, readNumber } from './codec.ts';

const NFTA_CMP_SREG = 1;
const NFTA_CMP_OP = 2;
const NFTA_CMP_DATA = 3;

export type Comparison = '==' | '!=' | '<' | '<=' | '>' | '>=';

export interface CompareExpression {
  readonly kind: 'compare';
  readonly from: Register;
  readonly comparison: Comparison;
  readonly value: Uint8Array;
}

const COMPARISONS = names<Comparison>({ '==': 0, '!=': 1, '<': 2, '<=': 3, '>': 4, '>=': 5 });

export const compare: ExpressionCodec<CompareExpression> = {
  name: 'cmp',
  write: (writer, { from, comparison, value }) => {
    writer.u32be(NFTA_CMP_SREG, from).u32be(NFTA_CMP_OP, COMPARISONS.number(comparison));
    writeValue(writer, NFTA_CMP_DATA, value);
  },
  read: (attributes) => {
    const comparison = COMPARISONS.name(readNumber(attributes, NFTA_CMP_OP, 'the operator of a comparison'));
    if (!comparison) return undefined;
    return {
      kind: 'compare',
      from: readNumber(attributes, NFTA_CMP_SREG, 'the register of a comparison'),
      comparison,
      value: decodeValue(requiredAttribute(attributes, NFTA_CMP_DATA, 'the value of a comparison')),
    };
  },
};
