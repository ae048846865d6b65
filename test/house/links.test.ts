/** Links lead to pages and headings that are there, and files that a page names exist. */
import { existsSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { expect, test } from 'vitest';
import { PAGES, type Page } from './pages.ts';
import { ROOT } from './sources.ts';

const FENCED = /^ *```.*?^ *```/gms;
const LINK = /\]\(([^)\s]+)\)/g;
/** One name, without stars and dots that stand for others. */
const NAMED = /`((?:src|test|docs|scripts|deploy|examples|bench|bin)\/[\w./-]+)`/g;

function prose({ text }: Page): string {
  return text.replaceAll(FENCED, '');
}

/** As GitHub names headings; a second one of the same words has a number. */
function anchorsOf(page: Page): ReadonlySet<string> {
  const anchors = new Set<string>();
  for (const [, title = ''] of prose(page).matchAll(/^#+ (.*)$/gm)) {
    const words = title.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase();
    const anchor = words.replaceAll(/[^\p{L}\p{N}_\- ]/gu, '').replaceAll(' ', '-');
    let count = 0;
    let unique = anchor;
    while (anchors.has(unique)) unique = `${anchor}-${++count}`;
    anchors.add(unique);
  }
  return anchors;
}

const ANCHORS = new Map(PAGES.map((page) => [page.path, anchorsOf(page)]));

function isBroken({ path }: Page, link: string): boolean {
  if (/^https?:/.test(link)) return false;
  const [file = '', anchor] = link.split('#');
  const target = file === '' ? path : normalize(join(dirname(path), file));
  if (!existsSync(join(ROOT, target))) return true;
  return anchor !== undefined && ANCHORS.get(target)?.has(anchor) === false;
}

function found(text: string, pattern: RegExp): readonly string[] {
  return [...text.matchAll(pattern)].map(([, what = '']) => what);
}

test('there are some', () => {
  expect(PAGES.flatMap((page) => found(prose(page), LINK)).length).toBeGreaterThan(80);
  expect(PAGES.flatMap((page) => found(page.text, NAMED)).length).toBeGreaterThan(50);
});

test.each(PAGES)('$path: its links', (page) => {
  const text = prose(page).replaceAll(/`[^`\n]*`/g, '');
  expect(found(text, LINK).filter((link) => isBroken(page, link))).toEqual([]);
});

test.each(PAGES)('$path: the files that it names', ({ text }) => {
  expect(found(text, NAMED).filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
});
