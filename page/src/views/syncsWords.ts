/** What the drawing says in words: of all of it, and of one bin. */
import { counted, durationText } from '../../../src/text/ages.ts';
import type { LoggedEvent } from './syncsLog.ts';
import { stagesOf, stagesText } from './syncsStages.ts';
import type { Bar, Frame, Lane, Mark, MarkKind } from './syncsTimeline.ts';

export const MARK_NAMES: Readonly<Record<MarkKind, string>> = {
  foreign: 'external change',
  repaired: 'repair',
  refused: 'refusal',
  conntrack: 'clean-up',
};

/** `42 syncs, 12 changes, 1 external change` */
export function frameText(entries: readonly LoggedEvent[], lanes: readonly Lane[], frame: Frame): string {
  const bars = lanes.flatMap((lane) => lane.bars).filter(({ slowest }) => slowest.kind === 'sync');
  const syncs = sumOf(bars.map(({ count }) => count));
  const changes = entries.filter(
    ({ at, event }) => event.kind === 'change' && at >= frame.from && at < frame.to,
  ).length;
  const marks = lanes.flatMap((lane) => lane.marks);
  const hasSyncs = syncs > 0 || changes === 0;
  return [
    ...(hasSyncs ? [counted(syncs, 'sync')] : []),
    counted(changes, 'change'),
    ...marksText(marks),
  ].join(', ');
}

/** `IPv4: 2 syncs, the slowest took 4.1 ms (waited …, planned in …, written in …); IPv6: 1 refusal` */
export function binText(lanes: readonly Lane[], bin: number): string {
  const parts = lanes.flatMap(({ family, bars, marks }) => {
    const bar = bars.find((each) => each.bin === bin);
    const own = marks.filter((each) => each.bin === bin);
    if (!bar && own.length === 0) return [];
    return [`${family}: ${[...(bar ? [barText(bar)] : []), ...marksText(own)].join(', ')}`];
  });
  return parts.length === 0 ? 'nothing happened' : parts.join('; ');
}

function barText({ count, slowest }: Bar): string {
  const { kind } = slowest;
  const took = `${durationText(stagesOf(slowest).totalMs)} (${stagesText(slowest)})`;
  return count === 1 ? `a ${kind} of ${took}` : `${counted(count, kind)}, the slowest of ${took}`;
}

function marksText(marks: readonly Mark[]): readonly string[] {
  const kinds = [...new Set(marks.map(({ kind }) => kind))];
  return kinds.map((kind) =>
    counted(sumOf(marks.filter((mark) => mark.kind === kind).map(({ count }) => count)), MARK_NAMES[kind]),
  );
}

function sumOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, each) => sum + each, 0);
}
