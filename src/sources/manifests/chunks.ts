/**
 * A manifest file cut at its `---` lines.
 *
 * `---` at the start of a line begins a document wherever it stands, even inside a block scalar, so each piece can
 * be parsed alone. A piece whose text did not change need not be parsed again, and a piece that cannot be parsed
 * leaves the others usable.
 */
export interface Chunk {
  readonly text: string;
  /** Lines of the file above this piece. */
  readonly linesAbove: number;
}

const DOCUMENT_START = /\n---(?=[ \t\r\n]|$)/g;
/** A `%YAML` or `%TAG` line belongs to the document after the next `---`, so such files stay whole. */
const DIRECTIVE = /(?:^|\n)%/;

export function splitChunks(text: string): readonly Chunk[] {
  if (DIRECTIVE.test(text)) return [{ text, linesAbove: 0 }];
  const starts = [0, ...Array.from(text.matchAll(DOCUMENT_START), ({ index }) => index + 1), text.length];
  const chunks: Chunk[] = [];
  let linesAbove = 0;
  for (let index = 0; index + 1 < starts.length; index++) {
    const piece = text.slice(starts[index], starts[index + 1]);
    if (piece.trim() !== '') chunks.push({ text: piece, linesAbove });
    linesAbove += piece.split('\n').length - 1;
  }
  return chunks;
}
