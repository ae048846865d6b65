/** A manifest file's text, or why there is none. */
import { isUtf8 } from 'node:buffer';
import { readFile } from 'node:fs/promises';
import type { SourceProblem } from '../source.ts';
import { explain, type FoundFile, isGone } from './scan.ts';

const MEBIBYTE = 1024 * 1024;
const MOST_BYTES = 64 * MEBIBYTE;

interface Text {
  readonly kind: 'text';
  readonly text: string;
}

interface Unusable {
  readonly kind: 'unusable';
  readonly message: string;
  readonly expected?: string;
}

export type Content = Text | Unusable | { readonly kind: 'gone' };

export async function readContent({ path, size }: FoundFile): Promise<Content> {
  if (size > MOST_BYTES) return tooLarge(size);
  try {
    return decode(await readFile(path));
  } catch (error) {
    return isGone(error) ? { kind: 'gone' } : { kind: 'unusable', message: explain(error) };
  }
}

/** Standard input to its end, but no more of it than a file may have: somebody may pipe a device into it. */
export async function readStream(stream: AsyncIterable<Buffer>): Promise<Text | Unusable> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of stream) {
    chunks.push(chunk);
    length += chunk.length;
    if (length > MOST_BYTES) break;
  }
  return decode(Buffer.concat(chunks));
}

function decode(bytes: Buffer): Text | Unusable {
  if (bytes.length > MOST_BYTES) return tooLarge(bytes.length);
  const message = problemOf(bytes);
  if (message !== undefined) return { kind: 'unusable', message, expected: 'a UTF-8 text with YAML or JSON' };
  const text = new TextDecoder('utf-8').decode(bytes);
  if (text.includes('\r') && !text.includes('\n'))
    return { kind: 'unusable', message: 'ends its lines with CR alone', expected: 'LF or CRLF' };
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

function tooLarge(bytes: number): Unusable {
  const message = `is ${Math.ceil(bytes / MEBIBYTE)} MiB long`;
  return {
    kind: 'unusable',
    message,
    expected: `at most ${MOST_BYTES / MEBIBYTE} MiB; split it into several files`,
  };
}

export function contentProblem(where: string, { message, expected }: Unusable): SourceProblem {
  return { severity: 'error', where, message, ...(expected !== undefined && { expected }) };
}
