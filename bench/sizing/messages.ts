/** What the programs of this benchmark tell each other. Sizes are bytes, times milliseconds. */
export const MODES = ['nftables', 'iptables-nft', 'iptables-legacy', 'ipvs'] as const;
export type SizingMode = (typeof MODES)[number];

export interface ClusterSizes {
  readonly services: number;
  readonly endpoints: number;
  /** Each service has a cluster IP and as many endpoints in IPv6, too. */
  readonly isDualStack: boolean;
}

export interface SizingTask {
  readonly mode: SizingMode;
  readonly sizes: ClusterSizes;
  /** Of the container and of its pod; unset: none. */
  readonly limit: number | undefined;
  /** Endpoint changes a second, one after the other. */
  readonly rates: readonly number[];
  readonly churnSeconds: number;
  readonly settleSeconds: number;
  /** NODE_OPTIONS of everything in the container. */
  readonly nodeOptions: string;
}

/**
 * `changes`: endpoints at each rate. `questions` and `listing`: commands in the container, the second with every service in
 * its answer. `repair`: another program deleted all rules.
 */
export const STEPS = ['start', 'changes', 'questions', 'listing', 'repair', 'restart'] as const;
export type StepName = (typeof STEPS)[number];

export interface Step {
  readonly name: StepName;
  readonly ms: number;
  readonly cpuMs: number;
  /** The most that the pod had during the step and its rest, without page cache. */
  readonly peak: number;
  /** After the rest. */
  readonly settled: Sample;
}

export interface Sample {
  /** Of the process, as `ps` says. */
  readonly resident: number;
  /** To the pod, with page cache. */
  readonly charged: number;
  readonly pageCache: number;
  readonly kernel: number;
}

export interface RateCost {
  readonly rate: number;
  readonly changes: number;
  /** Of one core. */
  readonly share: number;
}

export interface SizingRun {
  readonly steps: readonly Step[];
  readonly rates: readonly RateCost[];
  /** Of one core, while nothing happens. */
  readonly idleShare: number;
  /** What the program wrote until it had started, and from then to the end of the first container. */
  readonly logBytes: { readonly start: number; readonly later: number };
  /** Kernel memory of the pod when its first container had gone, and with it the process that wrote the rules. */
  readonly kernelAfterEnd: number | undefined;
  /** The step in which the kernel killed the program, or it ended by itself. */
  readonly endedIn: { readonly step: StepName; readonly how: string } | undefined;
  /** Commands that the kernel killed, while the program went on. */
  readonly killedCommands: readonly string[];
  readonly groupVersion: 1 | 2;
}
