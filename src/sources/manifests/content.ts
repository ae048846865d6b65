/** A manifest file's text, or why there is none. */
import { readFile } from 'node:fs/promises';
import { explain, type FoundFile, isGone } from './scan.ts';

const MEBIBYTE = 1024 * 1024;
const MOST_BYTES = 64 * MEBIBYTE;

export type Content =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'unusable'; readonly message: string; readonly expected?: string }
  | { readonly kind: 'gone' };

export async function readContent({ path, size }: FoundFile): Promise<Content> {
  if (size > MOST_BYTES) return tooLarge(size);
  try {
    return decode(await readFile(path));
  } catch (error) {
    return isGone(error) ? { kind: 'gone' } : { kind: 'unusable', message: explain(error) };
  }
}

function decode(bytes: Buffer): Content {
  if (bytes.length > MOST_BYTES) return tooLarge(bytes.length);
  const expected = 'a UTF-8 text with YAML or JSON';
  if (bytes.includes(0)) return { kind: 'unusable', message: 'is not a text file', expected };
  try {
    return { kind: 'text', text: new TextDecoder('utf-8', { fatal: true }).decode(bytes) };
  } catch {
    return { kind: 'unusable', message: 'is not in UTF-8', expected };
  }
}

function tooLarge(bytes: number): Content {
  const message = `is ${Math.ceil(bytes / MEBIBYTE)} MiB long`;
  return {
    kind: 'unusable',
    message,
    expected: `at most ${MOST_BYTES / MEBIBYTE} MiB; split it into several files`,
  };
}
