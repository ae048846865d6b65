/**
 * Every fenced block on a page is input, code, a drawing, or output that something makes or checks. Blocks with a language are
 * the first three. A block without one is output, and the line above it says where it comes from.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { SAMPLES } from '../../scripts/samples/samples.ts';
import { PAGES, type Page } from './pages.ts';
import { ROOT } from './sources.ts';

const NO_OUTPUT: ReadonlySet<string> = new Set(['sh', 'yaml', 'json', 'promql', 'ts', 'text', 'mermaid']);
/** Pages whose tables are measurements too. */
const MEASURED_PAGES = ['docs/benchmarks.md', 'docs/reliability.md', 'docs/conntrack.md'];
const MEASUREMENT = /\d (?:ms|µs|s|MB|MiB)\b|\d of \d/;

interface Block {
  /** Of its first line. */
  readonly line: number;
  readonly above: string;
  readonly kind: string;
}

function blocksOf({ text }: Page): readonly Block[] {
  const lines = text.split('\n');
  const blocks: Block[] = [];
  let isInside = false;
  for (const [index, line] of lines.entries()) {
    const [, kind] = /^ *```(\w*)$/.exec(line) ?? [];
    if (kind === undefined) continue;
    if (!isInside) blocks.push({ line: index + 1, above: lines[index - 1] ?? '', kind });
    isInside = !isInside;
  }
  return blocks;
}

function tablesOf({ text }: Page): readonly Block[] {
  const lines = text.split('\n');
  const isRow = (index: number): boolean => lines[index]?.startsWith('|') === true;
  return lines.flatMap((_, index) => {
    if (!isRow(index) || isRow(index - 1)) return [];
    let end = index;
    while (isRow(end)) end++;
    const kind = MEASUREMENT.test(lines.slice(index, end).join('\n')) ? 'measured' : '';
    return [{ line: index + 1, above: lines[index - 1] ?? '', kind }];
  });
}

function isAccountedFor(above: string): boolean {
  if (above === '<!-- rules -->') return true; // docs.test.ts
  const [, sample] = /^<!-- sample: ([\w-]+) -->$/.exec(above) ?? [];
  if (sample !== undefined) return SAMPLES[sample] !== undefined;
  const [, checker] = /^<!-- checked: (\S+) -->$/.exec(above) ?? [];
  if (checker !== undefined) return existsSync(join(ROOT, checker));
  return isMeasured(above);
}

/** With the day and the command, or how else it was made. */
function isMeasured(above: string): boolean {
  return /^<!-- measured: 20\d\d-\d\d-\d\d, \S.* -->$/.test(above);
}

test('there are some', () => {
  expect(PAGES.flatMap(blocksOf).length).toBeGreaterThan(60);
  expect(MEASURED_PAGES.filter((path) => !PAGES.some((page) => page.path === path))).toEqual([]);
});

test.each(PAGES)('$path: its blocks', (page) => {
  const unknown = blocksOf(page).filter(
    ({ kind, above }) => !NO_OUTPUT.has(kind) && !(kind === '' && isAccountedFor(above)),
  );
  expect(unknown).toEqual([]);
});

test.each(PAGES.filter(({ path }) => MEASURED_PAGES.includes(path)))('$path: its tables', (page) => {
  expect(tablesOf(page).filter(({ kind, above }) => kind === 'measured' && !isMeasured(above))).toEqual([]);
});
