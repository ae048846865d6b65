/**
 * The program as it ships, the same in the image, the archive, the Debian package and the Dockerfile: bundles with
 * everything in them but Node's own modules and koffi's native part, which lies beside them.
 *   node scripts/ship/program.mjs FOLDER [x64|arm64]
 */
import { chmodSync, copyFileSync, mkdirSync, readdirSync, statSync, symlinkSync, utimesSync } from 'node:fs';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { NODE_MODULES_BY_NAME, UNDICI_CONNECTIONS } from '../support/lightImports.mjs';
import { ROOT } from '../support/paths.mjs';
import { endingPlainly, Failure } from '../support/run.mjs';
import { escapeWideLetters } from '../support/oneByte.mjs';
import { writeSourceLines } from '../support/sourceLines.mjs';
import { ARCHITECTURES } from './image/architectures.mjs';
import { thirdPartyLicences } from './licences.mjs';
import { runtimePackages } from './runtime.mjs';
import { moveInto, withScratch } from './scratch.mjs';
import { buildInfo, epochOf } from './source.mjs';

const KNOWN = Object.values(ARCHITECTURES);

/** What CommonJS packages expect to be there. */
const COMMONJS =
  `import { createRequire as junctionRequire } from 'node:module';` +
  'const require = junctionRequire(import.meta.url), __filename = import.meta.filename, __dirname = import.meta.dirname;';

/** koffi would look for its native part in other packages. What the command line loads later is one folder further down. */
const NATIVE = `
  const { existsSync } = require('node:fs');
  const { join } = require('node:path');
  const beside = join(__dirname, 'koffi.node');
  exports.loadStatic = () => require(existsSync(beside) ? beside : join(__dirname, '../koffi.node'));
`;

const KOFFI = {
  name: 'koffi',
  setup({ onLoad }) {
    onLoad({ filter: /\/src\/system\/koffi\.ts$/ }, () => ({
      contents: `export const loadKoffi = () => require('koffi');`,
    }));
    onLoad({ filter: /\/koffi\/src\/koffi\/src\/static\.cjs$/ }, () => ({ contents: NATIVE }));
  },
};

/** Writes it to `folder`, which takes the place of one that is there. */
export async function assembleProgram(folder, { arch = process.arch } = {}) {
  if (!KNOWN.includes(arch))
    throw new Failure(`Junction ships for ${KNOWN.join(' and ')}, not for ${JSON.stringify(arch)}.`);
  const tools = await loadTools();
  const packages = await runtimePackages(arch);
  const parent = dirname(resolve(folder));
  makeFolder(parent);
  await withScratch(parent, async (scratch) => {
    const program = join(scratch, 'program');
    mkdirSync(program);
    await bundle(tools, scratch, program, packages);
    await tools.buildPage(join(program, 'page'));
    await addFiles(program, packages, arch);
    settle(program, epochOf() ?? 0);
    moveInto(program, folder);
  });
}

/** What set-up installs. */
async function loadTools() {
  try {
    const [{ build }, { buildPage }] = await Promise.all([
      import('esbuild'),
      import('../support/buildPage.mjs'),
    ]);
    return { build, buildPage };
  } catch (error) {
    if (error.code !== 'ERR_MODULE_NOT_FOUND') throw error;
    throw new Failure(
      'The development packages are not installed. Install them with: node scripts/setup.mjs',
    );
  }
}

function makeFolder(folder) {
  try {
    mkdirSync(folder, { recursive: true });
  } catch (error) {
    throw new Failure(`Cannot write: ${error.message}.`);
  }
}

/**
 * From a folder in which node_modules is what ships and nothing else: a package that is not in that lock is not found, and
 * the paths in the output are the same wherever this is done.
 */
async function bundle({ build }, scratch, outdir, packages) {
  const sources = join(scratch, 'sources');
  mkdirSync(sources);
  for (const name of ['src', 'tsconfig.json']) symlinkSync(join(ROOT, name), join(sources, name));
  symlinkSync(join(packages, 'node_modules'), join(sources, 'node_modules'));
  const common = {
    absWorkingDir: sources,
    preserveSymlinks: true,
    outdir,
    bundle: true,
    platform: 'node',
    target: 'node20',
    format: 'esm',
    banner: { js: COMMONJS },
    plugins: [KOFFI, NODE_MODULES_BY_NAME, UNDICI_CONNECTIONS],
    legalComments: 'none',
    sourcemap: 'external',
    logLevel: 'warning',
    define: { JUNCTION_BUILD: JSON.stringify(buildInfo()) },
  };
  await build({
    ...common,
    entryPoints: { junction: 'src/cli/bin.ts' },
    splitting: true,
    chunkNames: 'junction/[hash]',
  });
  await build({
    ...common,
    entryPoints: { 'kubectl-junction': 'src/kubectl/bin.ts' },
  });
  for (const name of readdirSync(outdir, { recursive: true, encoding: 'utf8' }).filter((each) =>
    each.endsWith('.js'),
  )) {
    await escapeWideLetters(join(outdir, name));
    await writeSourceLines(join(outdir, name));
    await rm(join(outdir, `${name}.map`));
  }
}

async function addFiles(program, packages, arch) {
  const { name, version, description, license, type, engines } = JSON.parse(
    await readFile(join(ROOT, 'package.json'), 'utf8'),
  );
  const manifest = { name, version, description, license, type, engines, os: ['linux'], cpu: [arch] };
  await writeFile(join(program, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
  const modules = join(packages, 'node_modules');
  const native = join(modules, `@koromix/koffi-linux-${arch}/linux_${arch}/koffi.node`);
  copyFileSync(native, join(program, 'koffi.node'));
  copyFileSync(join(ROOT, 'LICENSE'), join(program, 'LICENSE'));
  // The page is built with the development packages; preact becomes part of it.
  const bundled = ['koffi', 'undici', 'yaml'].map((each) => join(modules, each));
  const licences = await thirdPartyLicences([...bundled, join(ROOT, 'node_modules/preact')]);
  await writeFile(join(program, 'THIRD-PARTY-LICENSES'), licences);
}

/** Modes and times do not depend on who builds when. */
function settle(path, epoch) {
  const isFolder = statSync(path).isDirectory();
  if (isFolder) for (const name of readdirSync(path)) settle(join(path, name), epoch);
  chmodSync(path, isFolder ? 0o755 : 0o644);
  utimesSync(path, epoch, epoch);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const [folder, arch] = process.argv.slice(2);
  await endingPlainly(async () => {
    if (folder === undefined)
      throw new Failure(`${basename(import.meta.filename)} needs the folder to write to.`);
    await assembleProgram(folder, { arch });
  });
}
