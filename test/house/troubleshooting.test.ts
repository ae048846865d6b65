/** docs/troubleshooting.md: log messages, metrics and error codes that it names are the program's. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ERRORS } from '../../src/errors.ts';
import { filesUnder, ROOT } from './sources.ts';

const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
const PAGE = read('docs/troubleshooting.md');
const METRICS = read('docs/metrics.md');
/** Template strings as they are written, and literals without their escapes. */
const SOURCES = filesUnder('src')
  .map(({ text }) => text.replaceAll("\\'", "'"))
  .join('\n');
const QUOTED = [...PAGE.matchAll(/`([^`\n]+)`/g)].map(([, quoted = '']) => quoted);

/** A message is several words; commands begin with a small letter or a dot. */
const MESSAGES = QUOTED.filter((quoted) => /^(?:[A-Z]\w*|keep|kube-proxy runs) (?:\S+ ){2,}/.test(quoted));
const METRIC_NAMES = QUOTED.filter((quoted) => /^(?:junction|kubeproxy|nodejs)_[a-z_]+$/.test(quoted));
/** The column of that name: codes of findings, stable for programs. */
const FINDINGS = findingsOf(PAGE);
const CODES = QUOTED.filter((quoted) => /^[A-Z]+(?:_[A-Z]+)+$/.test(quoted));

function findingsOf(page: string): readonly string[] {
  let column = -1;
  return page.split('\n').flatMap((line) => {
    const cells = line.startsWith('|') ? line.split(' | ') : [];
    if (cells.length === 0) column = -1;
    else if (column < 0) column = cells.indexOf('finding');
    else return [...(cells[column] ?? '').matchAll(/`([\w-]+)`/g)].map(([, code = '']) => code);
    return [];
  });
}

describe('docs/troubleshooting.md', () => {
  test('names some of each', () => {
    expect(MESSAGES.length).toBeGreaterThan(25);
    expect(METRIC_NAMES.length).toBeGreaterThan(8);
    expect(CODES.length).toBeGreaterThan(4);
    expect(FINDINGS.length).toBeGreaterThan(35);
  });

  test.each([...new Set(MESSAGES)])('the program says: %s', (message) => {
    expect(SOURCES).toContain(message);
  });

  test.each([...new Set(METRIC_NAMES)])('metric %s', (name) => {
    expect(METRICS).toContain(`\`${name}\``);
  });

  test.each([...new Set(FINDINGS)])('finding %s', (code) => {
    expect(SOURCES).toMatch(new RegExp(`'${code}'|^ +${code}:`, 'm'));
  });

  test.each([...new Set(CODES)])('code %s', (code) => {
    expect(Object.keys(ERRORS)).toContain(code);
  });
});
