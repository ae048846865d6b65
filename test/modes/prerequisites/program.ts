/** The whole program as it is in the sources now, for another process: in a namespace, or in a guest. */
import { join } from 'node:path';
import { build } from 'esbuild';

const ROOT = join(import.meta.dirname, '../../..');

/** Answers the path of the script; whoever asked removes it. */
export async function buildProgram(name: string): Promise<string> {
  const outfile = join(ROOT, 'node_modules/.cache/junction-tests', `${name}-${process.pid}.mjs`);
  await build({
    absWorkingDir: ROOT,
    entryPoints: ['src/cli/bin.ts'],
    bundle: true,
    platform: 'node',
    format: 'esm',
    packages: 'external',
    outfile,
    logLevel: 'error',
  });
  return outfile;
}
