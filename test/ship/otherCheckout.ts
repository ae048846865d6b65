/** The files of this checkout in another folder, without the repository. */
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { ROOT } from './builtImage.ts';

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

/** With these an image can be built there; what npm would fetch again is taken along. */
export function copyPackages(folder: string): void {
  const fetched = readdirSync(join(ROOT, CACHE)).filter((name) => /^(node|runtime)-/.test(name));
  for (const path of [
    ...PACKAGES.map((name) => `node_modules/${name}`),
    ...fetched.map((name) => join(CACHE, name)),
  ])
    cpSync(join(ROOT, path), join(folder, path), { recursive: true, verbatimSymlinks: true });
}
