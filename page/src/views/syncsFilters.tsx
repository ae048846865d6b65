/** Which events the list shows. */
import type { WatchEvent } from '../../../src/explain/types.ts';
import { grouped } from '../../../src/text/ages.ts';
import { Clock } from '../parts/time.tsx';
import { type Choice, EVENT_KINDS } from './syncsChoice.ts';
import { rangeText } from './syncsLatency.ts';
import type { LoggedEvent } from './syncsLog.ts';

export function SyncsFilters({
  choice,
  entries,
  change,
}: {
  readonly choice: Choice;
  readonly entries: readonly LoggedEvent[];
  readonly change: (part: Partial<Choice>) => void;
}) {
  const counts = new Map<WatchEvent['kind'], number>();
  for (const { event } of entries) counts.set(event.kind, (counts.get(event.kind) ?? 0) + 1);
  return (
    <div class="event-filters" role="search" aria-label="Events">
      <fieldset class="event-chips">
        <legend class="visually-hidden">Kinds of events</legend>
        {EVENT_KINDS.map((kind) => {
          const isOn = choice.kinds.includes(kind);
          return (
            <button
              key={kind}
              type="button"
              class="event-chip"
              aria-pressed={isOn}
              onClick={() =>
                change({
                  kinds: isOn ? choice.kinds.filter((each) => each !== kind) : [...choice.kinds, kind],
                })
              }
            >
              {kind} <span class="event-chip-count">{grouped(counts.get(kind) ?? 0)}</span>
            </button>
          );
        })}
      </fieldset>
      <label>
        <span class="visually-hidden">Family</span>
        <select
          value={choice.family ?? ''}
          onChange={({ currentTarget: { value } }) =>
            change({ family: value === 'IPv4' || value === 'IPv6' ? value : undefined })
          }
        >
          <option value="">both families</option>
          <option value="IPv4">IPv4</option>
          <option value="IPv6">IPv6</option>
        </select>
      </label>
      <label class="event-search">
        <span class="visually-hidden">Service</span>
        <input
          type="search"
          placeholder="namespace or service, shop/*"
          value={choice.service}
          onInput={({ currentTarget: { value } }) => change({ service: value.trim() })}
        />
      </label>
      <Chosen choice={choice} change={change} />
    </div>
  );
}

/** What was chosen on the drawing or the histogram. */
function Chosen({
  choice: { time, latency },
  change,
}: {
  readonly choice: Choice;
  readonly change: (part: Partial<Choice>) => void;
}) {
  if (!time && !latency) return null;
  return (
    <button
      type="button"
      class="event-chip event-chip-chosen"
      onClick={() => change({ time: undefined, latency: undefined })}
    >
      {time ? (
        <span>
          <Clock at={time.from} /> to <Clock at={time.to} />
        </span>
      ) : (
        latency && <span>{rangeText(latency)}</span>
      )}
      <span aria-hidden="true"> ×</span>
      <span class="visually-hidden">: show all again</span>
    </button>
  );
}
