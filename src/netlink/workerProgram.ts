/** Where the worker's program is: beside the bundle that the build made, or in the sources, to be compiled now. */
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** The last is what bundles of single tests have, which are no package of modules. */
const BUILT = ['./netlink-worker.js', '../netlink-worker.js', './netlink-worker.mjs'];
const SOURCE = './worker/main.ts';

export type WorkerProgram =
  | { readonly kind: 'file'; readonly url: URL }
  /** CommonJS: the only kind of module that a worker takes as text. */
  | { readonly kind: 'text'; readonly text: string };

let program: Promise<WorkerProgram> | undefined;

export function workerProgram(): Promise<WorkerProgram> {
  program ??= findOrCompile();
  return program;
}

async function findOrCompile(): Promise<WorkerProgram> {
  const url = BUILT.map((path) => new URL(path, import.meta.url)).find((each) => existsSync(each));
  if (url) return { kind: 'file', url };
  const { build } = await import('esbuild');
  const { outputFiles } = await build({
    entryPoints: [fileURLToPath(new URL(SOURCE, import.meta.url))],
    bundle: true,
    platform: 'node',
    target: 'node20',
    format: 'cjs',
    external: ['koffi'],
    // Text has no place of its own from which koffi could be found.
    define: { 'import.meta.url': JSON.stringify(import.meta.url) },
    write: false,
    logLevel: 'silent',
  });
  return { kind: 'text', text: outputFiles[0]?.text ?? '' };
}
