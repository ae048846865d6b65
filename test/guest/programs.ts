/** The programs that run in the guest, each bundled into one file: a guest reads the host's files slowly. */
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { build } from 'esbuild';

const ROOT = join(import.meta.dirname, '../..');

const ENTRY_POINTS = {
  main: 'test/guest/main.ts',
  node: 'test/guest/node/main.ts',
  junction: 'src/cli/bin.ts',
  'lab-agent': 'lab/agent/main.ts',
  'netlink-worker': 'src/netlink/worker/main.ts',
};

/** Packages of CommonJS call a `require` that modules do not have. */
const REQUIRE = `import { createRequire as makeRequire } from 'node:module'; const require = makeRequire(import.meta.url);`;

export interface GuestPrograms {
  readonly main: string;
  remove(): Promise<void>;
}

export async function buildGuestPrograms(): Promise<GuestPrograms> {
  const folder = join(ROOT, 'node_modules/.cache/junction-tests', `guest-${process.pid}`); // inside, so that koffi is found
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'package.json'), '{ "type": "module" }');
  await build({
    absWorkingDir: ROOT,
    entryPoints: ENTRY_POINTS,
    outdir: folder,
    bundle: true,
    platform: 'node',
    format: 'esm',
    banner: { js: REQUIRE },
    external: ['koffi', 'esbuild'],
    logLevel: 'error',
  });
  return { main: join(folder, 'main.js'), remove: () => rm(folder, { recursive: true, force: true }) };
}
