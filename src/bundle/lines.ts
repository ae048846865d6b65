/** Unpacks a bundle line by line, and no further than a bundle goes: the file comes from elsewhere. */
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { createGunzip } from 'node:zlib';
import { errorCode, JunctionError, messageOf } from '../errors.ts';
import { isMap } from '../text/cursor.ts';
import type { BundleLimits } from './format.ts';

export type RawLine = Readonly<Record<string, unknown>> & { readonly kind: string };

export function unreadable(path: string, problem: string): JunctionError {
  return new JunctionError('BUNDLE_UNREADABLE', `${path} ${problem}`);
}

const LINE_END = 0x0a;
const MEBIBYTE = 1024 * 1024;

/** Each line with its number; those of other kinds too. */
export async function* bundleLines(path: string, limits: BundleLimits): AsyncGenerator<RawLine> {
  let count = 0;
  for await (const text of textLines(path, limits)) {
    count += 1;
    if (count > limits.lines) throw unreadable(path, `has more than ${limits.lines} lines`);
    yield parseLine(path, text, count);
  }
}

function parseLine(path: string, text: string, number: number): RawLine {
  let line: unknown;
  try {
    line = JSON.parse(text);
  } catch {
    throw unreadable(path, `is no bundle: line ${number} is not JSON`);
  }
  if (!isMap(line) || typeof line['kind'] !== 'string')
    throw unreadable(path, `is no bundle: line ${number} has no kind`);
  return { ...line, kind: line['kind'] };
}

async function* textLines(path: string, limits: BundleLimits): AsyncGenerator<string> {
  await checkFile(path, limits);
  let total = 0;
  let parts: Buffer[] = [];
  let length = 0;
  const take = (chunk: Buffer): void => {
    length += chunk.length;
    if (length > limits.lineBytes)
      throw unreadable(path, `has a line of more than ${limits.lineBytes / MEBIBYTE} MiB`);
    parts.push(chunk);
  };
  for await (const chunk of unpacked(path)) {
    total += chunk.length;
    if (total > limits.bytes) throw unreadable(path, `unpacks to more than ${limits.bytes / MEBIBYTE} MiB`);
    let from = 0;
    for (let end = chunk.indexOf(LINE_END); end >= 0; end = chunk.indexOf(LINE_END, from)) {
      take(chunk.subarray(from, end));
      yield Buffer.concat(parts).toString('utf8');
      parts = [];
      length = 0;
      from = end + 1;
    }
    take(chunk.subarray(from));
  }
  if (length > 0) throw unreadable(path, 'is cut short');
}

async function checkFile(path: string, { fileBytes }: BundleLimits): Promise<void> {
  const stats = await stat(path).catch((error: unknown) => {
    throw unreadable(path, explain(error));
  });
  if (!stats.isFile()) throw unreadable(path, 'is not a file');
  if (stats.size > fileBytes) throw unreadable(path, `has more than ${fileBytes / MEBIBYTE} MiB`);
}

async function* unpacked(path: string): AsyncGenerator<Buffer> {
  const file = createReadStream(path);
  const gunzip = createGunzip();
  file.on('error', (error) => gunzip.destroy(error));
  try {
    yield* file.pipe(gunzip) as AsyncIterable<Buffer>;
  } catch (error) {
    throw error instanceof JunctionError ? error : unreadable(path, explain(error));
  } finally {
    file.destroy();
    gunzip.destroy();
  }
}

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'does not exist',
  EACCES: 'may not be read',
  Z_BUF_ERROR: 'is cut short',
  Z_DATA_ERROR: 'is no bundle, or damaged: it is not compressed as one',
};

function explain(error: unknown): string {
  return REASONS[errorCode(error) ?? ''] ?? `cannot be read: ${messageOf(error)}`;
}
