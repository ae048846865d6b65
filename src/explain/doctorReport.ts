/** The answer of `junction doctor` as data: the JSON shape of `--output json`. Fields are added, never renamed. */
import type { Finding } from './types.ts';
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

export type DoctorGroupName =
  | 'kernel'
  | 'sysctls'
  | 'other-proxies'
  | 'firewall'
  | 'routes'
  | 'proxy'
  | 'api-server'
  | 'rules'
  | 'packets'
  | 'services'
  | 'probe'
  | 'conntrack';

/** In the order in which they are looked at. */
export const DOCTOR_GROUPS: readonly DoctorGroupName[] = [
  'kernel',
  'sysctls',
  'other-proxies',
  'firewall',
  'routes',
  'proxy',
  'api-server',
  'rules',
  'packets',
  'services',
  'probe',
  'conntrack',
];

/** What was looked at together. */
export interface DoctorGroup {
  readonly name: DoctorGroupName;
  /** Worst first. */
  readonly findings: readonly Finding[];
  /** What is as it should be, one line each. */
  readonly fine: readonly string[];
  /** What could not be looked at, and why. */
  readonly notEvaluated: readonly string[];
}
