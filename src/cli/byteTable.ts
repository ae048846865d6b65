/**
 * Lines with tabs between cells as an aligned table, byte by byte. Thirty thousand rows take 15 ms; as strings they take 80,
 * most of it garbage collection, which is more than a command may take that starts in 70.
 */
import { type Column, fittedWidths, GAP } from './table.ts';

const TAB = 9;
const LINE_END = 10;
const SPACE = 32;
const FIRST_PRINTABLE = 32;
const LAST_PRINTABLE = 126;
const ELLIPSIS = [0xe2, 0x80, 0xa6];

export interface ByteTable {
  readonly bytes: Uint8Array;
  readonly rows: number;
  /** Of the longest cell, by column; 0: all are empty. */
  readonly widths: readonly number[];
  /** Otherwise something is not ASCII, or has to be escaped. */
  readonly isPlain: boolean;
}

/** Measures a table while it arrives. */
export class ByteTableReader {
  readonly #chunks: Uint8Array[] = [];
  readonly #widths: number[];
  #rows = 0;
  #column = 0;
  /** Of the cell that is being read. */
  #width = 0;
  #isPlain = true;

  constructor(columns: number) {
    this.#widths = Array.from({ length: columns }, () => 0);
  }

  add(chunk: Uint8Array): void {
    this.#chunks.push(chunk);
    const widths = this.#widths;
    let [rows, column, width, isPlain] = [this.#rows, this.#column, this.#width, this.#isPlain];
    for (let at = 0; at < chunk.length; at++) {
      const byte = chunk[at] ?? 0;
      if (byte === TAB || byte === LINE_END) {
        if (width > (widths[column] ?? 0)) widths[column] = width;
        width = 0;
        column += 1;
        if (byte === LINE_END) {
          column = 0;
          rows += 1;
        }
      } else {
        width += 1;
        if (byte < FIRST_PRINTABLE || byte > LAST_PRINTABLE) isPlain = false;
      }
    }
    this.#rows = rows;
    this.#column = column;
    this.#width = width;
    this.#isPlain = isPlain;
  }

  finish(): ByteTable {
    const bytes = Buffer.concat(this.#chunks);
    return { bytes, rows: this.#rows, widths: this.#widths, isPlain: this.#isPlain };
  }
}

export function tableOfLines(lines: readonly string[], columns: number): ByteTable {
  const reader = new ByteTableReader(columns);
  reader.add(Buffer.from(lines.map((line) => `${line}\n`).join('')));
  return reader.finish();
}

/** Undefined where it is not shown. */
export type ShownColumn = Column | undefined;

/** What stands around the last cell of a row, by its first byte: a colour. */
type Around = (firstByte: number) => readonly [before: string, after: string];

const MOST_AROUND = 32;
const HIDDEN = -1;

/** UTF-8. One loop with nothing but numbers, which the engine compiles while it runs. */
export function alignTable(
  { bytes, rows, widths }: ByteTable,
  columns: readonly ShownColumn[],
  width: number,
  around?: Around,
): Buffer {
  const room = roomOf(widths, columns, width);
  const last = columns.findLastIndex((column) => column !== undefined);
  const titles = Buffer.from(`${columns.map((column) => column?.title ?? '').join('\t')}\n`);
  const lineBytes = room.reduce((sum, each) => sum + Math.max(0, each) + GAP + ELLIPSIS.length, MOST_AROUND);
  const out = Buffer.allocUnsafe(lineBytes * (rows + 1));
  let to = 0;
  for (const [from, isTitle] of [[titles, true] as const, [bytes, false] as const]) {
    let column = 0;
    let cellStart = 0;
    let padding = 0;
    for (let at = 0; at < from.length; at++) {
      const byte = from[at] ?? 0;
      if (byte !== TAB && byte !== LINE_END) continue;
      const most = room[column] ?? HIDDEN;
      if (most !== HIDDEN) {
        const length = at - cellStart;
        if (length > 0) {
          for (; padding > 0; padding--) out[to++] = SPACE;
          const painted = around && !isTitle && column === last ? around(from[cellStart] ?? 0) : undefined;
          if (painted) to += out.write(painted[0], to, 'latin1');
          const end = length <= most ? at : cellStart + most - 1;
          for (let index = cellStart; index < end; index++) out[to++] = from[index] ?? 0;
          if (length > most) for (const part of ELLIPSIS) out[to++] = part;
          if (painted) to += out.write(painted[1], to, 'latin1');
        }
        padding += most - (length < most ? length : most) + GAP;
      }
      cellStart = at + 1;
      column += 1;
      if (byte === TAB) continue;
      out[to++] = LINE_END;
      column = 0;
      padding = 0;
    }
  }
  return out.subarray(0, to);
}

function roomOf(
  widths: readonly number[],
  columns: readonly ShownColumn[],
  width: number,
): readonly number[] {
  const shown = columns.flatMap((column, index) => (column ? [{ column, index }] : []));
  const fitted = fittedWidths(
    shown.map(({ column, index }) => Math.max(column.title.length, widths[index] ?? 0)),
    shown.map(({ column }) => column),
    width,
  );
  const room = columns.map(() => HIDDEN);
  for (const [place, { index }] of shown.entries()) room[index] = fitted[place] ?? 0;
  return room;
}
