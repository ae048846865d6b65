/** README says nothing about speed that docs/benchmarks.md does not have, to the letter; and commands in docs exist. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ROOT } from './sources.ts';

const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
const README = read('README.md');
const BENCHMARKS = read('docs/benchmarks.md');

function section(text: string, heading: string): string {
  const [, after = ''] = text.split(`\n## ${heading}\n`);
  return after.split('\n## ')[0] ?? '';
}

/** Cells of its tables that are measurements. */
function values(text: string): readonly string[] {
  return text
    .split('\n')
    .filter((line) => line.startsWith('| '))
    .flatMap((line) => line.slice(2, -2).split(' | ').slice(1))
    .filter((cell) => /\d (?:s|ms|µs|MB)/.test(cell));
}

describe('numbers in README', () => {
  const claims = values(section(README, 'How fast'));

  test('there are some', () => expect(claims.length).toBeGreaterThan(20));

  test.each(claims)('%s is in docs/benchmarks.md', (claim) => {
    expect(BENCHMARKS).toContain(claim.replace(/^[\d,]+ services: /, ''));
  });

  test("the table beside kube-proxy has each row of docs/benchmarks.md's", () => {
    const rows = (text: string): readonly string[] =>
      text.split('\n').filter((line) => /^\| (nft|ipt)/.test(line));
    const ours = rows(section(README, 'How fast')).map((row) => row.replace(': ', ' | '));
    expect(ours).toEqual(rows(section(BENCHMARKS, 'Beside kube-proxy, with a real API server')));
  });
});

describe('benchmarks that the documentation names', () => {
  const files = ['README.md', ...readdirSync(join(ROOT, 'docs')).map((name) => `docs/${name}`)];
  const texts = files.filter((path) => path.endsWith('.md')).map(read);
  const named = texts.flatMap((text) =>
    [...text.matchAll(/npm run bench -- ([a-z]+)/g)].map(([, name = '']) => name),
  );
  const help = read('bench/main.ts');

  test.each([...new Set(named)])('npm run bench -- %s exists', (name) => {
    expect(help).toMatch(new RegExp(`^${name}:`, 'm'));
  });
});
