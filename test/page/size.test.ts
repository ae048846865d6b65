/** What a browser loads is small, and nothing that only development needs. */
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const FOLDER = fileURLToPath(new URL('../../dist/page/', import.meta.url));
const NAMES = readdirSync(FOLDER);
const MAX_BYTES = 250_000;

test('the page is a document, a script, a style sheet and an icon, and small', () => {
  expect(NAMES.map((name) => name.replace(/-[A-Z0-9]{8}\./, '.')).sort()).toEqual([
    'icon.svg',
    'index.html',
    'page.css',
    'page.js',
  ]);
  const sizes = NAMES.map((name) => statSync(join(FOLDER, name)).size);
  expect(sizes.reduce((sum, size) => sum + size)).toBeLessThan(MAX_BYTES);
});
