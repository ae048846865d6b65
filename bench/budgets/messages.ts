/** What the program inside a namespace is asked, and what it tells. Times are in milliseconds, memory in bytes. */
import type { Sizes } from '../cluster.ts';

export const BUDGET_MODES = ['nftables', 'iptables-nft'] as const;
export type BudgetMode = (typeof BUDGET_MODES)[number];

export interface Cluster {
  readonly mode: BudgetMode;
  readonly sizes: Sizes;
}

export interface BudgetTask extends Cluster {
  /** A checkout's dist/junction.js. */
  readonly program: string;
  readonly nodeOptions: string;
  /** While everything is at rest. */
  readonly changes: number;
  /** After each start, before memory is read. */
  readonly settleMs: number;
  readonly contentType: string;
  /** Gets all that the daemons say; '': nobody does. */
  readonly logFile: string;
}

/** From the start of a process. */
export interface Start {
  /** To the first connection that reaches the endpoint that is the right one now. */
  readonly forwardingMs: number;
  readonly forwardingCpuMs: number;
  /** To the log's line that all lists are read, and the CPU time until then. */
  readonly listedMs: number;
  readonly listedCpuMs: number;
  /** The first sync of IPv4, as the log has it: from the plan to the last commit. */
  readonly firstSyncMs: number;
}

export interface Resident {
  readonly settled: number;
  readonly peak: number;
}

export interface BudgetRun {
  readonly cold: Start;
  readonly coldMemory: Resident;
  /** From the API server's write of a change to the kernel's notification that it is in force. */
  readonly changeMs: readonly number[];
  /** The sync of each, as the log has it. */
  readonly changeSyncMs: readonly number[];
  /** After SIGTERM; meanwhile an endpoint and another program's table changed. */
  readonly restart: Start;
  /** From a change during the first seconds after that restart to the first connection that reaches the new endpoint. */
  readonly restartChangeMs: readonly number[];
  /** A comparison of everything with the kernel: beside these changes, or, in a version that cannot, in the first sync. */
  readonly busyVerifyMs: number;
  readonly restartMemory: Resident;
  /** After kill -9; meanwhile an endpoint changed, and nothing in the kernel. */
  readonly killed: Start;
  /** The comparison after one more restart, while nothing changes. */
  readonly verifyMs: number;
}

/** The program itself, of each checkout in turn. */
export interface StartTask {
  readonly programs: readonly string[];
  readonly repetitions: number;
}

export type StartRun = readonly {
  readonly versionMs: readonly number[];
  readonly firstRequestMs: readonly number[];
}[];

/** What one checkout took for one cluster. */
export interface Measured {
  readonly cluster: Cluster;
  readonly contentType: string;
  readonly checkout: number;
  readonly runs: readonly BudgetRun[];
}
