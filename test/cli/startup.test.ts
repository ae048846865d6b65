/** What a question to the running proxy loads before it is asked. */
import { readFileSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';

const DIST = new URL('../../dist', import.meta.url).pathname;

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

function part(name: string): string {
  const file = readdirSync(join(DIST, 'junction')).find((each) =>
    new RegExp(`^${name}-\\w+\\.js$`).test(each),
  );
  if (file === undefined) throw new Error(`no part ${name}`);
  return join(DIST, 'junction', file);
}

test.each([
  'explainCommand',
  'servicesCommand',
  'endpointsCommand',
  'statusCommand',
  'watchCommand',
  'completeCommand',
  'liveAnswers',
])('%s needs nothing but Node', (name) => {
  const loaded = new Set([...loadedWith(join(DIST, 'junction.js')), ...loadedWith(part(name))]);
  expect(loaded.size).toBeGreaterThan(3);
  const packages = [...loaded].filter((each) => !each.startsWith('/') && !each.startsWith('node:'));
  expect(packages).toEqual([]);
  // Programs are started and threads run where the proxy is, not here.
  for (const heavy of ['node:child_process', 'node:worker_threads', 'node:module'])
    expect(loaded).not.toContain(heavy);
});

test('their code is a small part of it', () => {
  const files = [...loadedWith(join(DIST, 'junction.js')), ...loadedWith(part('explainCommand'))];
  const bytes = [...new Set(files)]
    .filter((each) => each.startsWith('/'))
    .reduce((sum, each) => sum + readFileSync(each).length, 0);
  expect(bytes).toBeLessThan(200_000);
});
