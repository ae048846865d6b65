import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { flagHelp } from '../../src/config/help.ts';
import { FLAGS } from '../../src/config/table.ts';
import { referencePage } from '../../scripts/samples/configurationPage.ts';
import { CONFIG_FIELDS } from '../../src/config/table.ts';

const PAGE = new URL('../../docs/reference/configuration.md', import.meta.url);

test.each([40, 80, 100, 200])('the help fits a terminal of %d columns', (width) => {
  // A flag with its choices is not broken.
  const lines = flagHelp(width)
    .split('\n')
    .filter((line) => !/^ +(-\w, )?--\S+( \S+)?$/.test(line));
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(Math.max(width, 72));
});

test('the help has every flag that is not deprecated, once', () => {
  const help = flagHelp(80);
  for (const { name, deprecated } of FLAGS) {
    const found = help.split('\n').filter((line) => new RegExp(`^ +(-\\w, )?--${name}(?![\\w-])`).test(line));
    expect([name, found.length]).toEqual([name, deprecated === undefined ? 1 : 0]);
  }
});

test('the help says defaults', () => {
  const help = flagHelp(100);
  expect(help).toMatch(/--iptables-min-sync-period DURATION\s+least time between two syncs \(default 1s\)/);
  expect(help).toMatch(/--firewalld .*\n.*\(default true\)/);
  expect(help).toMatch(/^ {2}-v, --v LEVEL /m);
  expect(help).toContain('--version[=raw]');
});

test('the reference page has every field and every flag', () => {
  const page = referencePage();
  for (const { path } of CONFIG_FIELDS) expect(page).toContain(`\n| \`${path}\` |`);
  for (const { name } of FLAGS) expect(page).toMatch(new RegExp(`\\x60(-\\w, )?--${name}[\\x60 [\\\\]`));
});

test('the reference page is up to date; if not, run: node scripts/docs.mjs', () => {
  expect(readFileSync(PAGE, 'utf8')).toBe(referencePage());
});
