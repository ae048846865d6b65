/** Lines of an answer for people: labels in one column, texts beside them, wrapped to the terminal. */
import type { Colour, Paint } from '../text/paint.ts';
import { printableLine } from '../text/printable.ts';
import { wrap } from '../text/wrap.ts';

export interface PrintStyle {
  readonly paint: Paint;
  /** Of the terminal. */
  readonly columns: number;
  /** Milliseconds since the epoch: what is shown has an age. */
  readonly now?: number;
  /** Every rule on the packet's way, and every endpoint. */
  readonly isWide?: boolean;
}

const INDENT = 2;
const LABEL_COLUMNS = 11;
/** No narrower, however narrow the terminal is. */
const LEAST_TEXT = 24;
/** On a wider terminal, words at the right end would be far from what they are about. */
const END_COLUMNS = 100;

export class Sheet {
  readonly #style: PrintStyle;
  readonly #lines: string[] = [];

  constructor(style: PrintStyle) {
    this.#style = style;
  }

  get text(): string {
    return this.#lines.map((line) => `${line}\n`).join('');
  }

  /** Where texts at the right end: in a pipe, lines have none. */
  get #end(): number {
    return Math.min(this.#style.columns, END_COLUMNS);
  }

  get isWide(): boolean {
    return this.#style.isWide === true;
  }

  blank(): void {
    this.#lines.push('');
  }

  /** A title at the left, and a word at the right end of the line. */
  heading(title: string, word: string, colour: Colour): void {
    const { paint, columns } = this.#style;
    const room = Math.max(LEAST_TEXT, columns - word.length - 2);
    const lines = wrap(printableLine(title), room);
    const last = lines.at(-1) ?? '';
    const gap = ' '.repeat(Math.max(2, this.#end - last.length - word.length));
    for (const line of lines.slice(0, -1)) this.#lines.push(paint('bold', line));
    this.#lines.push(`${paint('bold', last)}${word === '' ? '' : gap + paint(colour, word)}`);
  }

  /** `aside` stands at the right end where there is room for it, and below where there is none. */
  row(label: string, text: string, options: RowOptions = {}): void {
    const { paint, columns } = this.#style;
    const { indent = INDENT, width = LABEL_COLUMNS, colour, labelColour, aside = '', isWhole } = options;
    const shown = printableLine(label);
    const start = indent + Math.max(width, shown === '' ? 0 : shown.length + 1);
    const room = Math.max(LEAST_TEXT, columns - start);
    const line = printableLine(text);
    const [first = '', ...more] = isWhole === true ? [line] : wrap(line, room);
    const side = printableLine(aside);
    const isBeside = side !== '' && more.length === 0 && first.length + 2 + side.length <= room;
    const gap = ' '.repeat(Math.max(2, this.#end - start - first.length - side.length));
    const head =
      ' '.repeat(indent) + paintIf(paint, labelColour, shown) + ' '.repeat(start - indent - shown.length);
    this.#lines.push(
      (head + paintIf(paint, colour, first) + (isBeside ? gap + paint('dim', side) : '')).trimEnd(),
    );
    for (const next of more) this.#lines.push(' '.repeat(start) + paintIf(paint, colour, next));
    if (side !== '' && !isBeside) this.#lines.push(' '.repeat(start) + paint('dim', side));
  }

  /** Columns that line up; the last one is wrapped. */
  table(
    rows: readonly (readonly string[])[],
    indent: number,
    colours: readonly (Colour | undefined)[] = [],
  ): void {
    const { paint, columns } = this.#style;
    const shown = rows.map((row) => row.map(printableLine));
    const count = Math.max(0, ...shown.map((row) => row.length));
    const widths = Array.from({ length: Math.max(0, count - 1) }, (_, column) =>
      Math.max(...shown.map((row) => (row[column] ?? '').length)),
    );
    const start = indent + widths.reduce((sum, width) => sum + width + 2, 0);
    const room = columns - start;
    for (const row of shown) {
      const cells = widths.map((width, column) => {
        const cell = row[column] ?? '';
        return paintIf(paint, colours[column], cell) + ' '.repeat(width + 2 - cell.length);
      });
      const last = row[count - 1] ?? '';
      const isBelow = room < LEAST_TEXT && last.length > room;
      const lines = wrap(last, isBelow ? Math.max(LEAST_TEXT, columns - indent - 4) : room);
      const head = ' '.repeat(indent) + cells.join('');
      const colour = colours[count - 1];
      if (isBelow) this.#lines.push(head.trimEnd());
      for (const [index, line] of lines.entries()) {
        const before = isBelow ? ' '.repeat(indent + 4) : index === 0 ? head : ' '.repeat(start);
        this.#lines.push((before + paintIf(paint, colour, line)).trimEnd());
      }
    }
  }
}

interface RowOptions {
  readonly indent?: number;
  /** Of the label's column. */
  readonly width?: number;
  readonly colour?: Colour | undefined;
  readonly labelColour?: Colour | undefined;
  readonly aside?: string | undefined;
  /** Not wrapped: a command is copied from the terminal. */
  readonly isWhole?: boolean;
}

function paintIf(paint: Paint, colour: Colour | undefined, text: string): string {
  return colour === undefined || text === '' ? text : paint(colour, text);
}
