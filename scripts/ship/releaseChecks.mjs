/** What must be true before a release is built: each failure names what is wrong and the command that cures it. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, statfsSync } from 'node:fs';
import { join } from 'node:path';
import { Failure } from '../support/run.mjs';
import { notesOf } from './releaseNotes.mjs';

/** A clone with its packages, the Debian packages of two architectures, and everything that is built from them. */
const NEEDED_BYTES = 4 * 1024 ** 3;
const SHOWN_FILES = 5;

/** The version to release and the commit it is made from. */
export function checkRelease(root, { destination, scratch }) {
  const git = gitIn(root);
  const commit = commitOf(git);
  checkClean(git);
  const version = versionOf(root);
  checkNew(git, version, destination(version));
  const notes = notesOf(readFileSync(join(root, 'CHANGELOG.md'), 'utf8'), version);
  for (const folder of [root, scratch]) checkSpace(folder);
  return { version, commit, notes };
}

export function gitIn(root) {
  return (...args) =>
    execFileSync('git', args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }).trimEnd();
}

function commitOf(git) {
  try {
    return git('rev-parse', 'HEAD');
  } catch {
    throw new Failure(
      'A release is made from a commit, and this is no git checkout. Clone the repository first.',
    );
  }
}

export function checkClean(git, otherwise = '') {
  const changed = git('status', '--porcelain')
    .split('\n')
    .filter((line) => line !== '');
  if (changed.length === 0) return;
  const shown = changed.slice(0, SHOWN_FILES).map((line) => `  ${line}`);
  if (changed.length > SHOWN_FILES) shown.push(`  and ${changed.length - SHOWN_FILES} more`);
  throw new Failure(
    `The tree has changes that no commit has:\n${shown.join('\n')}\n` +
      `Commit them, or put them aside with: git stash --include-untracked${otherwise}`,
  );
}

/** One version, in every file that has it. */
function versionOf(root) {
  const read = (path) => readFileSync(join(root, path), 'utf8');
  const { version } = JSON.parse(read('package.json'));
  const elsewhere = {
    'package-lock.json': JSON.parse(read('package-lock.json')).version,
    'src/version.ts': /VERSION = '([^']+)'/.exec(read('src/version.ts'))?.[1],
    'deploy/chart/junction/Chart.yaml': /^version: (\S+)$/m.exec(
      read('deploy/chart/junction/Chart.yaml'),
    )?.[1],
  };
  for (const [path, found] of Object.entries(elsewhere)) {
    if (found !== version)
      throw new Failure(`package.json has version ${version}, and ${path} has ${found}: make them equal.`);
  }
  return version;
}

function checkNew(git, version, folder) {
  const tag = `v${version}`;
  if (git('tag', '--list', tag) !== '') {
    throw new Failure(
      `Version ${version} exists: ${tag} is ${git('rev-list', '-n', '1', tag).slice(0, 12)}. ` +
        'Raise the version in package.json, package-lock.json, src/version.ts and the chart, and describe it in CHANGELOG.md.',
    );
  }
  if (existsSync(folder)) {
    throw new Failure(`${folder} exists, from an earlier build. Remove it first: rm -r ${folder}`);
  }
}

function checkSpace(folder) {
  const { bavail, bsize } = statfsSync(folder);
  const free = bavail * bsize;
  if (free >= NEEDED_BYTES) return;
  throw new Failure(
    `${folder} has ${inGigabytes(free)} free, and a release needs ${inGigabytes(NEEDED_BYTES)} there. ` +
      'Make room; the folder for what is built in between is TMPDIR.',
  );
}

function inGigabytes(bytes) {
  return `${(bytes / 1024 ** 3).toFixed(1)} GiB`;
}
