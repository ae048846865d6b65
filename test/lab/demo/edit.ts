import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';

/** Changes a file of the examples until the test is over. */
export function edit(folder: string, file: string, change: (text: string) => string): void {
  const path = join(folder, file);
  const before = readFileSync(path, 'utf8');
  const after = change(before);
  expect(after).not.toBe(before);
  writeFileSync(`${path}.new`, after);
  renameSync(`${path}.new`, path); // in one go: the demo would see an empty file otherwise
  onTestFinished(() => writeFileSync(path, before));
}
