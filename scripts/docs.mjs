// Writes what docs/ has from the program: docs/reference/configuration.md from src/config/, and samples in other pages.
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { ROOT } from './support/paths.mjs';

const work = join(ROOT, 'node_modules/.cache', `junction-docs-${process.pid}`);
const bundle = join(work, 'pages.mjs');

try {
  await build({
    absWorkingDir: ROOT,
    entryPoints: ['scripts/samples/pages.ts'],
    outfile: bundle,
    bundle: true,
    platform: 'node',
    target: 'node20',
    format: 'esm',
    packages: 'external',
    logLevel: 'warning',
  });
  const { writtenPages } = await import(pathToFileURL(bundle).href);
  for (const { path, text } of await writtenPages(ROOT)) {
    await mkdir(dirname(join(ROOT, path)), { recursive: true });
    await writeFile(join(ROOT, path), text);
    console.log(`Wrote ${path}`);
  }
} finally {
  await rm(work, { recursive: true, force: true });
}
