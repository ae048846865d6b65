/** The files of this checkout in another folder, without the repository. */
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { ROOT } from '../support/checkout.ts';

/** What an image is built from. */
const FILES = [
  'scripts',
  'src',
  'page',
  'deploy/image',
  'deploy/runtime',
  'package.json',
  'package-lock.json',
  'tsconfig.json',
  'LICENSE',
  '.npmrc',
];
/** What set-up has installed, and what the build asks of it. */
const PACKAGES = ['.junction-stamp', '.package-lock.json', 'esbuild', '@esbuild', 'preact'];
const CACHE = 'node_modules/.cache/junction-ship';

export function copyCheckout(folder: string): void {
  const listed = execFileSync(
    'git',
    ['ls-files', '-z', '--cached', '--others', '--exclude-standard', ...FILES],
    {
      cwd: ROOT,
      encoding: 'utf8',
    },
  );
  for (const path of listed.split('\0').filter((each) => each !== '' && existsSync(join(ROOT, each)))) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    cpSync(join(ROOT, path), join(folder, path));
  }
}

/** The packages that the build loads. */
export function copyPackages(folder: string): void {
  for (const name of PACKAGES) copy(folder, `node_modules/${name}`);
}

/** What npm would fetch again. */
export function copyFetched(folder: string): void {
  const names = readdirSync(join(ROOT, CACHE)).filter((name) => /^(node|runtime)-/.test(name));
  for (const name of names.filter((each) => each.endsWith(`-${process.arch}`)))
    copy(folder, join(CACHE, name));
}

function copy(folder: string, path: string): void {
  cpSync(join(ROOT, path), join(folder, path), { recursive: true, verbatimSymlinks: true });
}
