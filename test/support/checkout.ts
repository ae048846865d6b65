/** The files of this checkout, as text. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '');

export interface TextFile {
  /** `src/model/ip.ts` */
  readonly path: string;
  readonly text: string;
}

export function filesUnder(folder: string, recursive = true): readonly TextFile[] {
  return readdirSync(join(ROOT, folder), { recursive, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.(?:tsx?|md)$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name))
    .map((path) => ({ path: path.slice(ROOT.length + 1), text: readFileSync(path, 'utf8') }));
}

/** What people read, without the changelog: it says what was. */
export const PAGES = [...filesUnder('.', false), ...filesUnder('docs')].filter(
  ({ path }) => path.endsWith('.md') && path !== 'CHANGELOG.md',
);
