/** What is built: the commit, and its date. https://reproducible-builds.org/specs/source-date-epoch/ */
import { execFileSync } from 'node:child_process';
import { ROOT } from '../support/paths.mjs';
import { Failure } from '../support/run.mjs';

/** What becomes part of the program. */
const BUILT_FROM = ['src', 'page', 'deploy/runtime', 'scripts', 'package.json', 'package-lock.json'];

function git(...args) {
  try {
    const options = { cwd: ROOT, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] };
    return execFileSync('git', args, options).trim();
  } catch {
    return undefined;
  }
}

/** A build without the repository is told its commit in JUNCTION_COMMIT. */
export function commitOf(paths = BUILT_FROM) {
  if (process.env.JUNCTION_COMMIT) return process.env.JUNCTION_COMMIT;
  const commit = git('rev-parse', 'HEAD');
  if (commit === undefined) return 'unknown';
  return commit + (git('status', '--porcelain', '--', ...paths) === '' ? '' : '-dirty');
}

/** In seconds: SOURCE_DATE_EPOCH, or the commit's date, or `undefined` where there is neither. */
export function epochOf() {
  const given = process.env.SOURCE_DATE_EPOCH;
  if (given) {
    if (/^\d{1,11}$/.test(given)) return Number(given);
    throw new Failure(
      `SOURCE_DATE_EPOCH is ${JSON.stringify(given)}: it must be seconds since 1970, as in ` +
        'SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)',
    );
  }
  const date = git('log', '-1', '--format=%ct');
  return date ? Number(date) : undefined;
}

/** As the program prints it. */
export function buildInfo() {
  const epoch = epochOf();
  return {
    commit: commitOf(),
    date: epoch === undefined ? 'unknown' : new Date(epoch * 1000).toISOString(),
  };
}
