/** Every page that people read, as text. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './sources.ts';

export interface Page {
  /** `docs/check.md` */
  readonly path: string;
  readonly text: string;
}

function pagesIn(folder: string, recursive: boolean): readonly Page[] {
  return readdirSync(join(ROOT, folder), { recursive, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.md'))
    .map((entry) => join(entry.parentPath, entry.name))
    .map((path) => ({ path: path.slice(ROOT.length + 1), text: readFileSync(path, 'utf8') }));
}

/** Without the changelog: it says what was. */
export const PAGES: readonly Page[] = [...pagesIn('.', false), ...pagesIn('docs', true)].filter(
  ({ path }) => path !== 'CHANGELOG.md',
);
