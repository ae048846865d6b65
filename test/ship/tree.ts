import { createHash } from 'node:crypto';
import { lstatSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Every file and folder below, by its path: mode, time, and for files the hash of the content. */
export function treeOf(folder: string): Readonly<Record<string, string>> {
  const paths = readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort();
  return Object.fromEntries(
    paths.map((path) => {
      const { mode, mtimeMs } = lstatSync(join(folder, path));
      const isFile = (mode & 0o170000) === 0o100000;
      const content = isFile
        ? createHash('sha256')
            .update(readFileSync(join(folder, path)))
            .digest('hex')
        : 'folder';
      return [path, `${(mode & 0o7777).toString(8)} ${mtimeMs / 1000} ${content}`];
    }),
  );
}
