/** How long a sync or a change took, stage by stage, and a scale on which 0.4 ms and 4 s can both be seen. */
import type { ChangeRecord, WatchEvent } from '../../../src/explain/types.ts';
import { durationText } from '../../../src/text/ages.ts';

export type SyncEvent = Extract<WatchEvent, { kind: 'sync' }>;
/** A recording has changes without the syncs that wrote them. */
export type TimedEvent = SyncEvent | Extract<WatchEvent, { kind: 'change' }>;

interface SyncStages {
  /** From when its oldest change was seen until it began; of a change, until it was planned. */
  readonly waitMs: number;
  readonly planMs: number;
  readonly writeMs: number;
  readonly totalMs: number;
}

export function stagesOf(event: TimedEvent): SyncStages {
  if (event.kind === 'change') {
    const untilPlan = Math.max(0, event.plannedAt - event.seenAt);
    // Where nothing is written, planning is all that there is.
    if (event.committedAt === undefined)
      return { waitMs: 0, planMs: untilPlan, writeMs: 0, totalMs: untilPlan };
    const writeMs = Math.max(0, event.committedAt - event.plannedAt);
    return { waitMs: untilPlan, planMs: 0, writeMs, totalMs: untilPlan + writeMs };
  }
  const { at, ms, planMs = 0, writeMs = ms - planMs, seenAt } = event;
  const waitMs = seenAt === undefined ? 0 : Math.max(0, at - ms - seenAt);
  return { waitMs, planMs, writeMs, totalMs: waitMs + planMs + writeMs };
}

/** `waited 1 ms, planned in 0.2 ms, written in 2.9 ms` */
export function stagesText(sync: TimedEvent): string {
  if (sync.kind === 'change') return changeStages(sync);
  const { waitMs, planMs, writeMs } = stagesOf(sync);
  const waited = sync.seenAt === undefined ? [] : [`waited ${durationText(waitMs)}`];
  if (sync.planMs === undefined) return [...waited, `failed after ${durationText(sync.ms)}`].join(', ');
  return [...waited, `planned in ${durationText(planMs)}`, `written in ${durationText(writeMs)}`].join(', ');
}

/** `planned 0.2 ms after it was seen, written 2.9 ms after that` */
function changeStages({ seenAt, plannedAt, committedAt }: ChangeRecord): string {
  const planned = `planned ${durationText(plannedAt - seenAt)} after it was seen`;
  return committedAt === undefined
    ? planned
    : `${planned}, written ${durationText(committedAt - plannedAt)} after that`;
}

const LEAST_MS = 0.1;
const DECADES = 5;

/** From 0 (0.1 ms and less) to 1 (10 s and more). */
export function heightOf(ms: number): number {
  if (ms <= LEAST_MS) return 0;
  return Math.min(1, Math.log10(ms / LEAST_MS) / DECADES);
}

export const SCALE_MS: readonly number[] = [1, 10, 100, 1000];
