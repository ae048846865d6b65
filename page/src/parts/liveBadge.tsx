/** Whether what is shown is true now, and what happens next where it is not. */
import { useEffect, useState } from 'preact/hooks';
import { durationText } from '../../../src/text/ages.ts';
import { type LiveState, live } from '../live.ts';
import { Ago, ShortTime, useNow } from './time.tsx';

export function useLive(): LiveState {
  const [state, setState] = useState(live.state);
  useEffect(() => {
    setState(live.state);
    return live.onState(() => setState(live.state));
  }, []);
  return state;
}

/** `takenAt`: when what is shown was read, where it does not change. */
export function LiveBadge({
  state,
  node,
  takenAt,
}: {
  readonly state: LiveState;
  readonly node: string | undefined;
  readonly takenAt: number | undefined;
}) {
  switch (state.kind) {
    case 'connecting':
      return <span class="live">connecting</span>;
    case 'connected':
      return <span class="live live-on">connected</span>;
    case 'stale':
      return (
        <span class="live live-off">
          stale <span class="live-more">since {<Ago at={state.since} />}</span>
        </span>
      );
    case 'denied':
      return <span class="live live-off">not allowed</span>;
    case 'fixed':
      return (
        <span class="live live-fixed" title="What is shown was read once, and does not change.">
          a recording
          {takenAt !== undefined && (
            <span class="live-more">
              {' '}
              of <ShortTime at={takenAt} /> on {node}
            </span>
          )}
        </span>
      );
  }
}

/** Until then the proxy may only be restarting, and what is shown need not move down for that. */
const RESTART_MS = 2000;

/** Said in full below the header: nobody should read old numbers as new ones. */
export function StaleNotice({ state }: { readonly state: LiveState }) {
  return state.kind === 'stale' ? <Notice state={state} /> : null;
}

function Notice({ state }: { readonly state: LiveState & { readonly kind: 'stale' } }) {
  if (useNow() - state.since < RESTART_MS) return null;
  return (
    <div class="notice" role="status">
      <p>
        <strong>The proxy does not send changes.</strong> What is shown was true <Ago at={state.since} />:{' '}
        {state.reason}. <NextTry at={state.nextTryAt} />
      </p>
      <button type="button" onClick={() => live.open()}>
        Try now
      </button>
    </div>
  );
}

function NextTry({ at }: { readonly at: number }) {
  const left = at - useNow();
  // Not read aloud each second.
  return (
    <span aria-hidden="true">
      {left < 500 ? 'Trying again.' : `The next try is in ${durationText(Math.ceil(left / 1000) * 1000)}.`}
    </span>
  );
}
