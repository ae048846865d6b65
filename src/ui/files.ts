/** The page's files, as the build made them. They are few and small, and stay in memory once one was asked for. */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export interface PageFile {
  readonly type: string;
  /** Its name changes with its contents. */
  readonly isForever: boolean;
  /** Changes with its contents. */
  readonly version: string;
  /** By content coding; the plain one is `identity`. */
  readonly bytes: Readonly<Record<Coding, Uint8Array>>;
}

export type Coding = 'identity' | 'br' | 'gzip';

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
  const files = new Map<string, PageFile>();
  for (const name of names) {
    const type = TYPES[extname(name)];
    if (type === undefined) continue;
    const read = (ending: string): Uint8Array => readFileSync(join(folder, name + ending));
    const identity = read('');
    files.set(`/${name}`, {
      type,
      version: createHash('sha256').update(identity).digest('base64url').slice(0, 16),
      isForever: /-[A-Z0-9]{8}\.\w+$/.test(name),
      bytes: { identity, br: read('.br'), gzip: read('.gz') },
    });
  }
  return files;
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
