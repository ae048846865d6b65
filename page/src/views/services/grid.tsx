/** The table: of thousands of services, the rows that are seen are in the document. */
import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { copyText } from '../../parts/copyButton.tsx';
import { useWidth } from '../../parts/useWidth.ts';
import { cameBack, go, servicePath } from '../../route.ts';
import { type ColumnName, columnWidths, layoutFor, shownColumns } from './columns.ts';
import { GridHead } from './gridHead.tsx';
import { cellsOf, type ServiceLine } from './line.ts';
import { Row, rowId } from './row.tsx';
import { rowAfterKey, type RowKey, scrollToRow } from './rowWindow.ts';
import { seenOf, useRowWindow } from './useRowWindow.ts';
import type { SortColumn, TableState } from './viewState.ts';

interface ServiceGridProps {
  readonly lines: readonly ServiceLine[];
  /** Columns that no service has anything in. */
  readonly empty: readonly ColumnName[];
  readonly state: TableState;
  readonly changed: ReadonlyMap<string, number>;
  readonly isBusy: boolean;
  readonly onSort: (column: SortColumn) => void;
  readonly onSelect: (service: string) => void;
  /** Said by screen readers. */
  readonly onCopied: (text: string) => void;
}

const ROW_KEYS: ReadonlySet<string> = new Set(['ArrowUp', 'ArrowDown', 'PageUp', 'PageDown', 'Home', 'End']);

export function ServiceGrid(props: ServiceGridProps) {
  const { lines, empty, state, changed, isBusy, onSort, onSelect, onCopied } = props;
  const [grid, measured] = useWidth();
  const width = measured === 0 ? innerWidth : measured;
  const body = useRef<HTMLDivElement>(null);
  const isMoved = useRef(false);
  const [pointed, setPointed] = useState(-1);
  const { isCards, rowHeight } = layoutFor(width);
  const columns = useMemo(() => shownColumns(isCards ? 9999 : width, empty), [width, isCards, empty.join()]);
  const widths = columnWidths(columns, width);
  const template = widths.map((each) => `${each}px`).join(' ');
  const shown = useRowWindow(body, lines.length, rowHeight);
  const selected = useMemo(() => lines.findIndex(({ service }) => service === state.row), [lines, state.row]);
  useAnchor(body, lines, rowHeight, state);
  const rows = lines.slice(shown.first, shown.end);
  const slots = slotsFor(rows.length);
  useLayoutEffect(() => {
    if (cameBack() && state.row !== '') grid.current?.focus({ preventScroll: true });
  }, []);

  // When the selected service is shown at the bottom, and covers some rows.
  useLayoutEffect(() => {
    if (!isMoved.current || !body.current) return;
    isMoved.current = false;
    scrollBy(0, scrollToRow(selected, { rowHeight, ...seenOf(body.current, coveredBy()) }));
  }, [selected]);

  const move = (index: number): void => {
    const line = lines[index];
    if (!line) return;
    isMoved.current = true;
    onSelect(line.service);
  };
  const press = (event: KeyboardEvent): void => {
    if (event.target !== grid.current || event.ctrlKey || event.metaKey || event.altKey) return;
    const line = lines[selected];
    if (ROW_KEYS.has(event.key)) {
      const page = Math.max(1, Math.floor((innerHeight * 0.8) / rowHeight));
      move(rowAfterKey(event.key as RowKey, selected, lines.length, page));
    } else if (event.key === 'Enter' && line) go(servicePath(line.service));
    else if (event.key === 'Escape') onSelect('');
    else if (event.key === 'c' && line) copyFirst(line, onCopied);
    else return;
    event.preventDefault();
  };
  return (
    <div
      ref={grid}
      role="grid"
      class={classOf(isCards, widths.at(-1) ?? 0)}
      tabIndex={0}
      aria-label="Services"
      aria-describedby="services-keys"
      aria-rowcount={lines.length + 1}
      aria-colcount={columns.length}
      aria-busy={isBusy}
      {...(selected >= shown.first && selected < shown.end && { 'aria-activedescendant': rowId(selected) })}
      style={{ '--columns': template, '--row-height': `${rowHeight}px` }}
      onKeyDown={press}
      onMouseOver={(event) => setPointed(indexAt(event))}
      onMouseLeave={() => setPointed(-1)}
      onClick={(event) => {
        const line = lines[indexAt(event)];
        if (line && !isControl(event.target) && getSelection()?.isCollapsed !== false) onSelect(line.service);
      }}
    >
      <GridHead columns={columns} state={state} onSort={onSort} />
      <div
        ref={body}
        role="rowgroup"
        class="services-body"
        style={{ height: `${lines.length * rowHeight}px` }}
      >
        {rows.map((line, offset) => (
          <Row
            // Rows that are scrolled out of sight become those that are scrolled into it; the others stay as they are drawn.
            key={(shown.first + offset) % slots}
            line={line}
            index={shown.first + offset}
            top={(shown.first + offset) * rowHeight}
            columns={columns}
            isSelected={shown.first + offset === selected}
            isPointed={shown.first + offset === pointed}
            isChanged={changed.has(line.service)}
          />
        ))}
      </div>
    </div>
  );
}

