/** Files for the command line to read, until the tests that need them have run. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';

/** Answers where it is. */
export type WriteFile = (name: string, text: string) => string;

export function useFiles(): WriteFile {
  const folder = mkdtempSync(join(tmpdir(), 'junction-cli-'));
  afterAll(() => rmSync(folder, { recursive: true }));
  return (name, text) => {
    const path = join(folder, name);
    writeFileSync(path, text);
    return path;
  };
}
