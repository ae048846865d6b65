/** The answer of `junction doctor` as data: the JSON shape of `--output json`. Fields are added, never renamed. */
import type { Finding } from '../explain/types.ts';
import type { ModeName } from '../model/mode.ts';

export interface DoctorReport {
  readonly node: string;
  readonly mode: ModeName;
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** Whether a finding is an error or a warning. */
  readonly hasProblems: boolean;
  readonly groups: readonly DoctorGroup[];
}

/** What was looked at together: `sysctls`, `conntrack`. */
export interface DoctorGroup {
  readonly name: string;
  /** Worst first. */
  readonly findings: readonly Finding[];
  /** What is as it should be, one line each. */
  readonly fine: readonly string[];
  /** What could not be looked at, and why. */
  readonly notEvaluated: readonly string[];
}
