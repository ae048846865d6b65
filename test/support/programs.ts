/** Before the tests: what they run in other processes and in guests, bundled once, beside the programs of the build. */
import { existsSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '../..');
/** The command line, as the build made it. */
export const JUNCTION = join(ROOT, 'dist/junction.js');
/** Below node_modules, so that koffi is found. */
const CACHE = join(ROOT, 'node_modules/.cache/junction-tests');
const FOLDER = join(CACHE, `programs-${process.pid}`);
const BUILT = ['junction.js', 'lab-agent.js'];

const ENTRY_POINTS = {
  guest: 'test/guest/main.ts',
  node: 'test/guest/node/main.ts',
  owner: 'test/lab/owner.ts',
  'api-server': 'test/e2e/support/api/serverProgram.ts',
};

/** CommonJS packages call a `require` that modules do not have. */
const REQUIRE = `import { createRequire as makeRequire } from 'node:module'; const require = makeRequire(import.meta.url);`;

/** vitest calls it once for each project. */
export async function setup(): Promise<(() => void) | undefined> {
  if (process.env['JUNCTION_TEST_PROGRAMS'] !== undefined) return undefined;
  process.env['JUNCTION_TEST_PROGRAMS'] = FOLDER;
  if (!existsSync(JUNCTION)) throw new Error('Build first: npm run build');
  const { build } = await import('esbuild');
  removeLeftovers();
  mkdirSync(FOLDER, { recursive: true });
  writeFileSync(join(FOLDER, 'package.json'), '{ "type": "module" }');
  await build({
    absWorkingDir: ROOT,
    entryPoints: ENTRY_POINTS,
    outdir: FOLDER,
    bundle: true,
    platform: 'node',
    format: 'esm',
    banner: { js: REQUIRE },
    external: ['koffi'],
    logLevel: 'error',
  });
  for (const name of BUILT) symlinkSync(join(ROOT, 'dist', name), join(FOLDER, name));
  // The server's own text looks for them beside itself.
  symlinkSync(join(ROOT, 'test/support/apiServer/certs'), join(FOLDER, 'certs'));
  return () => rmSync(FOLDER, { recursive: true, force: true });
}

/** Of runs that were killed. */
function removeLeftovers(): void {
  for (const name of existsSync(CACHE) ? readdirSync(CACHE) : []) {
    const [, pid] = /^programs-(\d+)$/.exec(name) ?? [];
    if (pid !== undefined && !existsSync(`/proc/${pid}`)) rmSync(join(CACHE, name), { recursive: true });
  }
}

/** The path of one of them. */
export function testProgram(name: keyof typeof ENTRY_POINTS | 'lab-agent'): string {
  return join(process.env['JUNCTION_TEST_PROGRAMS'] ?? '', `${name}.js`);
}
