/** What a browser loads is small, and nothing that only development needs. */
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const FOLDER = fileURLToPath(new URL('../../dist/page/', import.meta.url));
const NAMES = readdirSync(FOLDER);
const MOST_BYTES = 150_000;

test.each(['.br', '.gz'])('all files of the page as %s are below 150 kB', (ending) => {
  const sizes = NAMES.filter((name) => name.endsWith(ending)).map(
    (name) => statSync(join(FOLDER, name)).size,
  );
  expect(sizes.length).toBeGreaterThan(3);
  expect(sizes.reduce((sum, size) => sum + size)).toBeLessThan(MOST_BYTES);
});

test('there are a document, a script, a style sheet and an icon, each in both compressions', () => {
  const plain = NAMES.filter((name) => !/\.(?:br|gz)$/.test(name));
  expect(plain.map((name) => name.replace(/-[A-Z0-9]{8}\./, '.')).sort()).toEqual([
    'icon.svg',
    'index.html',
    'page.css',
    'page.js',
  ]);
  for (const name of plain) expect(NAMES).toEqual(expect.arrayContaining([`${name}.br`, `${name}.gz`]));
});
