/** What changed, what that did, and how long it took; newest first. */
import { useState } from 'preact/hooks';
import { changeTimes } from '../../../src/explain/serviceWords.ts';
import type { ChangeRecord } from '../../../src/explain/types.ts';
import { Shown } from '../parts/states.tsx';
import { Ago } from '../parts/time.tsx';
import type { Answer } from '../useAnswer.ts';

interface HistoryProps {
  readonly answer: Answer<readonly ChangeRecord[]>;
}

const FEW = 8;

export function ServiceHistory({ answer }: HistoryProps) {
  const [most, setMost] = useState(FEW);
  return (
    <section class="card history" aria-labelledby="history-title">
      <h2 id="history-title">History</h2>
      <Shown what="the history" answer={answer}>
        {(records) => (
          <>
            {records.length === 0 && <p class="quiet">Nothing has changed since the proxy started.</p>}
            <ol>
              {records.slice(0, most).map((record) => (
                <Change key={`${record.family} ${record.id}`} record={record} />
              ))}
            </ol>
            {records.length > most && (
              <button type="button" onClick={() => setMost(most + 4 * FEW)}>
                Earlier changes
              </button>
            )}
          </>
        )}
      </Shown>
    </section>
  );
}

function Change({ record }: { readonly record: ChangeRecord }) {
  const { seenAt, causes, effects, family, refused } = record;
  return (
    <li class={refused === undefined ? undefined : 'is-refused'}>
      <p class="change-when">
        <strong>
          <Ago at={seenAt} />
        </strong>{' '}
        <span class="quiet">
          {family}, {changeTimes(record)}
        </span>
      </p>
      <ul class="causes" aria-label="causes">
        {causes.map((cause) => (
          <li key={cause}>{cause}</li>
        ))}
      </ul>
      <ul class="effects" aria-label="effects">
        {effects.map((effect) => (
          <li key={effect}>{effect}</li>
        ))}
      </ul>
    </li>
  );
}
