export interface TableOptions {
  /** Of others. */
  readonly flows: number;
  /** Of the one service. */
  readonly stale: number;
  readonly repetitions: number;
}

/** How long something took, and the longest time during it in which nothing else had its turn. */
export interface Held {
  readonly ms: number;
  readonly blockMs: number;
  /** Flows that were read, or deleted. */
  readonly flows: number;
}

export interface TableRun {
  /** The kernel looks for one address and port. */
  readonly narrow: Held;
  /** The kernel hands out every UDP flow. */
  readonly whole: Held;
  /** The cleaner, when the service has lost the endpoint of all its flows. */
  readonly one: Held;
  /** The cleaner at a start, when nothing is known of any flow. */
  readonly first: Held;
}
