// Writes lines and files of src by folder, at a commit and now, into docs/decisions/0035-modes-as-rooms.md. The lab and the demo
// are not counted.
//   node scripts/lines.mjs
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './support/paths.mjs';

const RECORD = join(ROOT, 'docs/decisions/0035-modes-as-rooms.md');
const TABLE = /(?<=<!-- lines since (?<before>\w+) -->\n)[\s\S]*(?=<!-- end of lines -->)/;
const ROOMS_OF_MODES = new Set(['modes', 'backends']);

function git(...args) {
  const { stdout, stderr, status } = spawnSync('git', args, { cwd: ROOT, encoding: 'utf8' });
  if (status !== 0) throw new Error(stderr);
  return stdout;
}

function filesAt(commit) {
  const paths = git('ls-tree', '-r', '--name-only', commit, 'src').split('\n');
  return paths.filter(isCounted).map((path) => ({ path, text: git('show', `${commit}:${path}`) }));
}

function filesNow() {
  const paths = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' }).map(
    (path) => `src/${path}`,
  );
  return paths.filter(isCounted).map((path) => ({ path, text: readFileSync(join(ROOT, path), 'utf8') }));
}

function isCounted(path) {
  return /^src\/(?!lab\/|demo\/).*\.ts$/.test(path);
}

/** A mode has a row of its own, and everything else one for each folder of src. */
function rowOf(path) {
  const [, room, mode, file] = path.split('/');
  if (mode === undefined) return '(files in src)';
  return ROOMS_OF_MODES.has(room) && file !== undefined ? `${room}/${mode}` : room;
}

function count(files) {
  const all = { lines: 0, files: 0 };
  const rows = new Map();
  for (const { path, text } of files) {
    const row = rows.get(rowOf(path)) ?? { lines: 0, files: 0 };
    rows.set(rowOf(path), row);
    for (const sum of [row, all]) {
      sum.lines += text.split('\n').length - 1;
      sum.files++;
    }
  }
  return { rows, all };
}

const number = (value) => value.toLocaleString('en-US');
const cells = (row) => (row ? `${number(row.lines)} | ${number(row.files)}` : '– | –');

const page = readFileSync(RECORD, 'utf8');
const old = count(filesAt(TABLE.exec(page).groups.before));
const now = count(filesNow());
const names = [...new Set([...old.rows.keys(), ...now.rows.keys()])].sort();
const less = (1 - now.all.lines / old.all.lines) * 100;
const table = [
  '| folder of `src` | lines before | files before | lines after | files after |',
  '| --- | --: | --: | --: | --: |',
  ...names.map((name) => `| ${name} | ${cells(old.rows.get(name))} | ${cells(now.rows.get(name))} |`),
  `| **all** | ${cells(old.all)} | ${cells(now.all)} |`,
  '',
  `${less.toFixed(1)} % fewer lines, without the lab and the demo.`,
  '',
].join('\n');
writeFileSync(RECORD, page.replace(TABLE, table));
console.log(table);
