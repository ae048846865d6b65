/** Something is not, or does not become, what it should be. */
import { isDeepStrictEqual } from 'node:util';
import { eventually } from '../../e2e/support/eventually.ts';

export class Mismatch extends Error {
  override readonly name = 'Mismatch';
}

/** What is read may change for a while. */
export async function becomes<T>(read: () => Promise<T>, expected: T, patienceMs?: number): Promise<void> {
  let seen: T | undefined;
  const isSeen = async (): Promise<boolean> => {
    seen = await read();
    return isDeepStrictEqual(seen, expected);
  };
  await eventually('it', isSeen, patienceMs).catch((error: unknown) => {
    if (seen === undefined) throw error;
    same(seen, expected);
  });
}

export function same<T>(seen: T, expected: T): void {
  if (!isDeepStrictEqual(seen, expected)) throw new Mismatch(difference(linesOf(seen), linesOf(expected)));
}

function difference(seen: readonly string[], expected: readonly string[]): string {
  const missing = expected.filter((line) => !seen.includes(line));
  const surplus = seen.filter((line) => !expected.includes(line));
  if (missing.length + surplus.length === 0)
    return ['the order is another; seen:', ...seen, 'expected:', ...expected].join('\n');
  return [...missing.map((line) => `expected  ${line}`), ...surplus.map((line) => `seen      ${line}`)].join(
    '\n',
  );
}

function linesOf(value: unknown): readonly string[] {
  return typeof value === 'string' ? [value] : JSON.stringify(value, null, 1).split('\n');
}
