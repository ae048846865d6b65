/** What the timeline draws: time in bins, a lane for each family, in each bin its slowest sync and its marks. */
import type { WatchEvent } from '../../../src/explain/types.ts';
import type { Family } from '../../../src/model/ip.ts';
import type { Gap, LoggedEvent } from './syncsLog.ts';
import { heightOf, stagesOf, type TimedEvent } from './syncsStages.ts';

/** Bins begin at multiples of their length, so that what is drawn moves by whole bins and nothing trembles. */
export interface Frame {
  readonly from: number;
  readonly to: number;
  readonly binMs: number;
  readonly bins: number;
}

export function frameOf(rangeMs: number, end: number, bins: number): Frame {
  const binMs = Math.max(1, Math.ceil(rangeMs / bins));
  const to = (Math.floor(end / binMs) + 1) * binMs;
  return { from: to - bins * binMs, to, binMs, bins };
}

/** Undefined: outside. */
export function binAt({ from, to, binMs }: Frame, at: number): number | undefined {
  return at < from || at >= to ? undefined : Math.floor((at - from) / binMs);
}

export function timesOf({ from, binMs }: Frame, bin: number): Gap {
  return { from: from + bin * binMs, to: from + (bin + 1) * binMs };
}

/** In the order in which they are drawn, above each other. */
export const MARK_KINDS = ['foreign', 'repaired', 'refused', 'conntrack'] as const;
export type MarkKind = (typeof MARK_KINDS)[number];

export interface Bar {
  readonly bin: number;
  /** How many syncs, or changes where no sync is known. */
  readonly count: number;
  readonly slowest: TimedEvent;
  readonly hasFailed: boolean;
}

export interface Mark {
  readonly bin: number;
  readonly kind: MarkKind;
  readonly count: number;
}

export interface Lane {
  readonly family: Family;
  readonly bars: readonly Bar[];
  readonly marks: readonly Mark[];
}

export function lanesOf(entries: readonly LoggedEvent[], frame: Frame): readonly Lane[] {
  const families = new Map<Family, TimedEvent['kind']>();
  for (const { event } of entries)
    if (event.kind === 'sync') families.set(event.family, 'sync');
    else if ('family' in event && !families.has(event.family)) families.set(event.family, 'change');
  return [...families].sort().map(([family, timed]) => laneOf(entries, frame, family, timed));
}

/** `timed`: which events are bars. */
function laneOf(
  entries: readonly LoggedEvent[],
  frame: Frame,
  family: Family,
  timed: TimedEvent['kind'],
): Lane {
  const bars = new Map<number, Bar>();
  const marks = new Map<string, Mark>();
  for (const { at, event } of entries) {
    const bin = binAt(frame, at);
    if (bin === undefined || !('family' in event) || event.family !== family) continue;
    if (event.kind === 'sync' || event.kind === 'change') {
      if (event.kind === timed) bars.set(bin, withEvent(bars.get(bin), bin, event));
      continue;
    }
    const kind = markOf(event);
    const key = `${kind} ${bin}`;
    marks.set(key, { bin, kind, count: (marks.get(key)?.count ?? 0) + 1 });
  }
  return { family, bars: [...bars.values()], marks: [...marks.values()] };
}

function withEvent(bar: Bar | undefined, bin: number, event: TimedEvent): Bar {
  const error = event.kind === 'sync' ? event.error : event.refused;
  const hasFailed = error !== undefined || bar?.hasFailed === true;
  const isSlower = !bar || stagesOf(event).totalMs > stagesOf(bar.slowest).totalMs;
  return { bin, count: (bar?.count ?? 0) + 1, slowest: isSlower ? event : bar.slowest, hasFailed };
}

type MarkedEvent = Exclude<WatchEvent, { kind: 'sync' | 'change' | 'lost' }>;

/** Most changes by others are repaired before they are noted. */
function markOf(event: MarkedEvent): MarkKind {
  return event.kind === 'foreign' && event.repairedMs !== undefined ? 'repaired' : event.kind;
}

interface BarPaths {
  readonly wait: string;
  readonly plan: string;
  readonly write: string;
  readonly failed: string;
}

const LEAST_HEIGHT = 3;

/** Three outlines for all bars of a lane: one element for each stage, however many syncs there are. */
export function barPaths(bars: readonly Bar[], binWidth: number, height: number): BarPaths {
  const paths = { wait: '', plan: '', write: '', failed: '' };
  const width = Math.max(1, binWidth - 1);
  for (const { bin, slowest, hasFailed } of bars) {
    const { waitMs, planMs, writeMs, totalMs } = stagesOf(slowest);
    const whole = Math.max(LEAST_HEIGHT, heightOf(totalMs) * height);
    const x = fixed(bin * binWidth);
    let y = height;
    const box = (part: number): string => {
      y -= part;
      return part <= 0 ? '' : `M${x} ${fixed(y)}h${fixed(width)}v${fixed(part)}h-${fixed(width)}z`;
    };
    if (hasFailed) paths.failed += box(whole);
    else {
      // Less than the clock can tell is planning.
      const share = totalMs === 0 ? 0 : whole / totalMs;
      paths.wait += box(waitMs * share);
      paths.plan += box(totalMs === 0 ? whole : planMs * share);
      paths.write += box(writeMs * share);
    }
  }
  return paths;
}

function fixed(value: number): string {
  return String(Math.round(value * 10) / 10);
}

/** Parts of the frame, from 0 to 1, of which nothing is known. */
export function gapsIn({ from, to }: Frame, gaps: readonly Gap[]): readonly Gap[] {
  return gaps
    .filter((gap) => gap.to >= from && gap.from < to)
    .map((gap) => ({
      from: (Math.max(gap.from, from) - from) / (to - from),
      to: (Math.min(gap.to, to) - from) / (to - from),
    }));
}

/** The nearest bin with something in it, in that direction; the same one where there is none. */
export function nextBin(lanes: readonly Lane[], bin: number, direction: -1 | 1): number {
  const bins = lanes.flatMap(({ bars, marks }) => [...bars, ...marks].map((each) => each.bin));
  const beyond = bins.filter((each) => (each - bin) * direction > 0);
  return beyond.length === 0 ? bin : direction > 0 ? Math.min(...beyond) : Math.max(...beyond);
}

/** The bin nearest to the pointer that has something in it, if there is one so near; a bin is only a few pixels wide. */
export function snapBin(lanes: readonly Lane[], bin: number, reach: number): number {
  let best = bin;
  let distance = reach + 1;
  for (const { bars, marks } of lanes)
    for (const each of [...bars, ...marks]) {
      const away = Math.abs(each.bin - bin);
      if (away < distance) [best, distance] = [each.bin, away];
    }
  return best;
}
