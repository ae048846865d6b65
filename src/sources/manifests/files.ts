/** Which manifest files there are, in the order in which they win, and what their text is. */
import { isUtf8 } from 'node:buffer';
import { constants, type Stats } from 'node:fs';
import { access, lstat, readdir, readFile, realpath, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { errorCode, JunctionError, messageOf } from '../../errors.ts';
import type { SourceProblem } from '../source.ts';

interface FoundFile {
  /** As the operator wrote it, or below what they wrote. */
  readonly path: string;
  /** Equal stamps: the same content. '' is equal to none. */
  readonly stamp: string;
}

export interface FoundFiles {
  readonly files: readonly FoundFile[];
  readonly problems: readonly SourceProblem[];
  /** Paths that cannot be read now; what they held may still be there. */
  readonly hidden: readonly string[];
}

/** Timestamps of some file systems are coarse: equal ones of a file that was written just now say nothing. */
const SETTLING_MS = 2000;

/** `onDirectory` is told of each directory where a change may matter, before it is read. */
export async function findFiles(
  roots: readonly string[],
  onDirectory: (path: string) => void = () => {},
): Promise<FoundFiles> {
  const files: FoundFile[] = [];
  const problems: SourceProblem[] = [];
  const hidden: string[] = [];
  /** Real paths: a file that two paths lead to is one file, and links may lead round in a circle. */
  const seen = new Set<string>();
  /** Whether there is a manifest, or might be. */
  const visit = async (path: string, isRoot: boolean): Promise<boolean> => {
    const isManifest = isRoot || /\.(?:ya?ml|json)$/i.test(path);
    try {
      const stats = await stat(path);
      const isFile = stats.isFile() && isManifest;
      if (isRoot && !isFile && !stats.isDirectory()) throw new Error('is neither a file nor a directory');
      if (!isFile && !stats.isDirectory()) return false;
      const real = await realpath(path);
      if (seen.has(real)) return true;
      seen.add(real);
      onDirectory(isFile ? dirname(real) : real);
      if (isFile) {
        await access(path, constants.R_OK);
        files.push({ path, stamp: stampOf(stats) });
        return true;
      }
      let hasManifest = false;
      for (const name of (await readdir(path)).sort())
        if (!name.startsWith('.') && (await visit(join(path, name), false))) hasManifest = true;
      return hasManifest;
    } catch (error) {
      // What went away since the directory was listed is simply not there; a link that leads nowhere is a mistake.
      if (isGone(error) && !isRoot && !(isManifest && (await isLink(path)))) return false;
      problems.push({ severity: 'error', where: path, message: await explain(path, error) });
      if (!isGone(error)) hidden.push(path);
      return true;
    }
  };
  for (const root of roots) {
    // A root that is replaced, or comes back, shows in the directory above it.
    onDirectory(dirname(root));
    const message = 'has no file whose name ends in .yaml, .yml or .json';
    if (!(await visit(root, true))) problems.push({ severity: 'warning', where: root, message });
  }
  return { files, problems, hidden };
}

function stampOf({ dev, ino, size, mtimeMs, ctimeMs }: Stats): string {
  return Date.now() - mtimeMs > SETTLING_MS ? [dev, ino, size, mtimeMs, ctimeMs].join(' ') : '';
}

/** Throws `MANIFESTS_UNREADABLE` where a path is not there, or cannot be read. */
export async function checkRoots(paths: readonly string[]): Promise<void> {
  const { problems } = await findFiles(paths);
  const bad = problems.filter(({ severity, where }) => severity === 'error' && paths.includes(where));
  if (bad.length === 0) return;
  const texts = bad.map(({ where, message }) => `manifests: ${where} ${message}`);
  throw new JunctionError('MANIFESTS_UNREADABLE', texts.join('; '));
}

async function explain(path: string, error: unknown): Promise<string> {
  const code = errorCode(error);
  if (code === undefined) return messageOf(error);
  if (code === 'ELOOP') return 'is a link that leads to itself';
  if (code === 'EACCES')
    return `may not be read by user ${process.geteuid?.() ?? 'unknown'} (permission denied)`;
  if (!isGone(error)) return `cannot be read: ${code}`;
  if (path === '-') return 'is standard input, which cannot be followed: name a file or a directory';
  if (path.startsWith('~'))
    return 'does not exist; a shell replaces ~ only at the beginning of a word: write the path in full';
  return (await isLink(path)) ? 'is a link to something that does not exist' : 'does not exist';
}

export function isGone(error: unknown): boolean {
  return ['ENOENT', 'ENOTDIR'].includes(errorCode(error) ?? '');
}

async function isLink(path: string): Promise<boolean> {
  return lstat(path).then(
    (stats) => stats.isSymbolicLink(),
    () => false,
  );
}

const MAX_MEBIBYTES = 64;
const MAX_BYTES = MAX_MEBIBYTES * 1024 * 1024;
const TOO_LONG = { message: `is longer than ${MAX_MEBIBYTES} MiB; split it into several files` };

/** What a file says, or why it cannot be read. */
export type Content = { readonly text: string } | { readonly message: string };

/** `undefined`: the file is not there any more. */
export async function readContent(path: string): Promise<Content | undefined> {
  try {
    return (await stat(path)).size > MAX_BYTES ? TOO_LONG : decode(await readFile(path));
  } catch (error) {
    return isGone(error) ? undefined : { message: await explain(path, error) };
  }
}

/** To its end, but no more of it than a file may have: somebody may pipe a device into it. */
export async function readStream(stream: AsyncIterable<Buffer>): Promise<Content> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of stream) {
    chunks.push(chunk);
    length += chunk.length;
    if (length > MAX_BYTES) return TOO_LONG;
  }
  return decode(Buffer.concat(chunks));
}

function decode(bytes: Buffer): Content {
  const isText = isUtf8(bytes) && !bytes.includes(0);
  return isText ? { text: new TextDecoder().decode(bytes) } : { message: 'is not a text in UTF-8' };
}
