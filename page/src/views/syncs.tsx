/** What the proxy does, as it does it: changes, syncs stage by stage, how long they took, and each event in a line. */
import './syncs.css';
import './syncsList.css';
import { useEffect, useState } from 'preact/hooks';
import { counted } from '../../../src/text/ages.ts';
import { useLive } from '../parts/liveBadge.tsx';
import { Empty, Shown } from '../parts/states.tsx';
import { useNow } from '../parts/time.tsx';
import { replaceSoon } from '../route.ts';
import { type Choice, choicePath, chosen, RANGES, rangeNamed, readChoice } from './syncsChoice.ts';
import { type Logged, useSyncEvents } from './syncsEvents.ts';
import { SyncsFilters } from './syncsFilters.tsx';
import { SyncsHistogram } from './syncsHistogram.tsx';
import { latenciesIn } from './syncsLatency.ts';
import { SyncsList } from './syncsList.tsx';
import { frameOf } from './syncsTimeline.ts';
import { SyncsTimeline } from './syncsTimelineCard.tsx';

/** What is shown while new events come. */
interface Paused extends Logged {
  readonly end: number;
}

export function SyncsView({ query }: { readonly query: URLSearchParams }) {
  const answer = useSyncEvents();
  const [choice, setChoice] = useState(() => readChoice(query));
  const [paused, setPaused] = useState<Paused>();
  useEffect(() => setChoice(readChoice(query)), [query.toString()]);
  const change = (part: Partial<Choice>): void => {
    const next = { ...choice, ...part };
    setChoice(next);
    replaceSoon(choicePath(next));
  };
  return (
    <>
      <div class="syncs-head">
        <h1>Syncs</h1>
        <RangeChoice choice={choice} change={change} />
        {answer.kind === 'here' && answer.value.entries.length > 0 && (
          <PauseButton logged={answer.value} paused={paused} setPaused={setPaused} />
        )}
      </div>
      <Shown what="events" answer={answer}>
        {(logged) => <Events logged={logged} paused={paused} choice={choice} change={change} />}
      </Shown>
    </>
  );
}

function RangeChoice({
  choice,
  change,
}: {
  readonly choice: Choice;
  readonly change: (part: Partial<Choice>) => void;
}) {
  return (
    <fieldset class="ranges">
      <legend class="visually-hidden">How far back</legend>
      {Object.keys(RANGES).map((name) => (
        <label key={name}>
          <input
            type="radio"
            class="visually-hidden"
            name="range"
            checked={name === choice.range}
            onChange={() => change({ range: rangeNamed(name), time: undefined })}
          />
          <span>{name} min</span>
        </label>
      ))}
    </fieldset>
  );
}

function PauseButton({
  logged,
  paused,
  setPaused,
}: {
  readonly logged: Logged;
  readonly paused: Paused | undefined;
  readonly setPaused: (paused: Paused | undefined) => void;
}) {
  if (useLive().kind === 'fixed') return null;
  const last = paused?.entries.at(-1)?.id ?? 0;
  const more = paused ? logged.entries.filter(({ id }) => id > last).length : 0;
  return (
    <button
      type="button"
      onClick={() => setPaused(paused ? undefined : { ...logged, end: Date.now() + logged.skewMs })}
    >
      {paused ? 'Resume' : 'Pause'}
      {more > 0 && <span class="quiet"> {counted(more, 'new event')}</span>}
    </button>
  );
}

function Events({
  logged,
  paused,
  choice,
  change,
}: {
  readonly logged: Logged;
  readonly paused: Paused | undefined;
  readonly choice: Choice;
  readonly change: (part: Partial<Choice>) => void;
}) {
  const now = useNow();
  const live = useLive();
  const { entries, gaps, skewMs } = paused ?? logged;
  const isFixed = live.kind === 'fixed';
  const last = entries.reduce((latest, { at }) => Math.max(latest, at), 0);
  const end = paused?.end ?? (isFixed ? last : Math.max(now + skewMs, last));
  if (entries.length === 0)
    return (
      <Empty title={isFixed ? 'This recording has no events' : 'Nothing happened yet'}>
        <p>
          {isFixed
            ? 'It was made by a proxy in which nothing had changed.'
            : 'The first change of a Service or an EndpointSlice shows here, with what it did and how long it took.'}
        </p>
      </Empty>
    );
  const rangeMs = RANGES[choice.range];
  const shown = chosen(entries, choice, end - rangeMs);
  const frame = frameOf(rangeMs, end, 300);
  return (
    <>
      <div class="syncs-top">
        <SyncsTimeline
          entries={entries}
          gaps={live.kind === 'stale' ? [...gaps, { from: live.since + skewMs, to: end }] : gaps}
          end={end}
          rangeMs={rangeMs}
          endLabel={paused ? 'paused' : isFixed ? 'last event' : 'now'}
          chosen={choice.time}
          choose={(time) => change({ time, latency: undefined })}
        />
        <SyncsHistogram
          latencies={latenciesIn(entries, frame)}
          chosen={choice.latency}
          choose={(latency) => change({ latency, time: undefined })}
        />
      </div>
      <section class="card" aria-labelledby="events-title">
        <div class="events-head">
          <h2 id="events-title">Events</h2>
          <span class="quiet">
            {shown.length === entries.length
              ? counted(shown.length, 'event')
              : `${shown.length} of ${counted(entries.length, 'event')}`}
          </span>
        </div>
        <SyncsFilters choice={choice} entries={entries} change={change} />
        {shown.length === 0 ? <Empty title="No event is like that" /> : <SyncsList entries={shown} />}
      </section>
    </>
  );
}
