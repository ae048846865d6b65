/** Whether what is shown is true now. */
import { useEffect, useState } from 'preact/hooks';
import { live } from '../live.ts';
import { Ago } from './time.tsx';

export function LiveBadge() {
  const [state, setState] = useState(live.state);
  useEffect(() => live.onState(() => setState(live.state)), []);
  switch (state.kind) {
    case 'connecting':
      return (
        <span class="live" role="status">
          connecting
        </span>
      );
    case 'connected':
      return (
        <span class="live live-on" role="status">
          connected
        </span>
      );
    case 'stale':
      return (
        <span class="live live-off" role="status" title={state.reason}>
          stale since <Ago at={state.since} />
        </span>
      );
    case 'fixed':
      return (
        <span class="live" role="status" title="What is shown does not change: it was read once.">
          a recording
        </span>
      );
  }
}
