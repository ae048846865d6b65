/** How V8 compiles. */
import { setFlagsFromString } from 'node:v8';

/**
 * How many bytes of bytecode may be inlined into one optimized function; V8's own value is 920. A start runs a few hundred
 * functions for a second, and V8 optimizes them all, in threads of its own: 0.5 of 1.85 s of CPU time by `perf record`. With
 * 10,000 services × 3 endpoints in nftables mode, two runs each: 1.08 and 1.15 s of CPU time until all lists are read where it
 * was 1.34 and 1.34, 2.2 and 2.3 s until the first sync where it was 2.6 and 2.7; no more of it in the main thread.
 */
const MOST_INLINED_BYTES = 200;

/** To be called at the start, before much is compiled. */
export function limitInlining(): void {
  setFlagsFromString(`--max-inlined-bytecode-size-cumulative=${MOST_INLINED_BYTES}`);
}
