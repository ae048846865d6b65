/** How long changes took: buckets that can be chosen, and percentiles. */
import { durationText, grouped } from '../../../src/text/ages.ts';
import {
  type Bucket,
  bucketsOf,
  bucketText,
  isIn,
  type LatencyRange,
  percentile,
  stepText,
} from './syncsLatency.ts';

const SHARES = [
  ['p50', 0.5],
  ['p90', 0.9],
  ['p99', 0.99],
] as const;

export function SyncsHistogram({
  latencies,
  chosen,
  choose,
}: {
  /** Ascending. */
  readonly latencies: readonly number[];
  readonly chosen: LatencyRange | undefined;
  readonly choose: (range: LatencyRange | undefined) => void;
}) {
  const buckets = bucketsOf(latencies);
  const most = Math.max(1, ...buckets.map(({ count }) => count));
  const values = SHARES.map(([name, share]) => ({ name, ms: percentile(latencies, share) }));
  return (
    <section class="card latency" aria-labelledby="latency-title">
      <h2 id="latency-title">Change seen → committed</h2>
      <dl class="percentiles">
        {values.map(({ name, ms }) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{ms === undefined ? '–' : durationText(ms)}</dd>
          </div>
        ))}
        <div>
          <dt>changes</dt>
          <dd>{grouped(latencies.length)}</dd>
        </div>
      </dl>
      {latencies.length === 0 && <p class="quiet">No change was written in this time.</p>}
      <div class="buckets" role="group" aria-label="Changes by how long they took">
        {buckets.map((bucket) => (
          <BucketBar
            key={bucket.from}
            bucket={bucket}
            share={bucket.count / most}
            names={values.flatMap(({ name, ms }) => (ms !== undefined && isIn(bucket, ms) ? [name] : []))}
            isChosen={chosen?.from === bucket.from}
            choose={choose}
          />
        ))}
      </div>
      <p class="buckets-unit" aria-hidden="true">
        milliseconds, from
      </p>
    </section>
  );
}

function BucketBar({
  bucket,
  share,
  names,
  isChosen,
  choose,
}: {
  readonly bucket: Bucket;
  readonly share: number;
  /** Of the percentiles in it. */
  readonly names: readonly string[];
  readonly isChosen: boolean;
  readonly choose: (range: LatencyRange | undefined) => void;
}) {
  const { from, to, count } = bucket;
  const text = bucketText(bucket);
  return (
    <button
      type="button"
      class="bucket"
      aria-pressed={isChosen}
      title={text}
      disabled={count === 0 && !isChosen}
      onClick={() => choose(isChosen ? undefined : { from, to })}
    >
      <span class="visually-hidden">{[text, ...names].join(', ')}</span>
      <span class="bucket-names" aria-hidden="true">
        {names.map((name) => (
          <span key={name}>{name}</span>
        ))}
      </span>
      <span class="bucket-room">
        <span class="bucket-bar" style={{ height: `${100 * share}%` }} />
      </span>
      <span class="bucket-from" aria-hidden="true">
        {stepText(from)}
      </span>
    </button>
  );
}
