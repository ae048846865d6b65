/** The image's three layers, from what changes least to what changes most: Debian's packages, Node, the program. */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { step } from '../../support/steps.mjs';
import { cached } from '../cache.mjs';
import { nodeFor } from '../node.mjs';
import { assembleProgram } from '../program.mjs';
import { ARCHITECTURES } from './architectures.mjs';
import { layerIn, writeLayer } from './blobs.mjs';
import { lockedPackages, Outdated, readLock } from './debian.mjs';
import { rootfsEntries } from './rootfs.mjs';

const HOME = 'opt/junction';
const COMMANDS = { junction: 'junction', 'kube-proxy': 'junction', 'kubectl-junction': 'kubectl-junction' };

/**
 * The two layers below the program have no date: they stay the same from release to release, and nodes that have them fetch
 * the program alone.
 */
const NO_DATE = 0;

/** `{ layers, packages, node }`; a layer is `{ name, file, digest, diffId, size, unpackedSize }`. */
export async function buildLayers(arch, options) {
  const debian = await debianLayer(arch, options);
  const node = await nodeLayer(arch, options);
  const program = await step(`Building the program for ${arch}`, () => programLayer(arch, options));
  return {
    layers: [debian.layer, node.layer, program],
    packages: debian.packages,
    node: node.version,
  };
}

async function debianLayer(arch, options) {
  const { scratch, mirror, isLocked } = options;
  const key = hashOf(JSON.stringify(readLock(arch)), ...recipe('debian.mjs', 'rootfs.mjs'));
  const write = async (fresh, found) => {
    await writeLayer(fresh, 'Debian packages', rootfsEntries(found), NO_DATE);
    writeFileSync(join(fresh, 'packages.json'), JSON.stringify(found.packages));
  };
  let folder;
  try {
    folder = await kept(`image-debian-${arch}-${key}`, options, (fresh) =>
      step(`Fetching Debian's packages for ${arch}`, async () =>
        write(fresh, await lockedPackages(arch, { scratch, mirror })),
      ),
    );
  } catch (error) {
    if (!(error instanceof Outdated) || isLocked) throw error;
    console.warn(
      `${error.message}\nThis image has those, and is not the same as one with the locked packages.`,
    );
    // Not kept: it changes with the archive.
    folder = await kept(`newest-debian-${arch}`, { scratch, useCache: false }, (fresh) =>
      write(fresh, error.newest),
    );
  }
  return {
    layer: layerIn(folder),
    packages: JSON.parse(readFileSync(join(folder, 'packages.json'), 'utf8')),
  };
}

async function nodeLayer(arch, { scratch, useCache }) {
  const { binary, licence, version } = await nodeFor(ARCHITECTURES[arch]);
  const key = hashOf(version, ...recipe());
  const folder = await kept(`image-node-${version}-${arch}-${key}`, { scratch, useCache }, (fresh) =>
    step(`Compressing Node ${version} for ${arch}`, () =>
      writeLayer(fresh, `Node ${version}`, nodeEntries(binary, licence), NO_DATE),
    ),
  );
  return { layer: layerIn(folder), version };
}

/** As it is published: its SHA-256 is the one that anybody can look up. */
function nodeEntries(binary, licence) {
  return [
    { path: `${HOME}/bin/node`, type: 'file', mode: 0o755, data: readFileSync(binary) },
    { path: `${HOME}/NODE-LICENSE`, type: 'file', data: readFileSync(licence) },
  ];
}

async function programLayer(arch, { scratch, source }) {
  const program = join(scratch, `program-${arch}`);
  await assembleProgram(program, { arch: ARCHITECTURES[arch] });
  const files = readdirSync(program, { recursive: true, withFileTypes: true })
    .filter((each) => each.isFile())
    .map((each) => join(each.parentPath, each.name))
    .map((path) => ({
      path: `${HOME}/${relative(program, path)}`,
      type: 'file',
      mode: (statSync(path).mode & 0o111) === 0 ? 0o644 : 0o755,
      data: readFileSync(path),
    }));
  return writeLayer(join(scratch, 'layers', arch), 'Junction', [...files, ...commandEntries()], source.epoch);
}

/** The image has no shell and no `env`: the kernel reads which program runs them. */
function commandEntries() {
  const programs = [...new Set(Object.values(COMMANDS))].map((name) => ({
    path: `${HOME}/bin/${name}`,
    type: 'file',
    mode: 0o755,
    data: Buffer.from(`#!/${HOME}/bin/node\nimport '../${name}.js';\n`),
  }));
  const links = Object.entries(COMMANDS).map(([name, program]) => ({
    path: `usr/local/bin/${name}`,
    type: 'symlink',
    target: `/${HOME}/bin/${program}`,
  }));
  return [...programs, ...links];
}

/** What a layer is made with: another recipe, another layer. */
function recipe(...names) {
  return [...names, 'layers.mjs', 'blobs.mjs', '../tar.mjs'].map((name) =>
    readFileSync(join(import.meta.dirname, name), 'utf8'),
  );
}

function hashOf(...texts) {
  const hash = createHash('sha256');
  for (const text of texts) hash.update(`${text.length} ${text}`);
  return hash.digest('hex').slice(0, 16);
}

async function kept(name, { scratch, useCache }, make) {
  if (useCache) return cached(name, make);
  const folder = join(scratch, 'layers', name);
  await make(folder);
  return folder;
}
