/** What a question to the running proxy loads before it is asked. */
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';

const PROGRAM = new URL('../../dist/junction.js', import.meta.url).pathname;

/** The files that are loaded with one, and the packages that they need. */
function loadedWith(file: string, seen = new Set<string>()): ReadonlySet<string> {
  if (seen.has(file)) return seen;
  seen.add(file);
  const text = readFileSync(file, 'utf8');
  for (const [, name = ''] of text.matchAll(/^(?:import|export)[^;]*?(?:from )?"([^"]+)";$/gm)) {
    if (name.startsWith('.')) loadedWith(join(dirname(file), name), seen);
    else seen.add(name);
  }
  return seen;
}

const loaded = [...loadedWith(PROGRAM)];
const files = loaded.filter((each) => each.startsWith('/'));
const texts = files.map((each) => readFileSync(each, 'utf8'));

test('the questions are in it', () => {
  for (const name of ['explainCommand', 'servicesCommand', 'statusCommand', 'watchCommand', 'liveAnswers'])
    expect(texts.some((text) => text.includes(`// src/cli/${name}.ts`))).toBe(true);
});

test('nothing but Node is needed', () => {
  expect(loaded.filter((each) => !each.startsWith('/') && !each.startsWith('node:'))).toEqual([]);
});

// Programs are started, threads run and rules are made where the proxy is, not here.
test.each(['node:child_process', 'node:worker_threads', 'node:module'])('not %s', (name) => {
  expect(loaded).not.toContain(name);
});

test('few files, and small', () => {
  expect(files.length).toBeLessThanOrEqual(12);
  expect(texts.reduce((sum, { length }) => sum + length, 0)).toBeLessThan(350_000);
});
