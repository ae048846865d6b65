/** Whether links on pages lead to files and headings that are there, and whether files that a page names exist. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { ROOT } from './paths.mjs';

const FENCED = /^ *```.*?^ *```/gms;
const LINK = /\]\(([^)\s]+)\)/g;
/** One name, without stars and dots that stand for others. */
const FILE = /`((?:src|test|docs|scripts|deploy|examples|bench|bin)\/[\w./-]+)`/g;

/** Not the changelog: it says what was. */
function pages() {
  const docs = readdirSync(join(ROOT, 'docs'), { recursive: true }).map((path) => join('docs', path));
  return [...readdirSync(ROOT), ...docs].filter((path) => path.endsWith('.md') && path !== 'CHANGELOG.md');
}

/** As GitHub names headings; a second one of the same words has a number. */
function anchorsOf(text) {
  const anchors = new Set();
  for (const [, title] of text.replaceAll(FENCED, '').matchAll(/^#+ (.*)$/gm)) {
    const words = title.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase();
    const anchor = words.replaceAll(/[^\p{L}\p{N}_\- ]/gu, '').replaceAll(' ', '-');
    let count = 0;
    let unique = anchor;
    while (anchors.has(unique)) unique = `${anchor}-${++count}`;
    anchors.add(unique);
  }
  return anchors;
}

export function brokenLinks() {
  const texts = new Map(pages().map((path) => [path, readFileSync(join(ROOT, path), 'utf8')]));
  const anchors = new Map([...texts].map(([path, text]) => [path, anchorsOf(text)]));
  return [...texts].flatMap(([path, text]) => {
    const isBroken = (link) => {
      if (/^https?:/.test(link)) return false;
      const [file, anchor] = link.split('#');
      const target = file === '' ? path : normalize(join(dirname(path), file));
      if (!existsSync(join(ROOT, target))) return true;
      return anchor !== undefined && anchors.get(target)?.has(anchor) === false;
    };
    const prose = text.replaceAll(FENCED, '').replaceAll(/`[^`\n]*`/g, '');
    const links = [...prose.matchAll(LINK)].map(([, link]) => link).filter(isBroken);
    const files = [...text.matchAll(FILE)]
      .map(([, file]) => file)
      .filter((file) => !existsSync(join(ROOT, file)));
    return [...links, ...files].map((target) => `${path}: ${target} is not there`);
  });
}
