/**
 * Events in the words of `watch`, newest first. The list is what the drawing says as text. New lines are not read aloud, and
 * what somebody reads stays where it is.
 */
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { eventText, serviceOfEvent } from '../../../src/explain/events.ts';
import type { WatchEvent } from '../../../src/explain/types.ts';
import { printableLine } from '../../../src/text/printable.ts';
import { ServiceWords } from '../parts/serviceWords.tsx';
import { Clock } from '../parts/time.tsx';
import type { LoggedEvent } from './syncsLog.ts';
import { rowAfter, rowsShown } from './syncsRows.ts';
import { stagesText } from './syncsStages.ts';

/** As in the style sheet. */
const ROW_HEIGHT = { wide: 30, narrow: 52 } as const;
const NARROW = '(max-width: 760px)';
const VIEW_HEIGHT = 520;

export function SyncsList({ entries }: { readonly entries: readonly LoggedEvent[] }) {
  const box = useRef<HTMLOListElement>(null);
  const [scrollTop, setScrollTop] = useState(0);
  const [openId, setOpenId] = useState<number>();
  const [currentId, setCurrentId] = useState<number>();
  const isNarrow = matchMedia(NARROW).matches;
  const rowHeight = isNarrow ? ROW_HEIGHT.narrow : ROW_HEIGHT.wide;
  const newest = entries[0]?.id ?? 0;
  useSteadyRows(box, entries, rowHeight, scrollTop > 0);
  const height = useHeight(box);
  const { first, end } = rowsShown(entries.length, rowHeight, scrollTop, height);
  const found = entries.findIndex(({ id }) => id === currentId);
  const current = found < 0 ? 0 : found;
  const move = (event: KeyboardEvent): void => {
    const next = rowAfter(event.key, current, entries.length, Math.floor(height / rowHeight));
    if (next === undefined || event.target === box.current) return;
    event.preventDefault();
    setCurrentId(entries[next]?.id);
    showRow(box.current, next, rowHeight);
    // Drawn first, if it was too far away to be.
    requestAnimationFrame(() => {
      box.current?.querySelector<HTMLElement>(`[data-row="${next}"] .event-more`)?.focus({
        preventScroll: true,
      });
    });
  };
  return (
    <ol
      ref={box}
      class="events"
      aria-label="Events, newest first"
      tabIndex={-1}
      data-newest={newest}
      onScroll={(event) => setScrollTop(event.currentTarget.scrollTop)}
      onKeyDown={move}
    >
      {first > 0 && (
        <li class="events-space" aria-hidden="true" style={{ height: `${first * rowHeight}px` }} />
      )}
      {entries.slice(first, end).map((entry, index) => (
        <Row
          key={entry.id}
          entry={entry}
          row={first + index}
          rows={entries.length}
          isOpen={entry.id === openId}
          isCurrent={first + index === current}
          toggle={() => {
            setOpenId(entry.id === openId ? undefined : entry.id);
            setCurrentId(entry.id);
          }}
        />
      ))}
      {end < entries.length && (
        <li
          class="events-space"
          aria-hidden="true"
          style={{ height: `${(entries.length - end) * rowHeight}px` }}
        />
      )}
    </ol>
  );
}

/** New rows come above; who has scrolled down keeps what is read in its place. */
function useSteadyRows(
  box: { readonly current: HTMLOListElement | null },
  entries: readonly LoggedEvent[],
  rowHeight: number,
  isScrolled: boolean,
): void {
  const before = useRef<number | undefined>(undefined);
  useLayoutEffect(() => {
    const added = before.current === undefined ? 0 : entries.findIndex(({ id }) => id === before.current);
    before.current = entries[0]?.id;
    // What is read of the element makes the browser lay out all of the page: not where nobody has scrolled.
    if (box.current && added > 0 && isScrolled) box.current.scrollTop += added * rowHeight;
  }, [entries]);
}

/** Not read from the element while drawing, for the same reason. */
function useHeight(box: { readonly current: HTMLOListElement | null }): number {
  const [height, setHeight] = useState(VIEW_HEIGHT);
  useLayoutEffect(() => {
    if (!box.current) return;
    const observer = new ResizeObserver(([entry]) => setHeight(entry?.contentRect.height ?? VIEW_HEIGHT));
    observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  return height;
}

function showRow(box: HTMLElement | null, row: number, rowHeight: number): void {
  if (!box) return;
  const top = row * rowHeight;
  if (top < box.scrollTop) box.scrollTop = top;
  else if (top + rowHeight > box.scrollTop + box.clientHeight)
    box.scrollTop = top + rowHeight - box.clientHeight;
}

function Row({
  entry: { at, event },
  row,
  rows,
  isOpen,
  isCurrent,
  toggle,
}: {
  readonly entry: LoggedEvent;
  readonly row: number;
  readonly rows: number;
  readonly isOpen: boolean;
  readonly isCurrent: boolean;
  readonly toggle: () => void;
}) {
  const isBad = event.kind === 'sync' && event.error !== undefined;
  return (
    <li
      class={isOpen ? 'event event-open' : 'event'}
      aria-posinset={row + 1}
      aria-setsize={rows}
      data-row={row}
    >
      <button
        type="button"
        class="event-more"
        tabIndex={isCurrent ? 0 : -1}
        aria-expanded={isOpen}
        aria-label="Details"
        onClick={toggle}
      />
      <span class="event-time">
        <Clock at={at} />
      </span>
      <span class="event-family">{'family' in event ? event.family : ''}</span>
      <span class={`event-kind event-${isBad ? 'failed' : event.kind}`}>{event.kind}</span>
      <span class="event-text">
        <ServiceWords
          text={printableLine(eventText(event))}
          service={serviceOfEvent(event)}
          tabIndex={isCurrent ? 0 : -1}
        />
        {isOpen && <span class="event-stages">{detailsOf(event)}</span>}
      </span>
    </li>
  );
}

function detailsOf(event: WatchEvent): string {
  return event.kind === 'sync' || event.kind === 'change' ? stagesText(event) : '';
}
