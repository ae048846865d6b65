/** Node 20 runs no TypeScript, so a script that must run in another process is bundled first. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';

const ROOT = join(import.meta.dirname, '../../..');

/** Answers the path of a JavaScript file that does what the source, whose imports start at the project, does. */
export async function bundle(name: string, source: string): Promise<string> {
  const directory = join(ROOT, 'node_modules/.cache/junction-tests'); // inside, so that koffi is found
  mkdirSync(directory, { recursive: true });
  const outfile = join(directory, `${name}-${process.pid}.mjs`);
  await build({
    stdin: { contents: source, resolveDir: ROOT, loader: 'ts' },
    bundle: true,
    platform: 'node',
    format: 'esm',
    external: ['koffi'],
    outfile,
    logLevel: 'error',
  });
  return outfile;
}
