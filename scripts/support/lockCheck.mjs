/**
 * Whether what npm installed is what package-lock.json names. npm itself compares the archives that it fetches with the
 * integrity values there, and still lets these pass: a lock that is older than package.json, node_modules that somebody
 * else filled, an entry without a value, and an optional package whose archive was refused, which is then left out.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { ROOT } from './paths.mjs';
import { Failure } from './run.mjs';

const LOCK = 'package-lock.json';
/** npm's own note of what it installed. */
const INSTALLED = 'node_modules/.package-lock.json';
const MOST_SHOWN = 5;

/** Ends with a message, or answers with the names of packages that no lock value is there for. */
export function checkInstalled(root = ROOT) {
  const { problems, unknown } = compare(read(root, LOCK), read(root, INSTALLED), root);
  refuse(problems);
  return unknown;
}

/**
 * Before npm runs again: it keeps an optional package of the same version whose value in the lock has changed, and notes the
 * new value for it.
 */
export function checkKept(root = ROOT) {
  const lock = read(root, LOCK);
  const changed = Object.entries(read(root, INSTALLED)).filter(
    ([path, { version, integrity }]) =>
      lock[path]?.version === version && (lock[path].integrity ?? integrity) !== integrity,
  );
  refuse(
    changed.map(([path, found]) => ({
      name: nameOf(path),
      expected: described(lock[path]),
      found: described(found),
    })),
  );
}

function refuse(problems) {
  if (problems.length === 0) return;
  const shown = problems
    .slice(0, MOST_SHOWN)
    .map(({ name, expected, found }) => mismatch(name, expected, found));
  const more = problems.length > MOST_SHOWN ? `and ${problems.length - MOST_SHOWN} more\n` : '';
  throw new Failure(`What npm installed is not what ${LOCK} names.\n\n${shown.join('\n')}${more}\n${CURE}`);
}

/** npm's message names the values, and not the package. */
export function explainIntegrity(error, root = ROOT) {
  const [, expected, found] = /EINTEGRITY[^]*?wanted (\S+) but got (\S+?)\.?\s/.exec(error.message) ?? [];
  if (expected === undefined) return error;
  const names = Object.entries(read(root, LOCK)).flatMap(([path, entry]) =>
    entry.integrity === expected ? [`${nameOf(path)} ${entry.version}`] : [],
  );
  const name = names.length > 0 ? names.join(', ') : 'a package';
  return new Failure(
    `npm fetched something else than ${LOCK} names, and installed nothing.\n\n${mismatch(name, expected, found)}\n${CURE}`,
  );
}

const CURE =
  'If package.json or package-lock.json was edited: git checkout package.json package-lock.json\n' +
  'Otherwise install again: rm -rf node_modules && npm cache clean --force && node scripts/setup.mjs\n' +
  'If that ends here too, the registry serves something else than the lock was made from; ' +
  '`npm config get registry` says which one is asked.';

function mismatch(name, expected, found) {
  return `  ${name}\n    expected ${expected}\n    found    ${found}\n`;
}

/** `problems`: package, what the lock says, what is there. */
export function compare(lock, installed, root, machine = thisMachine()) {
  const problems = [];
  const add = (path, expected, found) => problems.push({ name: nameOf(path), expected, found });
  for (const [path, entry] of Object.entries(lock)) {
    if (path === '' || entry.link) continue;
    const found = installed[path];
    if (!entry.integrity) add(path, `an integrity value in ${LOCK}`, 'none');
    else if (found) {
      if (described(found) !== described(entry)) add(path, described(entry), described(found));
      else if (versionOf(root, path) !== entry.version)
        add(path, entry.version, `${versionOf(root, path) ?? 'nothing'} in ${path}`);
    } else if (!entry.optional || suits(entry, machine)) add(path, described(entry), 'nothing');
  }
  const unknown = Object.keys(installed).filter((path) => !(path in lock));
  const builds = optionalBuilds(lock);
  for (const path of unknown) {
    const found = installed[path];
    if (builds.get(nameOf(path)) !== found.version) add(path, 'no such package', described(found));
  }
  return { problems, unknown: unknown.map((path) => `${nameOf(path)} ${installed[path].version}`) };
}

/** Builds for systems that the registry lacked when the lock was made: what a locked package names, by exact version. */
function optionalBuilds(lock) {
  return new Map(Object.values(lock).flatMap((entry) => Object.entries(entry.optionalDependencies ?? {})));
}

function described({ version, integrity }) {
  return `${version} ${integrity ?? 'without an integrity value'}`;
}

function nameOf(path) {
  return path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);
}

function suits({ os, cpu, libc }, machine) {
  const takes = (wanted, has) => !wanted || wanted.includes(has);
  return takes(os, machine.os) && takes(cpu, machine.cpu) && takes(libc, machine.libc);
}

function thisMachine() {
  const { glibcVersionRuntime } = process.report.getReport().header;
  const libc = process.platform === 'linux' ? (glibcVersionRuntime ? 'glibc' : 'musl') : undefined;
  return { os: process.platform, cpu: process.arch, libc };
}

function versionOf(root, path) {
  try {
    return JSON.parse(readFileSync(join(root, path, 'package.json'), 'utf8')).version;
  } catch {
    return undefined;
  }
}

function read(root, file) {
  try {
    return JSON.parse(readFileSync(join(root, file), 'utf8')).packages ?? {};
  } catch (error) {
    if (error.code === 'ENOENT') return {};
    throw new Failure(`Cannot read ${file}: ${error.message}`);
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  try {
    checkInstalled();
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    console.error(error.message);
    process.exitCode = 1;
  }
}
