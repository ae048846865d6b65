/**
 * Debian packages that the tests unpack and do not install: Debian starts the service of an installed one, at once and
 * after every boot, and here only its programs are wanted. Prometheus is 19 MB to fetch; installed, it would bring eleven
 * more packages.
 */
import { mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { moveInto, withScratch } from '../ship/scratch.mjs';
import { ROOT } from './paths.mjs';
import { runQuietly } from './run.mjs';

const NAMES = new Set(['prometheus']);
const FOLDER = join(ROOT, 'node_modules/.cache/debian');

export function isUnpacked(name) {
  return NAMES.has(name);
}

/** Where its programs are, if it was unpacked. */
export function unpackedFolder(name) {
  return join(FOLDER, name, 'usr/bin');
}

/** Fetches it, checked by apt, and puts it into place as a whole. */
export async function unpack(name) {
  mkdirSync(FOLDER, { recursive: true });
  await withScratch(FOLDER, async (work) => {
    await runQuietly(['apt-get', 'download', '-q', name], { cwd: work });
    const [file] = readdirSync(work);
    await runQuietly(['dpkg-deb', '-x', join(work, file), join(work, 'root')]);
    moveInto(join(work, 'root'), join(FOLDER, name));
  });
}
