import type { Colour, Paint } from '../text/paint.ts';
import { printableLine } from '../text/printable.ts';
import { wrap } from '../text/wrap.ts';

const INDENT = '  ';

interface DetailedRow {
  readonly lines: readonly (readonly string[])[];
  /** A text that stands below the row. */
  readonly details: string;
}

/** For a terminal that is too narrow for a column with long texts. */
export function printDetailedTable(
  header: readonly string[],
  rows: readonly DetailedRow[],
  columns: number,
): string {
  const table = printColumns(
    header,
    rows.flatMap(({ lines }) => lines),
  );
  const [titles = '', ...printed] = table.split('\n');
  const parts = rows.flatMap(({ lines, details }) => [
    ...printed.splice(0, lines.length),
    ...(details === '' ? [] : wrap(details, columns - INDENT.length)).map((line) => INDENT + line),
  ]);
  return [titles, ...parts].map((line) => `${line}\n`).join('');
}

export function fitsIn(table: string, columns: number): boolean {
  return table.split('\n').every((line) => visibleLength(line) <= columns);
}

/** Columns that line up. */
export function printColumns(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = widthsOf(header, rows);
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, column) => cell + ' '.repeat(Math.max(0, (widths[column] ?? 0) - visibleLength(cell))))
      .join('  ')
      .trimEnd();
  return [header, ...rows].map((cells) => `${line(cells)}\n`).join('');
}

function widthsOf(header: readonly string[], rows: readonly (readonly string[])[]): number[] {
  const widths = header.map(({ length }) => length);
  for (const row of rows)
    for (let column = 0; column < widths.length; column++) {
      const length = visibleLength(row[column] ?? '');
      if (length > (widths[column] ?? 0)) widths[column] = length;
    }
  return widths;
}

/** A column that may be cut where the terminal is too narrow, and how narrow it may become. */
export interface Column {
  readonly title: string;
  readonly least?: number;
}

const GAP = 2;

/**
 * Fits each row into a line: long cells are cut, widest first. Cells have no colours; `paintLast` gives one to the last cell
 * of a row. There may be thirty thousand rows, so nothing here is made that a line does not need.
 */
export function* tableLines(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  width: number,
  paintLast: (cell: string, row: number) => string = (cell) => cell,
): Generator<string> {
  const header = columns.map(({ title }) => title);
  const widths = fittedWidths(widthsOf(header, rows), columns, width);
  const spaces = ' '.repeat(widths.reduce((sum, each) => sum + each + GAP, 0));
  const last = columns.length - 1;
  const line = (cells: readonly string[], row: number): string => {
    let text = '';
    let padding = 0;
    for (let column = 0; column <= last; column++) {
      const room = widths[column] ?? 0;
      const cell = cutTo(cells[column] ?? '', room);
      // Nothing stands behind the last cell that has something in it.
      if (cell !== '') {
        if (padding > 0) text += spaces.slice(0, padding);
        text += column === last && row >= 0 ? paintLast(cell, row) : cell;
        padding = 0;
      }
      padding += room - cell.length + GAP;
    }
    return `${text}\n`;
  };
  yield line(header, -1);
  for (let row = 0; row < rows.length; row++) yield line(rows[row] ?? [], row);
}

function fittedWidths(widths: number[], columns: readonly Column[], width: number): readonly number[] {
  const total = (): number => widths.reduce((sum, each) => sum + each + GAP, -GAP);
  for (let excess = total() - width; excess > 0; excess = total() - width) {
    let widest = -1;
    for (const [index, { title, least }] of columns.entries()) {
      const own = widths[index] ?? 0;
      const canShrink = least !== undefined && own > Math.max(least, title.length);
      if (canShrink && own > (widths[widest] ?? 0)) widest = index;
    }
    if (widest < 0) break;
    // A share of it, so that several long columns become equally long.
    const least = Math.max(columns[widest]?.least ?? 0, columns[widest]?.title.length ?? 0);
    const own = widths[widest] ?? 0;
    widths[widest] = Math.max(least, own - Math.max(1, Math.ceil(excess / 4)));
  }
  return widths;
}

function cutTo(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, Math.max(0, width - 1))}…`;
}

const PLAIN = /^[ -~]*$/;

/** Text from objects as a cell. Nearly all of it is plain, and there may be a million cells. */
export function cellOf(text: string): string {
  return PLAIN.test(text) ? text : printableLine(text);
}

const COLOUR = new RegExp(String.raw`${String.fromCharCode(27)}\[\d+m`, 'g');

export function visibleLength(text: string): number {
  if (!text.includes('\u001b')) return text.length;
  return text.replaceAll(COLOUR, '').length;
}

const CODES: Readonly<Record<Colour, number>> = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, cyan: 36 };

/** Colours text on a terminal that wants it, and nowhere else: https://no-color.org/ */
export function painter(stream: { readonly isTTY?: boolean }): Paint {
  const enabled = canRedraw(stream) && !process.env['NO_COLOR'];
  return (colour, text) => (enabled ? `\u001b[${CODES[colour]}m${text}\u001b[0m` : text);
}

/** Whether it is a terminal that understands escape sequences. */
export function canRedraw(stream: { readonly isTTY?: boolean }): boolean {
  return stream.isTTY === true && process.env['TERM'] !== 'dumb';
}
