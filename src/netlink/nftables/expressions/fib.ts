/** Asks the routing table: `[ fib daddr type => reg 1 ]`. */
import { flagNames, names } from '../names.ts';
import type { Register } from '../registers.ts';
import { type ExpressionCodec, readNumber } from './codec.ts';

const NFTA_FIB_DREG = 1;
const NFTA_FIB_RESULT = 2;
const NFTA_FIB_FLAGS = 3;

export type FibSelector = 'saddr' | 'daddr' | 'mark' | 'iif' | 'oif' | 'present';
export type FibResult = 'oif' | 'oifname' | 'type';

export interface FibExpression {
  readonly kind: 'fib';
  readonly of: readonly FibSelector[];
  readonly result: FibResult;
  readonly into: Register;
}

/** RTN_LOCAL of linux/rtnetlink.h: what `fib … type local` compares with, in the machine's byte order. */
export const FIB_TYPE_LOCAL = 2;

const SELECTORS = flagNames<FibSelector>({ saddr: 1, daddr: 2, mark: 4, iif: 8, oif: 16, present: 32 });
const RESULTS = names<FibResult>({ oif: 1, oifname: 2, type: 3 });

export const fib: ExpressionCodec<FibExpression> = {
  name: 'fib',
  write: (writer, { of, result, into }) =>
    writer
      .u32be(NFTA_FIB_DREG, into)
      .u32be(NFTA_FIB_RESULT, RESULTS.number(result))
      .u32be(NFTA_FIB_FLAGS, SELECTORS.bits(of)),
  read: (attributes) => {
    const of = SELECTORS.flags(readNumber(attributes, NFTA_FIB_FLAGS, 'the flags of a fib expression'));
    const result = RESULTS.name(readNumber(attributes, NFTA_FIB_RESULT, 'the result of a fib expression'));
    const into = readNumber(attributes, NFTA_FIB_DREG, 'the register of a fib expression');
    return of && result && { kind: 'fib', of, result, into };
  },
};
