/** The image of this checkout, built once for all tests. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));
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
const PREFIX = 'test-image-';
const LOCK_POLL_MS = 200;
/** For hooks that may have to build it, or to wait for another that does: half a minute on a quiet machine. */
export const BUILD_LIMIT_MS = 900_000;

export interface BuiltImage {
  /** `junction-0.2.0-linux-amd64`, with the folder before it. */
  readonly base: string;
  readonly version: string;
  readonly commit: string;
  readonly epoch: string;
}

interface Cache {
  readonly cached: (name: string, make: (folder: string) => void) => Promise<string>;
}

/** Of a release that was built from this very commit, or one for the tests. */
export async function builtImage(): Promise<BuiltImage> {
  const { version: number } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    readonly version: string;
  };
  const isDirty = git('status', '--porcelain') !== '';
  const commit = git('rev-parse', 'HEAD') + (isDirty ? '-dirty' : '');
  const version = isDirty ? `${number}-dirty` : number;
  const epoch = git('log', '-1', '--format=%ct');
  const name = `junction-${version}-linux-${ARCHITECTURE}`;
  const released = join(ROOT, 'release', name);
  if (!isDirty && revisionOf(released) === commit) return { base: released, version, commit, epoch };
  const folder = await build(`${PREFIX}${sourceHash(commit)}`);
  return { base: join(folder, name), version, commit, epoch };
}

async function build(name: string): Promise<string> {
  const { cached } = (await import(new URL('../../scripts/ship/cache.mjs', import.meta.url).href)) as Cache;
  if (existsSync(join(CACHE, name))) return join(CACHE, name);
  const unlock = await lock();
  try {
    return await buildIn(name, cached);
  } finally {
    unlock();
  }
}

/** One at a time: all files of tests that need the image begin at once, and building it takes both processors. */
async function lock(): Promise<() => void> {
  mkdirSync(CACHE, { recursive: true });
  const path = join(CACHE, '.test-image-lock');
  for (;;) {
    try {
      writeFileSync(path, String(process.pid), { flag: 'wx' });
      return () => rmSync(path, { force: true });
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
    }
    const owner = readFileIfAny(path);
    if (owner !== undefined && owner !== '' && !existsSync(`/proc/${owner}`)) rmSync(path, { force: true });
    await sleep(LOCK_POLL_MS);
  }
}

function readFileIfAny(path: string): string | undefined {
  return existsSync(path) ? readFileSync(path, 'utf8') : undefined;
}

async function buildIn(name: string, cached: Cache['cached']): Promise<string> {
  const folder = await cached(name, (fresh) => {
    execFileSync(process.execPath, [SCRIPT, '--allow-dirty', '--output', fresh], {
      cwd: ROOT,
      stdio: 'pipe',
    });
  });
  const others = readdirSync(CACHE).filter((each) => each.startsWith(PREFIX) && each !== name);
  for (const other of others) rmSync(join(CACHE, other), { recursive: true, force: true });
  return folder;
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

function revisionOf(base: string): string | undefined {
  if (!existsSync(`${base}.oci.tar`) || !existsSync(`${base}.oci`)) return undefined;
  return manifestOf(base).annotations['org.opencontainers.image.revision'];
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
