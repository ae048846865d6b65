/**
 * Which manifest files there are now, in the order in which they win, and which directories to watch for changes; and the
 * text of each file, or why there is none.
 */
import { isUtf8 } from 'node:buffer';
import { constants, type Stats } from 'node:fs';
import { access, lstat, readdir, readFile, realpath, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { errorCode, JunctionError } from '../../errors.ts';
import type { SourceProblem } from '../source.ts';

export interface FoundFile {
  /** As the operator wrote it, or below what they wrote. */
  readonly path: string;
  readonly size: number;
  /** Equal stamps: very likely the same content. */
  readonly stamp: string;
  readonly modifiedAt: number;
}

export interface Scan {
  readonly files: readonly FoundFile[];
  readonly problems: readonly SourceProblem[];
  /** Paths that may hold what they held; they cannot be read now. */
  readonly hidden: readonly string[];
  /** Real directory → the names in it that matter, or all. */
  readonly directories: ReadonlyMap<string, ReadonlySet<string> | 'all'>;
}

const MANIFEST = /\.(?:ya?ml|json)$/i;

export function isManifestName(name: string): boolean {
  return MANIFEST.test(name) && !name.startsWith('.');
}

export async function scan(roots: readonly string[]): Promise<Scan> {
  const scanner = new Scanner();
  for (const root of roots) await scanner.root(root);
  return scanner;
}

class Scanner implements Scan {
  readonly files: FoundFile[] = [];
  readonly problems: SourceProblem[] = [];
  readonly hidden: string[] = [];
  readonly directories = new Map<string, Set<string> | 'all'>();
  readonly #seen = new Set<string>();
  /** Files and directories that were found, whether or not they were seen before, and those that cannot be read. */
  #found = 0;

  async root(path: string): Promise<void> {
    // A root that is replaced, or comes back, shows in the directory above it.
    const above = resolve(path);
    const parent = await realpath(dirname(above)).catch(() => undefined);
    if (parent !== undefined) this.#watch(parent, basename(above));
    try {
      const stats = await stat(path);
      const before = this.#found;
      if (stats.isDirectory()) await this.#directory(path);
      else if (stats.isFile()) await this.#file(path, stats);
      else this.#report(path, 'is neither a file nor a directory');
      if (stats.isDirectory() && this.#found === before)
        this.#report(path, 'has no file whose name ends in .yaml, .yml or .json', 'warning');
    } catch (error) {
      this.#report(path, await explainRoot(path, error));
      if (!isGone(error)) this.hidden.push(path);
    }
  }

  async #directory(path: string): Promise<void> {
    const real = await realpath(path);
    if (this.#isSeen(real)) {
      this.#found += 1;
      return;
    }
    this.directories.set(real, 'all');
    const names = await readdir(path);
    for (const name of names.sort()) {
      if (!name.startsWith('.')) await this.#entry(join(path, name), name);
    }
  }

  async #entry(path: string, name: string): Promise<void> {
    try {
      const stats = await stat(path);
      if (stats.isDirectory()) await this.#directory(path);
      else if (stats.isFile() && isManifestName(name)) await this.#file(path, stats);
    } catch (error) {
      if (isManifestName(name) && name.includes('\ufffd')) {
        this.#report(path, 'has a name that is not in UTF-8; rename it');
        return;
      }
      const isBrokenLink = isManifestName(name) && (await isLink(path));
      // What went away since the directory was listed is simply not there.
      if (isGone(error) && !isBrokenLink) return;
      this.#found += 1;
      this.#report(path, isBrokenLink ? explainLink(error) : explain(error));
      if (!isGone(error)) this.hidden.push(path);
    }
  }

  #report(where: string, message: string, severity: SourceProblem['severity'] = 'error'): void {
    this.problems.push({ severity, where, message });
  }

  async #file(path: string, { dev, ino, size, mtimeMs, ctimeMs }: Stats): Promise<void> {
    const real = await realpath(path);
    this.#found += 1;
    if (this.#isSeen(real)) return;
    this.#watch(dirname(real), basename(real));
    const stamp = [dev, ino, size, mtimeMs, ctimeMs].join(' ');
    this.files.push({ path, size, stamp, modifiedAt: mtimeMs });
  }

  #watch(directory: string, name: string): void {
    const names = this.directories.get(directory);
    if (names === undefined) this.directories.set(directory, new Set([name]));
    else if (names !== 'all') names.add(name);
  }

  /** A file that two paths lead to is one file. */
  #isSeen(real: string): boolean {
    if (this.#seen.has(real)) return true;
    this.#seen.add(real);
    return false;
  }
}

