/** Times as people read them, with the exact one on hover. */
import { useEffect, useState } from 'preact/hooks';
import { durationText } from '../../../src/text/ages.ts';

/** Milliseconds since the epoch, read again every second while the tab is visible. */
export function useNow(): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden) setNow(Date.now());
    }, 1000);
    return () => clearInterval(timer);
  }, []);
  return now;
}

/** `12 s ago` */
export function Ago({ at }: { readonly at: number }) {
  const now = useNow();
  const exact = new Date(at);
  return (
    <time dateTime={exact.toISOString()} title={exact.toLocaleString()}>
      {now - at < 1000 ? 'just now' : `${durationText(Math.floor((now - at) / 1000) * 1000)} ago`}
    </time>
  );
}

/** `14:03:20.123` */
export function Clock({ at }: { readonly at: number }) {
  const exact = new Date(at);
  const time = exact.toLocaleTimeString('en-GB', { hour12: false });
  return (
    <time dateTime={exact.toISOString()} title={exact.toLocaleString()}>
      {time}.{String(exact.getMilliseconds()).padStart(3, '0')}
    </time>
  );
}
