/** Which rows of a long table are in the document: those that are seen, and some around them. */
export interface RowRange {
  readonly first: number;
  /** Not included. */
  readonly end: number;
}

interface Viewport {
  readonly rows: number;
  readonly rowHeight: number;
  /** From the top of the first row to the top of what is seen; negative where the table begins further down. */
  readonly top: number;
  readonly height: number;
}

/** So many more above and below: what the next frames of a fast scroll show. */
const AROUND = 8;
/** The window moves by so many at a time, so that most frames of a slow scroll change nothing. */
const STEP = 4;

export function rowWindow({ rows, rowHeight, top, height }: Viewport): RowRange {
  const seen = Math.max(0, Math.floor(top / rowHeight));
  const after = Math.max(0, Math.ceil((top + height) / rowHeight));
  const first = Math.floor((Math.min(seen, rows) - AROUND) / STEP) * STEP;
  const end = Math.ceil((after + AROUND) / STEP) * STEP;
  return { first: Math.min(Math.max(0, first), Math.max(0, rows)), end: Math.min(rows, Math.max(0, end)) };
}

/** How far the page must scroll so that the row is between what covers it above and below: 0 where it is. */
export function scrollToRow(index: number, { rowHeight, top, height }: Omit<Viewport, 'rows'>): number {
  const rowTop = index * rowHeight;
  if (rowTop < top) return rowTop - top;
  return Math.max(0, rowTop + rowHeight - (top + height));
}

export type RowKey = 'ArrowUp' | 'ArrowDown' | 'PageUp' | 'PageDown' | 'Home' | 'End';

/** The row that the key goes to from `index`; -1: from none. */
export function rowAfterKey(key: RowKey, index: number, rows: number, page: number): number {
  const last = rows - 1;
  switch (key) {
    case 'ArrowUp':
      return index < 0 ? last : Math.max(0, index - 1);
    case 'ArrowDown':
      return Math.min(last, index + 1);
    case 'PageUp':
      return Math.max(0, index - page);
    case 'PageDown':
      return Math.min(last, Math.max(0, index) + page);
    case 'Home':
      return 0;
    case 'End':
      return last;
  }
}
