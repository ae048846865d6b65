/** The bounds of histograms, in seconds. */

function doubling(start: number, count: number): readonly number[] {
  return Array.from({ length: count }, (_, index) => start * 2 ** index);
}

function steps(start: number, step: number, count: number): readonly number[] {
  return Array.from({ length: count }, (_, index) => start + step * index);
}

/** 1 ms to 16 s. */
export const SYNC_BUCKETS = doubling(0.001, 15);

/** 0.1 ms to 13 s: most of Junction's syncs would all fall into the first bucket of the others. */
export const FINE_BUCKETS = doubling(0.0001, 18);

/** A quarter of a second to five minutes. */
export const NETWORK_PROGRAMMING_BUCKETS: readonly number[] = [
  0.25,
  0.5,
  ...steps(1, 1, 59),
  ...steps(60, 5, 12),
  ...steps(120, 30, 7),
];

export const GC_BUCKETS: readonly number[] = [0.001, 0.01, 0.1, 1, 2, 5];
