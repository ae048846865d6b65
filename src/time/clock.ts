/** Time as a thing that can be handed in, so that tests own it. */
export interface Clock {
  /** Milliseconds; only differences mean anything. */
  now(): number;
  /** Calls back once, later; the answer cancels it. */
  schedule(delayMs: number, callback: () => void): () => void;
}
