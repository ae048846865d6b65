/** The image of this checkout, built once for all tests. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../support/checkout.ts';

export const SCRIPT = join(ROOT, 'scripts/image.mjs');
const ARCHITECTURE = process.arch === 'x64' ? 'amd64' : 'arm64';
/** What decides about the image's bytes. */
const SOURCES = [
  'src',
  'page',
  'scripts',
  'deploy/image',
  'deploy/runtime',
  'package.json',
  'package-lock.json',
];
const CACHE = join(ROOT, 'node_modules/.cache/junction-ship');
/** Test files that need the image begin together; one of them builds it, into a folder that gets its name at the end. */
const BUILD = `[ -d "$1" ] || { rm -rf ${CACHE}/test-image-*; "$2" "$3" --allow-dirty --output "$1.new"; mv "$1.new" "$1"; }`;
/** For hooks that may have to build it, or to wait for another that does: half a minute on a quiet machine. */
export const BUILD_LIMIT_MS = 900_000;

export interface BuiltImage {
  /** `junction-0.2.0-linux-amd64`, with the folder before it. */
  readonly base: string;
  readonly version: string;
  readonly commit: string;
  readonly epoch: string;
}

export function builtImage(): BuiltImage {
  const { version: number } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    readonly version: string;
  };
  const dirty = git('status', '--porcelain') === '' ? '' : '-dirty';
  const commit = git('rev-parse', 'HEAD') + dirty;
  const version = number + dirty;
  const folder = join(CACHE, `test-image-${sourceHash(commit)}`);
  mkdirSync(CACHE, { recursive: true });
  const build = ['sh', '-ec', BUILD, 'sh', folder, process.execPath, SCRIPT];
  execFileSync('flock', [join(CACHE, '.test-image-lock'), ...build], { cwd: ROOT, stdio: 'pipe' });
  const base = join(folder, `junction-${version}-linux-${ARCHITECTURE}`);
  return { base, version, commit, epoch: git('log', '-1', '--format=%ct') };
}

function git(...args: readonly string[]): string {
  return execFileSync('git', args, { cwd: ROOT, encoding: 'utf8' }).trim();
}

function sourceHash(commit: string): string {
  const hash = createHash('sha256').update(commit);
  const names = git('ls-files', '--cached', '--others', '--exclude-standard', '--', ...SOURCES);
  for (const file of names.split('\n').filter((each) => existsSync(join(ROOT, each)))) {
    hash.update(`${file}\n`).update(readFileSync(join(ROOT, file)));
  }
  return hash.digest('hex').slice(0, 16);
}

export interface Manifest {
  readonly config: { readonly digest: string };
  readonly layers: readonly { readonly digest: string; readonly size: number }[];
  readonly annotations: Readonly<Record<string, string>>;
}

export function manifestOf(base: string): Manifest {
  const digest = readFileSync(`${base}.digest`, 'utf8').trim();
  return readBlob(base, digest) as Manifest;
}

export function readBlob(base: string, digest: string): unknown {
  return JSON.parse(readFileSync(join(`${base}.oci/blobs`, digest.replace(':', '/')), 'utf8')) as unknown;
}

/** Every file and folder of an unpacked image, sorted. */
export function pathsOf(rootfs: string): readonly string[] {
  return readdirSync(rootfs, { recursive: true, encoding: 'utf8' }).sort();
}