/** Throws `MANIFESTS_UNREADABLE`, before anything is done, where a path cannot be read. */
export async function checkRoots(paths: readonly string[]): Promise<void> {
  const problems: string[] = [];
  for (const path of paths) {
    const problem = await rootProblem(path);
    if (problem !== undefined) problems.push(`manifests: ${path} ${problem}`);
  }
  if (problems.length > 0) throw new JunctionError('MANIFESTS_UNREADABLE', problems.join('; '));
}

async function rootProblem(path: string): Promise<string | undefined> {
  if (path === '-')
    return 'is standard input, which cannot be followed (junction plan reads it): name a file or a directory';
  try {
    const stats = await stat(path);
    if (!stats.isDirectory() && !stats.isFile()) return 'is neither a file nor a directory';
    await access(path, constants.R_OK);
    return undefined;
  } catch (error) {
    return explainRoot(path, error);
  }
}

const EXPLANATIONS: Readonly<Record<string, string>> = {
  ENOENT: 'does not exist',
  ENOTDIR: 'does not exist',
  ELOOP: 'is a link that leads to itself',
};

export function explain(error: unknown): string {
  const code = errorCode(error) ?? '';
  if (code === 'EACCES')
    return `may not be read by user ${process.geteuid?.() ?? 'unknown'} (permission denied)`;
  return EXPLANATIONS[code] ?? `cannot be read: ${code || String(error)}`;
}

/** Of a path that was typed. */
async function explainRoot(path: string, error: unknown): Promise<string> {
  if (isGone(error) && path.startsWith('~'))
    return 'does not exist; a shell replaces ~ only at the beginning of a word: write the path in full';
  return (await isLink(path)) ? explainLink(error) : explain(error);
}

/** Of a link that leads nowhere: the link itself is there. */
function explainLink(error: unknown): string {
  return isGone(error) ? 'is a link to something that does not exist' : explain(error);
}

async function isLink(path: string): Promise<boolean> {
  return lstat(path).then(
    (stats) => stats.isSymbolicLink(),
    () => false,
  );
}

export function isGone(error: unknown): boolean {
  return ['ENOENT', 'ENOTDIR'].includes(errorCode(error) ?? '');
}

const MEBIBYTE = 1024 * 1024;
const MOST_BYTES = 64 * MEBIBYTE;

export type Content =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'unusable'; readonly problem: SourceProblem };

export async function readContent({ path, size }: FoundFile): Promise<Content | { readonly kind: 'gone' }> {
  if (size > MOST_BYTES) return tooLarge(path, size);
  try {
    return decode(path, await readFile(path));
  } catch (error) {
    return isGone(error) ? { kind: 'gone' } : unusable(path, explain(error));
  }
}

/** Standard input to its end, but no more of it than a file may have: somebody may pipe a device into it. */
export async function readStream(name: string, stream: AsyncIterable<Buffer>): Promise<Content> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of stream) {
    chunks.push(chunk);
    length += chunk.length;
    if (length > MOST_BYTES) break;
  }
  return decode(name, Buffer.concat(chunks));
}

function decode(where: string, bytes: Buffer): Content {
  if (bytes.length > MOST_BYTES) return tooLarge(where, bytes.length);
  const message = problemOf(bytes);
  if (message !== undefined) return unusable(where, message, 'a UTF-8 text with YAML or JSON');
  const text = new TextDecoder('utf-8').decode(bytes);
  if (text.includes('\r') && !text.includes('\n'))
    return unusable(where, 'ends its lines with CR alone', 'LF or CRLF');
  return { kind: 'text', text };
}

function problemOf(bytes: Buffer): string | undefined {
  const [first, second] = bytes;
  if ((first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff)) return 'is in UTF-16';
  if (bytes.includes(0)) return 'is not a text file';
  if (isUtf8(bytes)) return undefined;
  const sound = new TextDecoder('utf-8').decode(bytes).split('\ufffd', 1)[0] ?? '';
  return `is not in UTF-8 at line ${sound.split('\n').length}`;
}

function tooLarge(where: string, bytes: number): Content {
  const expected = `at most ${MOST_BYTES / MEBIBYTE} MiB; split it into several files`;
  return unusable(where, `is ${Math.ceil(bytes / MEBIBYTE)} MiB long`, expected);
}

function unusable(where: string, message: string, expected?: string): Content {
  const problem = { where, message, ...(expected !== undefined && { expected }) };
  return { kind: 'unusable', problem: { severity: 'error', ...problem } };
}
