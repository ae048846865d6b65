import { wrap } from '../config/help.ts';

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
  const widths = header.map((title, column) =>
    Math.max(title.length, ...rows.map((row) => visibleLength(row[column] ?? ''))),
  );
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, column) => cell + ' '.repeat(Math.max(0, (widths[column] ?? 0) - visibleLength(cell))))
      .join('  ')
      .trimEnd();
  return [header, ...rows].map((cells) => `${line(cells)}\n`).join('');
}

const COLOUR = new RegExp(String.raw`${String.fromCharCode(27)}\[\d+m`, 'g');

export function visibleLength(text: string): number {
  return text.replaceAll(COLOUR, '').length;
}

export type Colour = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan';
const CODES: Readonly<Record<Colour, number>> = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, cyan: 36 };

/** Colours text on a terminal that wants it, and nowhere else: https://no-color.org/ */
export function painter(stream: { readonly isTTY?: boolean }): (colour: Colour, text: string) => string {
  const enabled = canRedraw(stream) && !process.env['NO_COLOR'];
  return (colour, text) => (enabled ? `\u001b[${CODES[colour]}m${text}\u001b[0m` : text);
}

/** Whether it is a terminal that understands escape sequences. */
export function canRedraw(stream: { readonly isTTY?: boolean }): boolean {
  return stream.isTTY === true && process.env['TERM'] !== 'dumb';
}
