/** "Did you mean": the known name that is nearest to a mistyped one, if any is near. */
export function nearest(word: string, known: Iterable<string>): string | undefined {
  const wanted = fold(word);
  let best: string | undefined;
  let bestDistance = Math.max(1, Math.floor(wanted.length / 3)) + 1;
  for (const candidate of known) {
    const distance = editDistance(wanted, fold(candidate), bestDistance);
    if (distance < bestDistance) [best, bestDistance] = [candidate, distance];
  }
  return best;
}

/** ` (did you mean X?)`, or nothing. */
export function didYouMean(word: string, known: Iterable<string>): string {
  const found = nearest(word, known);
  return found === undefined ? '' : ` (did you mean ${found}?)`;
}

function fold(word: string): string {
  return word.toLowerCase().replaceAll('_', '-');
}

/** Insertions, deletions, replacements and swaps of neighbours; `limit` stands for "far". */
function editDistance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) >= limit) return limit;
  let beforeLast: readonly number[] = [];
  let last: readonly number[] = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const same = a[row - 1] === b[column - 1];
      const swapped = row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1];
      current.push(
        Math.min(
          (last[column] ?? limit) + 1,
          (current[column - 1] ?? limit) + 1,
          (last[column - 1] ?? limit) + (same ? 0 : 1),
          swapped ? (beforeLast[column - 2] ?? limit) + 1 : limit,
        ),
      );
    }
    [beforeLast, last] = [last, current];
  }
  return last[b.length] ?? limit;
}
