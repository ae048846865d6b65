/** Texts as they come from a network: in pieces that end anywhere, even inside a character. */
import fc from 'fast-check';

/** Places to cut at, as parts of the whole. */
export function cuts(): fc.Arbitrary<readonly number[]> {
  return fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 20 });
}

export function chunksOf(text: string, at: readonly number[]): readonly Uint8Array[] {
  const bytes = Buffer.from(text);
  const ends = [...at.map((part) => Math.floor(part * bytes.length)), bytes.length].sort((a, b) => a - b);
  return ends.map((end, index) => bytes.subarray(index === 0 ? 0 : ends[index - 1], end));
}
