/** Chromium's own trace of a tab: how long its main thread was busy, and which frames it did not draw in time. */
import type { Frames, Work } from './messages.ts';

export const CATEGORIES = [
  '-*',
  'toplevel',
  'cc',
  'benchmark',
  '__metadata',
  'disabled-by-default-devtools.timeline.frame',
];

const LONG_TASK_MS = 50;

interface TraceEvent {
  readonly name: string;
  readonly ph: string;
  readonly pid: number;
  readonly tid: number;
  /** Microseconds; of `tdur` the thread had a processor. */
  readonly dur?: number;
  readonly tdur?: number;
  readonly args?: {
    readonly name?: string;
    readonly frame_reporter?: { readonly state?: string; readonly affects_smoothness?: boolean };
  };
}

/** Of the process that drew most frames: the tab that was worked in. */
export function readTrace(bytes: Uint8Array): Work & Frames {
  const { traceEvents } = JSON.parse(Buffer.from(bytes).toString()) as {
    readonly traceEvents: readonly TraceEvent[];
  };
  const drawn = new Map<number, number>();
  for (const { name, pid } of traceEvents)
    if (name === 'PipelineReporter') drawn.set(pid, (drawn.get(pid) ?? 0) + 1);
  const [busiest] = [...drawn].sort(([, a], [, b]) => b - a);
  const own = traceEvents.filter(({ pid }) => pid === busiest?.[0]);
  const main = own.find(({ name, args }) => name === 'thread_name' && args?.name === 'CrRendererMain')?.tid;
  const tasks = own
    .filter(({ name, tid, ph }) => tid === main && ph === 'X' && name === 'ThreadControllerImpl::RunTask')
    // Not the time that passed: a read of the event stream is one task for as long as the trace is being taken.
    .map(({ dur = 0, tdur = dur }) => tdur / 1000);
  const reports = own.flatMap(({ name, ph, args }) =>
    name === 'PipelineReporter' && ph === 'b' && args?.frame_reporter ? [args.frame_reporter] : [],
  );
  return {
    longestTaskMs: Math.max(0, ...tasks),
    longTasks: tasks.filter((ms) => ms >= LONG_TASK_MS).length,
    frames: reports.filter(({ state }) => state?.startsWith('STATE_PRESENTED')).length,
    dropped: reports.filter((report) => report.state === 'STATE_DROPPED' && report.affects_smoothness).length,
  };
}
