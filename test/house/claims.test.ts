/** README claims nothing that docs/benchmarks.md and docs/reliability.md do not have, to the letter; and commands in docs exist. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ROOT } from './sources.ts';

const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
const README = read('README.md');
const BENCHMARKS = read('docs/benchmarks.md');
const RELIABILITY = read('docs/reliability.md');
const DIFFERENCES = section(README, 'Different from kube-proxy, and by how much');

function section(text: string, heading: string): string {
  const [, after = ''] = text.split(`\n## ${heading}\n`);
  return after.split('\n## ')[0] ?? '';
}

function cellsOf(line: string): readonly string[] {
  return line.slice(2, -2).split(' | ');
}

/** Cells of its tables that are measurements of time or memory. */
function values(text: string): readonly string[] {
  return text
    .split('\n')
    .filter((line) => line.startsWith('| ') && !line.includes(' after | '))
    .flatMap((line) => cellsOf(line).slice(1))
    .filter((cell) => /\d (?:s|ms|µs|MB)/.test(cell));
}

interface Loss {
  readonly mode: string;
  readonly what: string;
  readonly lost: readonly string[];
}

/** Rows of README's table about a flush: `nftables: over after | 7 s | 96 s, and not over`. */
function losses(text: string): readonly Loss[] {
  const [, table = ''] = text.split('| another program flushes the rules |');
  return table
    .split('\n')
    .slice(2)
    .filter((line) => line.startsWith('| '))
    .map((line) => {
      const [name = '', ...lost] = cellsOf(line);
      const [mode = '', what = ''] = name.split(': ');
      return { mode, what, lost };
    });
}

describe('numbers in README', () => {
  const claims = values(DIFFERENCES);

  test('there are some', () => expect(claims.length).toBeGreaterThan(20));

  test.each(claims)('%s is in docs/benchmarks.md', (claim) => {
    expect(BENCHMARKS).toContain(claim.replace(/^[\d,]+ services: /, ''));
  });

  test("the table beside kube-proxy has each row of docs/benchmarks.md's", () => {
    const rows = (text: string): readonly string[] =>
      text.split('\n').filter((line) => /^\| (nft|ipt)/.test(line));
    const ours = rows(DIFFERENCES.split('**Cost follows change.**')[0] ?? '').map((row) =>
      row.replace(': ', ' | '),
    );
    expect(ours).toEqual(rows(section(BENCHMARKS, 'Beside kube-proxy, with a real API server')));
  });
});

describe('losses in README', () => {
  const claims = losses(DIFFERENCES);
  const COLUMNS = ['held connections broken', 'new connections failed', 'delayed', 'over after'];

  test('there are some', () => expect(claims.length).toBeGreaterThan(3));

  test.each(claims)('$mode: $what', ({ mode, what, lost }) => {
    const found = ['Junction', 'kube-proxy'].map((proxy) => {
      const start = `| ${mode} | flush by another program | ${proxy} | `;
      const row = RELIABILITY.split('\n').find((line) => line.startsWith(start)) ?? '';
      return cellsOf(`| ${row.slice(start.length)}`)[COLUMNS.indexOf(what)];
    });
    expect(lost).toEqual(found);
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
