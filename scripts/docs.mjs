// Writes the pages under docs/ that come from the source: docs/reference/configuration.md from src/config/.
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { ROOT } from './support/paths.mjs';

const work = join(ROOT, 'node_modules/.cache', `junction-docs-${process.pid}`);
const bundle = join(work, 'reference.mjs');
const page = join(ROOT, 'docs/reference/configuration.md');

try {
  await build({
    absWorkingDir: ROOT,
    entryPoints: ['src/config/reference.ts'],
    outfile: bundle,
    bundle: true,
    platform: 'node',
    target: 'node20',
    format: 'esm',
    packages: 'external',
    logLevel: 'warning',
  });
  const { referencePage } = await import(pathToFileURL(bundle).href);
  await mkdir(dirname(page), { recursive: true });
  await writeFile(page, referencePage());
  console.log(`Wrote ${page}`);
} finally {
  await rm(work, { recursive: true, force: true });
}
