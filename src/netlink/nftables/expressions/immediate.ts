/** A verdict, or a constant in a register: `[ immediate reg 0 goto -> pool-1 ]`, `[ immediate reg 1 0x00000011 ]`. */
import { malformed, requiredAttribute } from '../../codec.ts';
import { decodeData, writeValue, writeVerdictData } from '../data.ts';
import { type Register, VERDICT_REGISTER } from '../registers.ts';
import type { Verdict } from '../verdict.ts';
import { type ExpressionCodec, readNumber } from './codec.ts';

const NFTA_IMMEDIATE_DREG = 1;
const NFTA_IMMEDIATE_DATA = 2;

export interface ImmediateExpression {
  readonly kind: 'immediate';
  readonly into: Register;
  readonly value: Uint8Array;
}

export type VerdictExpression = { readonly kind: 'verdict' } & Verdict;

export const immediate: ExpressionCodec<ImmediateExpression | VerdictExpression> = {
  name: 'immediate',
  write: (writer, expression) => {
    if (expression.kind === 'immediate') {
      writer.u32be(NFTA_IMMEDIATE_DREG, expression.into);
      writeValue(writer, NFTA_IMMEDIATE_DATA, expression.value);
      return;
    }
    writer.u32be(NFTA_IMMEDIATE_DREG, VERDICT_REGISTER);
    writeVerdictData(writer, NFTA_IMMEDIATE_DATA, expression);
  },
  read: (attributes) => {
    const into = readNumber(attributes, NFTA_IMMEDIATE_DREG, 'the register of a constant');
    const data = decodeData(requiredAttribute(attributes, NFTA_IMMEDIATE_DATA, 'the data of a constant'));
    if ((into === VERDICT_REGISTER) === (data.kind === 'value'))
      throw malformed(`a ${data.kind} for register ${into}`);
    if (data.kind === 'value') return { kind: 'immediate', into, value: data.value };
    return data.kind === 'verdict' ? { kind: 'verdict', ...data.verdict } : undefined;
  },
};
