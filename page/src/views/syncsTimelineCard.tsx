/** The timeline with its legend, and what it shows in a sentence. */
import { useMemo, useState } from 'preact/hooks';
import { Clock } from '../parts/time.tsx';
import { BIN_WIDTH, GAP_NAME, GUTTER, MarkSign, SyncsDrawing } from './syncsDrawing.tsx';
import { useWidth } from '../parts/useWidth.ts';
import type { Gap, LoggedEvent } from './syncsLog.ts';
import { binAt, frameOf, gapsIn, lanesOf, MARK_KINDS, timesOf } from './syncsTimeline.ts';
import { binText, frameText, MARK_NAMES } from './syncsWords.ts';

export function SyncsTimeline({
  entries,
  gaps,
  end,
  rangeMs,
  endLabel,
  chosen,
  choose,
}: {
  readonly entries: readonly LoggedEvent[];
  readonly gaps: readonly Gap[];
  readonly end: number;
  readonly rangeMs: number;
  readonly endLabel: string;
  readonly chosen: Gap | undefined;
  readonly choose: (times: Gap | undefined) => void;
}) {
  const [element, width] = useWidth();
  const [pointed, setPointed] = useState<number>();
  const bins = Math.max(10, Math.floor((width - GUTTER) / BIN_WIDTH));
  const frame = frameOf(rangeMs, end, bins);
  const lanes = useMemo(() => lanesOf(entries, frame), [entries, frame.from, frame.binMs]);
  const bin = pointed ?? (chosen && binAt(frame, chosen.from));
  return (
    <section class="card timeline-card" aria-labelledby="timeline-title">
      <div class="timeline-head">
        <h2 id="timeline-title">Timeline</h2>
        <Legend hasGaps={gapsIn(frame, gaps).length > 0} />
      </div>
      <p class="timeline-says">
        {bin === undefined ? (
          frameText(entries, lanes, frame)
        ) : (
          <>
            <Clock at={timesOf(frame, bin).from} /> {binText(lanes, bin)}
          </>
        )}
      </p>
      <div ref={element} class="timeline-room">
        {width > 0 && (
          <SyncsDrawing
            lanes={lanes}
            gaps={gaps}
            frame={frame}
            width={width}
            endLabel={endLabel}
            chosen={chosen}
            choose={choose}
            point={setPointed}
          />
        )}
      </div>
    </section>
  );
}

const STAGES = ['wait', 'plan', 'write', 'failed'] as const;

function Legend({ hasGaps }: { readonly hasGaps: boolean }) {
  return (
    <ul class="sync-legend" aria-label="Signs">
      {STAGES.map((stage) => (
        <li key={stage}>
          <svg width="10" height="12" aria-hidden="true">
            <rect class={`stage-${stage}`} width="10" height="12" rx="1" />
          </svg>
          {stage}
        </li>
      ))}
      {MARK_KINDS.map((kind) => (
        <li key={kind}>
          <svg width="14" height="14" aria-hidden="true">
            <MarkSign kind={kind} x={7} y={7} />
          </svg>
          {MARK_NAMES[kind]}
        </li>
      ))}
      {hasGaps && (
        <li>
          <svg width="14" height="12" aria-hidden="true">
            <rect class="timeline-gap" width="14" height="12" />
          </svg>
          {GAP_NAME}
        </li>
      )}
    </ul>
  );
}
