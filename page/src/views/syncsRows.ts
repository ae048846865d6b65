/** Which rows of a long list are drawn: those that can be seen, and a few beyond. */
interface RowWindow {
  readonly first: number;
  /** Behind the last. */
  readonly end: number;
}

const BEYOND = 8;

export function rowsShown(rows: number, rowHeight: number, scrollTop: number, height: number): RowWindow {
  const top = Math.floor(Math.max(0, scrollTop) / rowHeight);
  const count = Math.ceil(height / rowHeight);
  const end = Math.min(rows, top + count + BEYOND);
  return { first: Math.max(0, Math.min(top - BEYOND, end - count)), end };
}

/** Where the keys of a list lead. Undefined: the key is none of them. */
export function rowAfter(key: string, row: number, rows: number, page: number): number | undefined {
  const last = rows - 1;
  switch (key) {
    case 'ArrowDown':
      return Math.min(last, row + 1);
    case 'ArrowUp':
      return Math.max(0, row - 1);
    case 'PageDown':
      return Math.min(last, row + page);
    case 'PageUp':
      return Math.max(0, row - page);
    case 'Home':
      return 0;
    case 'End':
      return last;
    default:
      return undefined;
  }
}
