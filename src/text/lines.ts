/** Offsets in a text as lines and columns. */
interface Position {
  readonly line: number;
  readonly column: number;
}

export class LineIndex {
  readonly #starts: number[] = [0];

  constructor(text: string) {
    for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', end + 1))
      this.#starts.push(end + 1);
  }

  position(offset: number): Position {
    let low = 0;
    let high = this.#starts.length - 1;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if ((this.#starts[middle] ?? 0) <= offset) low = middle;
      else high = middle - 1;
    }
    return { line: low + 1, column: offset - (this.#starts[low] ?? 0) + 1 };
  }
}
