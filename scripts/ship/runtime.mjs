/** The packages that are part of the program, installed by `npm ci` from a lock of their own. */
import { createHash } from 'node:crypto';
import { copyFile, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { npm } from '../support/npm.mjs';
import { ROOT } from '../support/paths.mjs';
import { runQuietly } from '../support/run.mjs';
import { step } from '../support/steps.mjs';
import { cached } from './cache.mjs';

const FOLDER = join(ROOT, 'deploy/runtime');
const FILES = ['package.json', 'package-lock.json', '.npmrc'];
const QUIET = ['--no-audit', '--no-fund', '--prefer-offline', '--loglevel=error'];

/** A folder with a node_modules, for Linux with glibc on `arch`. */
export async function runtimePackages(arch) {
  const hash = createHash('sha256');
  for (const file of FILES) hash.update(await readFile(join(FOLDER, file)));
  return cached(`runtime-${hash.digest('hex').slice(0, 16)}-${arch}`, async (folder) => {
    for (const file of FILES) await copyFile(join(FOLDER, file), join(folder, file));
    const system = ['--os=linux', `--cpu=${arch}`, '--libc=glibc'];
    await step(`Installing the packages that ship, for ${arch}`, () =>
      runQuietly(npm('ci', '--omit=dev', ...system, ...QUIET), { cwd: folder }),
    );
  });
}
