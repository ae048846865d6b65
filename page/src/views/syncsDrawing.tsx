/** The timeline: time from left to right, a lane for each family, bars for syncs, signs for what else happened. */
import { durationText } from '../../../src/text/ages.ts';
import type { Gap } from './syncsLog.ts';
import { heightOf, SCALE_MS } from './syncsStages.ts';
import {
  barPaths,
  binAt,
  type Frame,
  gapsIn,
  type Lane,
  MARK_KINDS,
  type MarkKind,
  nextBin,
  snapBin,
  timesOf,
} from './syncsTimeline.ts';
import { binText } from './syncsWords.ts';

export const GUTTER = 52;
export const BIN_WIDTH = 6;
const MARKS_HEIGHT = 20;
const BARS_HEIGHT = 100;
const LANE_HEIGHT = MARKS_HEIGHT + BARS_HEIGHT + 14;
const AXIS_HEIGHT = 20;
const REACH = 2;
export const GAP_NAME = 'not known';

interface DrawingProps {
  readonly lanes: readonly Lane[];
  readonly gaps: readonly Gap[];
  readonly frame: Frame;
  /** Of the whole drawing. */
  readonly width: number;
  /** The time at its right end: `now`. */
  readonly endLabel: string;
  readonly chosen: Gap | undefined;
  readonly choose: (times: Gap | undefined) => void;
  /** What the pointer is at. */
  readonly point: (bin: number | undefined) => void;
}

export function SyncsDrawing(props: DrawingProps) {
  const { lanes, gaps, frame, width, chosen, choose, point } = props;
  const height = lanes.length * LANE_HEIGHT + AXIS_HEIGHT;
  const bin = chosen && binAt(frame, chosen.from);
  const binOf = (event: MouseEvent & { readonly currentTarget: Element }): number => {
    const x = event.clientX - event.currentTarget.getBoundingClientRect().left - GUTTER;
    const raw = Math.min(frame.bins - 1, Math.max(0, Math.floor(x / BIN_WIDTH)));
    return snapBin(lanes, raw, REACH);
  };
  const chooseBin = (next: number): void => choose(timesOf(frame, next));
  const press = (event: KeyboardEvent): void => {
    const at = bin ?? frame.bins;
    if (event.key === 'ArrowLeft') chooseBin(nextBin(lanes, at, -1));
    else if (event.key === 'ArrowRight') chooseBin(nextBin(lanes, bin ?? -1, 1));
    else if (event.key === 'Home') chooseBin(nextBin(lanes, -1, 1));
    else if (event.key === 'End') chooseBin(nextBin(lanes, frame.bins, -1));
    else if (event.key === 'Escape') choose(undefined);
    else return;
    event.preventDefault();
  };
  return (
    <div
      class="timeline"
      role="slider"
      tabIndex={0}
      aria-label="Time on the timeline: the arrow keys go from sync to sync"
      aria-valuemin={0}
      aria-valuemax={frame.bins - 1}
      aria-valuenow={bin ?? frame.bins - 1}
      aria-valuetext={bin === undefined ? 'all' : binText(lanes, bin)}
      onKeyDown={press}
    >
      <svg
        width={width}
        height={height}
        aria-hidden="true"
        onMouseMove={(event) => point(binOf(event))}
        onMouseLeave={() => point(undefined)}
        onClick={(event) => {
          const next = binOf(event);
          choose(next === bin ? undefined : timesOf(frame, next));
        }}
      >
        <Hatch />
        {bin !== undefined && (
          <rect
            class="timeline-chosen"
            x={GUTTER + bin * BIN_WIDTH - 3}
            width={BIN_WIDTH + 5}
            height={height - AXIS_HEIGHT}
            rx="3"
          />
        )}
        {lanes.map((lane, index) => (
          <LaneDrawing key={lane.family} lane={lane} y={index * LANE_HEIGHT} width={width} />
        ))}
        {gapsIn(frame, gaps).map(({ from, to }) => (
          <rect
            key={from}
            class="timeline-gap"
            x={GUTTER + from * frame.bins * BIN_WIDTH}
            width={Math.max(BIN_WIDTH, (to - from) * frame.bins * BIN_WIDTH)}
            height={height - AXIS_HEIGHT}
          >
            <title>{GAP_NAME}</title>
          </rect>
        ))}
        <Axis {...props} y={height - AXIS_HEIGHT} />
      </svg>
    </div>
  );
}

