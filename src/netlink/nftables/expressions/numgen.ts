/** A number below another, in the machine's byte order: `[ numgen reg 11 = random mod 3 ]`. */
import { names } from '../names.ts';
import type { Register } from '../registers.ts';
import { type ExpressionCodec, readNumber, readOptionalNumber } from './codec.ts';

const NFTA_NG_DREG = 1;
const NFTA_NG_MODULUS = 2;
const NFTA_NG_TYPE = 3;
const NFTA_NG_OFFSET = 4;

export interface NumgenExpression {
  readonly kind: 'numgen';
  readonly generator: 'random' | 'inc';
  readonly modulus: number;
  readonly into: Register;
}

const GENERATORS = names<NumgenExpression['generator']>({ inc: 0, random: 1 });

export const numgen: ExpressionCodec<NumgenExpression> = {
  name: 'numgen',
  write: (writer, { generator, modulus, into }) =>
    writer
      .u32be(NFTA_NG_DREG, into)
      .u32be(NFTA_NG_MODULUS, modulus)
      .u32be(NFTA_NG_TYPE, GENERATORS.number(generator))
      .u32be(NFTA_NG_OFFSET, 0),
  read: (attributes) => {
    const generator = GENERATORS.name(readNumber(attributes, NFTA_NG_TYPE, 'the kind of a number'));
    if (!generator || (readOptionalNumber(attributes, NFTA_NG_OFFSET) ?? 0) !== 0) return undefined;
    return {
      kind: 'numgen',
      generator,
      modulus: readNumber(attributes, NFTA_NG_MODULUS, 'the modulus of a number'),
      into: readNumber(attributes, NFTA_NG_DREG, 'the register of a number'),
    };
  },
};
