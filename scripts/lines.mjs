// Prints lines and files of src by folder at two commits, as a table for a decision record. The lab and the demo are not counted.
//   node scripts/lines.mjs 6b718af HEAD
import { spawnSync } from 'node:child_process';
import { ROOT } from './support/paths.mjs';

const [before, after = 'HEAD'] = process.argv.slice(2);

function git(...args) {
  const { stdout, stderr, status } = spawnSync('git', args, {
    cwd: ROOT,
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
  });
  if (status !== 0) throw new Error(stderr);
  return stdout;
}

/** `src/modes/iptables` has a row of its own, and everything else one for each folder of src. */
function rowOf(path) {
  const [, room, mode, file] = path.split('/');
  if (mode === undefined) return '(files in src)';
  return ['modes', 'backends'].includes(room) && file !== undefined ? `${room}/${mode}` : room;
}

function countedAt(commit) {
  const rows = new Map();
  const paths = git('ls-tree', '-r', '--name-only', commit, 'src').split('\n');
  for (const path of paths.filter((each) => /^src\/(?!lab\/|demo\/).*\.ts$/.test(each))) {
    const row = rows.get(rowOf(path)) ?? { lines: 0, files: 0 };
    const lines = git('show', `${commit}:${path}`).split('\n').length - 1;
    rows.set(rowOf(path), { lines: row.lines + lines, files: row.files + 1 });
  }
  return rows;
}

function total(rows) {
  const sum = { lines: 0, files: 0 };
  for (const { lines, files } of rows.values()) {
    sum.lines += lines;
    sum.files += files;
  }
  return sum;
}

const number = (value) => value.toLocaleString('en-US');
const cells = (row) => (row ? `${number(row.lines)} | ${number(row.files)}` : ' | ');
const old = countedAt(before);
const now = countedAt(after);
const names = [...new Set([...old.keys(), ...now.keys()])].sort();
console.log('| folder of src | lines before | files before | lines after | files after |');
console.log('| --- | --: | --: | --: | --: |');
for (const name of names) console.log(`| ${name} | ${cells(old.get(name))} | ${cells(now.get(name))} |`);
console.log(`| **all** | ${cells(total(old))} | ${cells(total(now))} |`);
const share = (1 - total(now).lines / total(old).lines) * 100;
console.log(`\n${share.toFixed(1)} % fewer lines.`);
