// The page: page/ becomes a script, a style sheet and a document. The names of the first two change with their contents, so
// that browsers may keep them for ever.
import { readFile, writeFile } from 'node:fs/promises';
import { mkdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { build } from 'esbuild';
import { ROOT } from './paths.mjs';

export async function buildPage(outdir) {
  mkdirSync(outdir, { recursive: true });
  const { metafile } = await build({
    absWorkingDir: ROOT,
    entryPoints: { page: 'page/src/main.tsx' },
    outdir,
    // The hash is made of paths too: they are the same wherever node_modules leads.
    preserveSymlinks: true,
    entryNames: '[name]-[hash]',
    bundle: true,
    minify: true,
    platform: 'browser',
    target: ['chrome120', 'firefox121', 'safari17.4'],
    format: 'esm',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    sourcemap: false,
    legalComments: 'none',
    metafile: true,
    logLevel: 'warning',
  });
  const built = Object.keys(metafile.outputs).map((path) => basename(path));
  const named = (ending) => built.find((name) => name.endsWith(ending));
  const document = (await readFile(join(ROOT, 'page/index.html'), 'utf8'))
    .replace('/page.css', `/${named('.css')}`)
    .replace('/page.js', `/${named('.js')}`);
  await writeFile(join(outdir, 'index.html'), document);
  await writeFile(join(outdir, 'icon.svg'), await readFile(join(ROOT, 'page/icon.svg')));
}