function Hatch() {
  return (
    <defs>
      <pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
        <path class="hatch" d="M0 0V6" />
      </pattern>
    </defs>
  );
}

function LaneDrawing({
  lane,
  y,
  width,
}: {
  readonly lane: Lane;
  readonly y: number;
  readonly width: number;
}) {
  const { wait, plan, write, failed } = barPaths(lane.bars, BIN_WIDTH, BARS_HEIGHT);
  return (
    <g transform={`translate(0 ${y})`}>
      <text class="lane-name" x="0" y={MARKS_HEIGHT - 6}>
        {lane.family}
      </text>
      {SCALE_MS.map((ms) => {
        const line = Math.round(MARKS_HEIGHT + BARS_HEIGHT * (1 - heightOf(ms))) + 0.5;
        return (
          <g key={ms}>
            <path class="scale-line" d={`M${GUTTER} ${line}H${width}`} />
            <text class="scale-text" x={GUTTER - 6} y={line + 3.5}>
              {durationText(ms)}
            </text>
          </g>
        );
      })}
      <path class="lane-floor" d={`M${GUTTER} ${MARKS_HEIGHT + BARS_HEIGHT + 0.5}H${width}`} />
      <g transform={`translate(${GUTTER} ${MARKS_HEIGHT})`}>
        <path class="stage-wait" d={wait} />
        <path class="stage-plan" d={plan} />
        <path class="stage-write" d={write} />
        <path class="stage-failed" d={failed} />
      </g>
      {lane.marks.map(({ bin, kind }) => (
        <MarkSign
          key={`${kind} ${bin}`}
          kind={kind}
          x={GUTTER + (bin + 0.5) * BIN_WIDTH}
          y={MARKS_HEIGHT / 2 + MARK_KINDS.indexOf(kind) - 2}
        />
      ))}
    </g>
  );
}

const SIGN_PATHS: Readonly<Record<MarkKind, string>> = {
  foreign: 'M0 -6L6 0L0 6L-6 0Z',
  repaired: 'M0 -6.5L6.5 0L0 6.5L-6.5 0ZM-2.6 0L-0.6 2.2L2.8 -2',
  refused: 'M-4.5 -4.5L4.5 4.5M4.5 -4.5L-4.5 4.5',
  conntrack: 'M-4 0A4 4 0 1 1 4 0A4 4 0 1 1 -4 0',
};

export function MarkSign({
  kind,
  x,
  y,
}: {
  readonly kind: MarkKind;
  readonly x: number;
  readonly y: number;
}) {
  return (
    <path class={`sync-mark sync-mark-${kind}`} d={SIGN_PATHS[kind]} transform={`translate(${x} ${y})`} />
  );
}

const TICKS = 5;

function Axis({ frame, endLabel, y }: DrawingProps & { readonly y: number }) {
  const room = frame.bins * BIN_WIDTH;
  const length = frame.to - frame.from;
  const ticks = room < 500 ? 2 : TICKS;
  const isLive = endLabel === 'now';
  return (
    <g transform={`translate(0 ${y})`}>
      {Array.from({ length: ticks + 1 }, (_, index) => {
        const x = GUTTER + (room * index) / ticks;
        const before = length * (1 - index / ticks);
        const anchor = index === 0 ? 'start' : index === ticks ? 'end' : 'middle';
        return (
          <text key={index} class="axis-text" x={x} y="15" text-anchor={anchor}>
            {index === ticks
              ? endLabel
              : `${durationText(Math.round(before / 1000) * 1000)} ${isLive ? 'ago' : 'before'}`}
          </text>
        );
      })}
    </g>
  );
}
