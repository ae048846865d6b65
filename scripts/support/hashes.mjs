/** Whether what was made from files is still up to date: their names, sizes and times, or their content, as one hash. */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './paths.mjs';

const SOURCES = [
  'src',
  'lab',
  'bench',
  'page',
  'scripts/build.mjs',
  'scripts/ship/source.mjs',
  'scripts/support/buildPage.mjs',
  'scripts/support/oneByte.mjs',
  'scripts/support/sourceLines.mjs',
  'package-lock.json',
  'tsconfig.json',
];

export function sourceHash() {
  const hash = createHash('sha256');
  for (const path of SOURCES) {
    for (const file of filesOf(path)) {
      const { size, mtimeMs } = statSync(join(ROOT, file));
      hash.update(`${file} ${size} ${mtimeMs}\n`);
    }
  }
  return hash.digest('hex');
}

/** Which packages are to be installed, for which Node and machine. */
export function packagesHash() {
  const hash = createHash('sha256').update(readFileSync(join(ROOT, 'package-lock.json')));
  return hash.update(`${process.platform} ${process.arch}`).digest('hex');
}

export function readStamp(path) {
  try {
    return readFileSync(join(ROOT, path), 'utf8').trim();
  } catch {
    return undefined;
  }
}

function filesOf(path) {
  const stats = statSync(join(ROOT, path), { throwIfNoEntry: false });
  if (!stats) return [];
  if (!stats.isDirectory()) return [path];
  return readdirSync(join(ROOT, path))
    .sort()
    .flatMap((name) => filesOf(`${path}/${name}`));
}
