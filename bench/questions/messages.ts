/** What the program inside the namespace is asked, and what it tells. Times are in milliseconds. */
import type { Sizes } from '../cluster.ts';

export interface QuestionsTask {
  readonly sizes: Sizes;
  /** In a row, while services change. */
  readonly questions: number;
  readonly changes: number;
  readonly repetitions: number;
}

export interface QuestionsRun {
  readonly rows: readonly QuestionRow[];
  /** From the API server to the kernel. */
  readonly quietMs: readonly number[];
  readonly askedMs: readonly number[];
  readonly syncMs: { readonly quiet: readonly number[]; readonly asked: readonly number[] };
  /** How many questions were answered meanwhile. */
  readonly answered: number;
  readonly history: { readonly records: number; readonly bytes: number; readonly mostBytes: number };
  readonly resident: number;
}

export interface QuestionRow {
  readonly name: string;
  readonly bytes: number;
  /** At the socket. */
  readonly socketMs: readonly number[];
  /** As a command, its start included. */
  readonly commandMs: readonly number[];
}
