/** No two places of src and page have ten lines in common. What has the same shape and other words is for people to see. */
import { expect, test } from 'vitest';
import { filesUnder, type SourceFile } from './sources.ts';

const LINES = 10;
const IMPORTS_AND_COMMENTS = /^(?:import|export) [^;]*? from '[^']+';$|\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm;

/** Each place with ten lines, without imports, comments and blank lines. */
function* placesOf({
  path,
  text,
}: SourceFile): Generator<{ readonly place: string; readonly lines: string }> {
  const lines = text
    .replaceAll(IMPORTS_AND_COMMENTS, (cut) => cut.replaceAll(/[^\n]/g, ''))
    .split('\n')
    .map((line, index) => ({ text: line.trim(), number: index + 1 }))
    .filter((line) => line.text !== '');
  for (let first = 0; first + LINES <= lines.length; first++) {
    const some = lines.slice(first, first + LINES);
    yield { place: `${path}:${some[0]?.number}`, lines: some.map((line) => line.text).join('\n') };
  }
}

test('no two places share ten lines', () => {
  const seen = new Map<string, string>();
  const twice: string[] = [];
  for (const { place, lines } of ['src', 'page'].flatMap(filesUnder).flatMap((file) => [...placesOf(file)])) {
    const before = seen.get(lines);
    if (before === undefined) seen.set(lines, place);
    else twice.push(`${before} and ${place}`);
  }
  expect(seen.size).toBeGreaterThan(10_000);
  expect(twice).toEqual([]);
});
