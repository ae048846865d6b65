/**
 * The Debian packages of the image: which ones, in which versions (deploy/image/debian-ARCH.lock), and how they come here.
 * mmdebstrap has apt fetch them from archives that Debian's keys have signed, and unpacks them; nothing of theirs is
 * run, so any architecture can be unpacked on any other, by any user.
 */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { ROOT } from '../../support/paths.mjs';
import { Failure, runQuietly } from '../../support/run.mjs';
import { readTar } from '../tar.mjs';

/** What runs: Node needs the C++ library. apt adds what these depend on. */
const WANTED = ['libc6', 'libstdc++6', 'iptables'];
const SUITE = 'bookworm';
export const MIRROR = 'http://deb.debian.org';
export const KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg';
const ARCHIVES = [
  ['debian', SUITE],
  ['debian', `${SUITE}-updates`],
  ['debian-security', `${SUITE}-security`],
];
const UPDATE = 'npm run image -- --update-packages';

function lockPath(arch) {
  return join(ROOT, `deploy/image/debian-${arch}.lock`);
}

/** `[{ name, version, architecture, sha256 }]` */
export function readLock(arch) {
  const lines = readFileSync(lockPath(arch), 'utf8').split('\n');
  return lines
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => {
      const [name, version, architecture, sha256] = line.split(' ');
      return { name, version, architecture, sha256 };
    });
}

function writeLock(arch, packages) {
  const lines = packages.map(
    ({ name, version, architecture, sha256 }) => `${name} ${version} ${architecture} ${sha256}\n`,
  );
  mkdirSync(join(ROOT, 'deploy/image'), { recursive: true });
  writeFileSync(
    lockPath(arch),
    `# The Debian packages in the image for ${arch}, by name, version, architecture and SHA-256. Written by: ${UPDATE}\n` +
      lines.join(''),
  );
}

/** The newest versions become the locked ones. Returns what changed, as text. */
export async function updateLock(arch, { scratch, mirror }) {
  const before = existsSync(lockPath(arch)) ? readLock(arch) : [];
  const { packages } = await fetchPackages(arch, WANTED, { scratch, mirror });
  writeLock(arch, packages);
  return differences(before, packages);
}

/** The locked packages: the files in them, and what each says of itself. */
export async function lockedPackages(arch, { scratch, mirror }) {
  const locked = readLock(arch);
  const named = locked.map(({ name, version }) => `${name}=${version}`);
  let fetched;
  try {
    fetched = await fetchPackages(arch, named, { scratch, mirror });
  } catch (error) {
    if (!(error instanceof Absent)) throw error;
    fetched = await fetchPackages(arch, WANTED, { scratch, mirror });
  }
  checkSame(locked, fetched.packages, mirror);
  const changes = differences(locked, fetched.packages);
  if (changes.length > 0) throw new Outdated(arch, changes, fetched);
  return fetched;
}

/** Debian replaces a package with its next version, and the archive then no longer has the one before. */
export class Outdated extends Failure {
  /** `newest`: the packages that the archive has, as `lockedPackages` would have returned them. */
  constructor(arch, changes, newest) {
    super(
      `Debian's archive no longer has the packages of deploy/image/debian-${arch}.lock:\n` +
        `${changes.map((line) => `  ${line}\n`).join('')}` +
        `To take the versions that it has: ${UPDATE}`,
    );
    this.newest = newest;
  }
}

/** One version of a package has one content. */
function checkSame(locked, found, mirror) {
  for (const { name, version, sha256 } of locked) {
    const other = found.find((each) => each.name === name && each.version === version);
    if (!other || other.sha256 === sha256) continue;
    throw new Failure(
      `${name} ${version} of ${mirror} is not the package that is locked in deploy/image/.\n` +
        `  expected ${sha256}\n  found    ${other.sha256}\n` +
        'Something between here and Debian changes packages. Name another mirror: npm run image -- --mirror URL',
    );
  }
}

/** One line for each package that is not the same. */
function differences(before, after) {
  const byName = (packages) => new Map(packages.map((each) => [each.name, each]));
  const [old, fresh] = [byName(before), byName(after)];
  return [...new Set([...old.keys(), ...fresh.keys()])].sort().flatMap((name) => {
    const [was, is] = [old.get(name), fresh.get(name)];
    if (!was) return [`${name}: ${is.version} (new)`];
    if (!is) return [`${name}: ${was.version} (no longer needed)`];
    return was.version === is.version ? [] : [`${name}: ${was.version} → ${is.version}`];
  });
}

/** A version that was asked for is not in the archive. */
class Absent extends Error {}

async function fetchPackages(arch, include, { scratch, mirror }) {
  const archive = join(scratch, `debian-${arch}.tar`);
  const sources = ARCHIVES.map(
    ([name, suite]) => `deb [signed-by=${KEYRING}] ${mirror}/${name} ${suite} main`,
  );
  const options = [
    '--variant=extract',
    '--mode=chrootless',
    `--architectures=${arch}`,
    `--include=${include.join(',')}`,
    // With the packages themselves, to compare them with the lock.
    '--skip=cleanup/apt/cache',
  ];
  try {
    // LC_ALL: its messages are read below.
    const env = { TMPDIR: scratch, LC_ALL: 'C.UTF-8' };
    await runQuietly(['mmdebstrap', ...options, SUITE, archive, ...sources], { env });
  } catch (error) {
    throw error instanceof Failure ? explained(error.message, mirror) : error;
  }
  const entries = [...readTar(readFileSync(archive))];
  const isPackage = ({ path, type }) =>
    type === 'file' && /^var\/cache\/apt\/archives\/[^/]+\.deb$/.test(path);
  const packages = [];
  for (const { path, data } of entries.filter(isPackage)) {
    const file = join(scratch, basename(path));
    writeFileSync(file, data);
    const control = await runQuietly(['dpkg-deb', '--field', file]);
    packages.push({
      ...identityOf(control),
      sha256: createHash('sha256').update(data).digest('hex'),
      control,
    });
  }
  packages.sort((a, b) => (a.name < b.name ? -1 : 1));
  return { packages, entries: entries.filter((entry) => !entry.path.startsWith('var/')) };
}

function identityOf(control) {
  const field = (name) => new RegExp(`^${name}: (.*)$`, 'm').exec(control)?.[1] ?? '';
  return { name: field('Package'), version: field('Version'), architecture: field('Architecture') };
}

/** mmdebstrap prints apt's whole output; the line that says why is in it. */
function explained(output, mirror) {
  if (/E: Version '.*' for '.*' was not found|E: Unable to locate package/.test(output)) return new Absent();
  const reason = (pattern) =>
    output
      .split('\n')
      .find((line) => pattern.test(line))
      ?.trim();
  const full = reason(/No space left on device|enough free space/i);
  if (full)
    return new Failure(
      `The disk is full: mmdebstrap says "${full}". Nothing was left behind; make room and run it again.`,
    );
  const unsigned = reason(/NO_PUBKEY|is not signed|signatures? (were|was|couldn't be) (invalid|verified)/i);
  if (unsigned)
    return new Failure(
      `${mirror} is not signed by Debian's keys, and nothing is taken from it.\n  ${unsigned}`,
    );
  const unreachable = reason(
    /^(Err|E): ?.*(Failed to fetch|Could not|Unable to connect|Connection)|404 {2}Not Found/,
  );
  if (unreachable)
    return new Failure(
      `Debian's archive at ${mirror} cannot be read.\n  ${unreachable}\n` +
        'Check the network and the variable http_proxy, or name another mirror: npm run image -- --mirror URL',
    );
  return new Failure(output);
}
