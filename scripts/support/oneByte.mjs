// V8 keeps a program's text as long as it runs, with two bytes for each letter if one of them is beyond Latin-1: a comment
// with "…" costs a megabyte. What a bundler leaves of these is in comments and regular expressions, and may be escaped.
import { readFile, writeFile } from 'node:fs/promises';

export async function escapeWideLetters(bundle) {
  const text = await readFile(bundle, 'utf8');
  const escaped = text.replaceAll(
    /[^\0-\xff]/g,
    (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  if (escaped !== text) await writeFile(bundle, escaped);
}
