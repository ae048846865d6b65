/** The page's files, as the build made them. They are few and small, and stay in memory once one was asked for. */
import { readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export interface PageFile {
  readonly type: string;
  /** Its name changes with its contents. */
  readonly isForever: boolean;
  readonly bytes: Uint8Array;
}

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/** The program is in dist/ or in a folder there; without a build it is in src/ui/. */
const PLACES = ['./page/', '../page/', '../../dist/page/'];

/** By path: `/index.html`. Throws where there was no build. */
export function readPageFiles(): ReadonlyMap<string, PageFile> {
  const { folder, names } = findFolder();
  return new Map(
    names.flatMap((name): [string, PageFile][] => {
      const type = TYPES[extname(name)];
      if (type === undefined) return [];
      const isForever = /-[A-Z0-9]{8}\.\w+$/.test(name);
      return [[`/${name}`, { type, isForever, bytes: readFileSync(join(folder, name)) }]];
    }),
  );
}

function findFolder(): { readonly folder: string; readonly names: readonly string[] } {
  for (const place of PLACES) {
    const folder = fileURLToPath(new URL(place, import.meta.url));
    try {
      return { folder, names: readdirSync(folder) };
    } catch {
      // Not here.
    }
  }
  throw new Error('the files of the page are not there: npm run build makes them');
}
