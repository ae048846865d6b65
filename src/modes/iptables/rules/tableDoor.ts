/** iptables as the backend sees it: programs and a kernel outside, a kernel in memory in tests. */
import type { TimeSlice } from '../../../time/timeSlice.ts';
import type { Table } from './rule.ts';

/** What the backend needs of the outside world. */
export interface TableClient {
  save(table: Table, options: { readonly counters: boolean }): Promise<string>;
  /** The same as `save`, in pieces that are forgotten once they are taken; for what is too much to hold. */
  readSave?(table: Table, options: { readonly counters: boolean }, take: TakeText): Promise<void>;
  /** One chain as a save prints it; `undefined` where there is none. Without it, every look is at everything. */
  list?(table: Table, chain: string): Promise<string | undefined>;
  restore(table: Table, text: string): Promise<void>;
  /** Lets packets come again to tables that another program made dormant; returns which. */
  wake?(): Promise<readonly Table[]>;
  /** How many chains one restore should have at most. */
  readonly chainsPerRestore?: number;
  /** Without it, long work is done at once. */
  readonly timeSlice?: TimeSlice;
}

export type TakeText = (text: string) => Promise<void>;
