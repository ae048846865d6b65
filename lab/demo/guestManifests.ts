/**
 * In a guest the manifests are the host's files, and the guest's kernel does not notice when the host changes them. So
 * they are copied, to the same path where they are a directory, and the copy follows them.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { findFiles } from '../../src/sources/manifests/files.ts';

const ORIGINALS = '/run/host-manifests';
const COPIES = '/run/manifests';
const INTERVAL_MS = 500;

/** Returns the path of the copy. Runs as root of the guest, and until the guest ends. */
export async function copyManifests(path: string): Promise<string> {
  const isDirectory = statSync(path, { throwIfNoEntry: false })?.isDirectory();
  if (isDirectory === undefined) return path; // whoever reads it says what is wrong
  const copier = isDirectory ? coverDirectory(path) : new Copier(path, COPIES);
  await copier.copyChanges();
  copier.repeat();
  return isDirectory ? path : join(COPIES, basename(path));
}

function coverDirectory(path: string): Copier {
  mkdirSync(ORIGINALS);
  execFileSync('mount', ['--bind', path, ORIGINALS]);
  execFileSync('mount', ['-t', 'tmpfs', 'tmpfs', path]);
  return new Copier(ORIGINALS, path);
}

class Copier {
  readonly #from: string;
  readonly #folder: string;
  /** What the copies were made of. */
  readonly #stamps = new Map<string, string>();

  constructor(from: string, folder: string) {
    this.#from = from;
    this.#folder = folder;
  }

  async copyChanges(): Promise<void> {
    const { files } = await findFiles([this.#from]);
    for (const { path, stamp } of files) {
      if (stamp !== '' && this.#stamps.get(path) === stamp) continue;
      this.#copy(path);
      this.#stamps.set(path, stamp);
    }
    const found = new Set(files.map(({ path }) => path));
    for (const path of this.#stamps.keys()) {
      if (found.has(path)) continue;
      rmSync(this.#copyOf(path), { force: true });
      this.#stamps.delete(path);
    }
  }

  /** A file that is being replaced just now is found by the next look. */
  repeat(): void {
    setTimeout(
      () =>
        void this.copyChanges().then(
          () => this.repeat(),
          () => this.repeat(),
        ),
      INTERVAL_MS,
    );
  }

  #copy(path: string): void {
    const copy = this.#copyOf(path);
    mkdirSync(dirname(copy), { recursive: true });
    writeFileSync(`${copy}.new`, readFileSync(path));
    renameSync(`${copy}.new`, copy); // in one go: Junction would read half a file otherwise
  }

  #copyOf(path: string): string {
    const name = path === this.#from ? basename(path) : relative(resolve(this.#from), resolve(path));
    return join(this.#folder, name);
  }
}
