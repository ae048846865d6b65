/** Folders that are made once and then shared, by name. A name changes with what it is made of. */
import { existsSync, mkdirSync } from 'node:fs';
import { rename } from 'node:fs/promises';
import { join } from 'node:path';
import { ROOT } from '../support/paths.mjs';
import { withScratch } from './scratch.mjs';

const CACHE = join(ROOT, 'node_modules/.cache/junction-ship');

/** `make(folder)` fills an empty folder, which gets its name when it is whole. The first of two that make it wins. */
export async function cached(name, make) {
  const folder = join(CACHE, name);
  if (existsSync(folder)) return folder;
  mkdirSync(CACHE, { recursive: true });
  await withScratch(CACHE, async (scratch) => {
    const fresh = join(scratch, 'new');
    mkdirSync(fresh);
    await make(fresh);
    await rename(fresh, folder).catch((error) => {
      if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') throw error;
    });
  });
  return folder;
}
