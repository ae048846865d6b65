/**
 * `node scripts/docs.mjs` writes what docs/ has from the program: docs/reference/, samples in other pages, and the monitoring files.
 * `--check` writes nothing, compares, and looks where links lead.
 */
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { brokenLinks } from './support/links.mjs';
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
  const pages = await writtenPages(ROOT);
  await (process.argv[2] === '--check' ? check(pages) : write(pages));
} finally {
  await rm(work, { recursive: true, force: true });
}

async function write(pages) {
  for (const { path, text } of pages) {
    await mkdir(dirname(join(ROOT, path)), { recursive: true });
    await writeFile(join(ROOT, path), text);
    console.log(`Wrote ${path}`);
  }
}

async function check(pages) {
  const problems = brokenLinks();
  for (const { path, text } of pages)
    if ((await readFile(join(ROOT, path), 'utf8').catch(() => '')) !== text)
      problems.push(`${path} is not what the program says: node scripts/docs.mjs writes it`);
  for (const problem of problems) console.error(problem);
  if (problems.length > 0) process.exitCode = 1;
}
