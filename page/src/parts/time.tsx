/** Times as people read them, with the exact one on hover. */
import { useEffect, useState } from 'preact/hooks';
import { ago } from '../../../src/text/ages.ts';

/** One timer for all that shows the time, and none while nobody looks. */
const shown = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;

function adjust(): void {
  const isNeeded = shown.size > 0 && !document.hidden;
  if (isNeeded === (timer !== undefined)) return;
  clearInterval(timer);
  timer = isNeeded ? setInterval(tick, 1000) : undefined;
}

function tick(): void {
  for (const show of shown) show();
}

document.addEventListener('visibilitychange', () => {
  adjust();
  if (!document.hidden) tick();
});

/** Milliseconds since the epoch, read again every second while the tab is visible. */
export function useNow(): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const show = (): void => setNow(Date.now());
    shown.add(show);
    adjust();
    return () => {
      shown.delete(show);
      adjust();
    };
  }, []);
  return now;
}

/** `12 s ago` */
export function Ago({ at }: { readonly at: number }) {
  const now = useNow();
  const exact = new Date(at);
  const seconds = Math.floor((now - at) / 1000) * 1000;
  return (
    <time dateTime={exact.toISOString()} title={exact.toLocaleString()}>
      {seconds < 1000 ? 'just now' : ago(0, seconds)}
    </time>
  );
}

/** `14:03:20.123` */
export function Clock({ at }: { readonly at: number }) {
  const exact = new Date(at);
  return (
    <time dateTime={exact.toISOString()} title={exact.toLocaleString()}>
      {timeOfDay(exact)}.{String(exact.getMilliseconds()).padStart(3, '0')}
    </time>
  );
}

/** `14:03`, with the day where it is not today's. */
export function ShortTime({ at }: { readonly at: number }) {
  const exact = new Date(at);
  const isToday = exact.toDateString() === new Date().toDateString();
  const day = isToday ? '' : `${exact.toLocaleDateString('en-GB', { day: 'numeric', month: 'short' })}, `;
  return (
    <time dateTime={exact.toISOString()} title={exact.toLocaleString()}>
      {day}
      {timeOfDay(exact).slice(0, 5)}
    </time>
  );
}

/** Not by toLocaleTimeString, which takes a tenth of a millisecond: lists have many times. */
function timeOfDay(time: Date): string {
  return [time.getHours(), time.getMinutes(), time.getSeconds()]
    .map((part) => String(part).padStart(2, '0'))
    .join(':');
}
