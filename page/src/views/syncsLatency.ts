/** How long changes took from when they were seen until the kernel had them: buckets on a log scale, and percentiles. */
import type { ChangeRecord } from '../../../src/explain/types.ts';
import { counted, durationText } from '../../../src/text/ages.ts';
import type { LoggedEvent } from './syncsLog.ts';
import type { Frame } from './syncsTimeline.ts';

/** Milliseconds: at least `from`, less than `to`. */
export interface LatencyRange {
  readonly from: number;
  readonly to: number;
}

export interface Bucket extends LatencyRange {
  readonly count: number;
}

/** Each step is twice the one before, or two and a half times. The last has no end. */
const STEPS: readonly number[] = [0, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000];
/** These are always shown, so that the drawing keeps its place. */
const LEAST_BUCKETS = 10;

/** Undefined: nothing was written, because there was nothing to write or the kernel refused it. */
export function latencyOf({ seenAt, committedAt, effects, refused }: ChangeRecord): number | undefined {
  if (committedAt === undefined || effects.length === 0 || refused !== undefined) return undefined;
  return Math.max(0, committedAt - seenAt);
}

export function isIn({ from, to }: LatencyRange, ms: number): boolean {
  return ms >= from && ms < to;
}

/** In the frame, ascending. */
export function latenciesIn(entries: readonly LoggedEvent[], { from, to }: Frame): readonly number[] {
  const found: number[] = [];
  for (const { at, event } of entries) {
    if (event.kind !== 'change' || at < from || at >= to) continue;
    const latency = latencyOf(event);
    if (latency !== undefined) found.push(latency);
  }
  return found.sort((a, b) => a - b);
}

/** `sorted` ascends. */
export function bucketsOf(sorted: readonly number[]): readonly Bucket[] {
  const buckets = STEPS.map((from, index) => {
    const range = { from, to: STEPS[index + 1] ?? Number.POSITIVE_INFINITY };
    return { ...range, count: sorted.filter((ms) => isIn(range, ms)).length };
  });
  const used = buckets.findLastIndex(({ count }) => count > 0) + 1;
  return buckets.slice(0, Math.max(LEAST_BUCKETS, used));
}

/** By nearest rank: always a value that there was. `sorted` ascends. */
export function percentile(sorted: readonly number[], share: number): number | undefined {
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];
}

/** `under 1 ms`, `2 ms to 5 ms`, `10 s and more` */
export function rangeText({ from, to }: LatencyRange): string {
  if (from === 0) return `under ${durationText(to)}`;
  return to === Number.POSITIVE_INFINITY
    ? `${durationText(from)} and more`
    : `${durationText(from)} to ${durationText(to)}`;
}

/** As short as it can be below a bar: `0.5`, `20`, `2 s`. */
export function stepText(ms: number): string {
  return ms < 1000 ? String(ms) : durationText(ms);
}

/** `2 ms to 5 ms: 14 changes` */
export function bucketText(bucket: Bucket): string {
  return `${rangeText(bucket)}: ${counted(bucket.count, 'change')}`;
}
