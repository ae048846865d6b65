/** iptables as the mode needs it: programs and a kernel outside, a kernel in memory in tests. */
import type { TimeSlice } from '../../../time/timeSlice.ts';
import type { Step } from './edit.ts';
import type { ParsedRule } from './parse.ts';
import type { Table } from './rule.ts';

export interface TableClient {
  /** All of the step or an error. Returns the bytes that were sent. */
  commit(step: Step): Promise<number>;
  chainNames(table: Table): Promise<ReadonlySet<string>>;
  /** `undefined` where there is none. Of a chain that iptables cannot print only jumps are returned, and are opaque. */
  readChain(table: Table, chain: string): Promise<readonly ParsedRule[] | undefined>;
  /** Returns whether the chain was there before. */
  ensureChain(table: Table, chain: string): Promise<boolean>;
  /** Returns whether the rule was there before; where it stood then, it stays. */
  ensureRule(
    position: 'prepend' | 'append',
    table: Table,
    chain: string,
    args: readonly string[],
  ): Promise<boolean>;
  /** Returns whether the rule was there. */
  deleteRule(table: Table, chain: string, args: readonly string[]): Promise<boolean>;
  /** How many chains one restore should have at most. */
  readonly chainsPerRestore: number;
  readonly timeSlice: TimeSlice;
}