/** Of the last column: a few letters of why a state is not `ok` say nothing. */
const LEAST_DETAIL = 220;

function classOf(isCards: boolean, lastWidth: number): string {
  if (isCards) return 'services-grid services-cards';
  return lastWidth < LEAST_DETAIL ? 'services-grid services-tight' : 'services-grid';
}

/** How many rows there are in the document, rounded so that it seldom changes. */
function slotsFor(rows: number): number {
  return Math.max(64, 2 ** Math.ceil(Math.log2(rows + 1)));
}

/** When services are added and deleted, the first row that is seen stays where it is. Another search begins at the top. */
function useAnchor(
  body: { readonly current: HTMLElement | null },
  lines: readonly ServiceLine[],
  rowHeight: number,
  { search, states, type, policy, sort, isDescending, problemsFirst }: TableState,
): void {
  const choice = [search, states.join(), type, policy, sort, isDescending, problemsFirst].join('\n');
  const before = useRef({ lines, choice });
  useLayoutEffect(() => {
    const last = before.current;
    before.current = { lines, choice };
    if (!body.current || last.lines === lines) return;
    const { top } = seenOf(body.current, coveredBy());
    if (top <= 0) return;
    if (last.choice !== choice) {
      scrollBy(0, -top);
      return;
    }
    const index = Math.floor(top / rowHeight);
    const service = last.lines[index]?.service;
    const now =
      lines[index]?.service === service ? index : lines.findIndex((line) => line.service === service);
    if (now >= 0 && now !== index) scrollBy(0, (now - index) * rowHeight);
  }, [lines, choice]);
}

/** By what stays where it is while the page scrolls. */
function coveredBy(): { readonly above: number; readonly below: number } {
  const bottomOf = (selector: string): number => {
    const element = document.querySelector(selector);
    return element && getComputedStyle(element).position === 'sticky'
      ? element.getBoundingClientRect().height
      : 0;
  };
  return {
    above: bottomOf('.top') + bottomOf('.services-tools') + bottomOf('.services-head'),
    below: bottomOf('.services-selected'),
  };
}

function indexAt(event: MouseEvent): number {
  const row = event.target instanceof Element ? event.target.closest<HTMLElement>('[data-index]') : null;
  return row ? Number(row.dataset['index']) : -1;
}

function isControl(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest('a, button') !== null;
}

function copyFirst(line: ServiceLine, onCopied: (text: string) => void): void {
  const { clusterIPs, otherIPs } = cellsOf(line);
  const [address] = [...clusterIPs, ...otherIPs];
  if (address !== undefined)
    void copyText(address).then((isDone) =>
      onCopied(isDone ? `Copied ${address}` : `Cannot copy ${address}`),
    );
}
