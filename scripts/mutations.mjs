/**
 * Checks that tests find deliberate damage. Applies the patches of `test/mutations/` one by one to a copy of the checkout, and
 * runs the test files that each patch names in its lines `Finds-it:`. A patch that no test finds, or that does not apply, is
 * an error.
 *
 *   node scripts/mutations.mjs                              all patches
 *   node scripts/mutations.mjs ipvs plan/internal           those with one of these in their names
 *   node scripts/mutations.mjs --all-tests test/plan ipvs   the same, by other tests (without a path: by all) than they name
 */
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { ROOT } from './support/paths.mjs';
import { endingPlainly, Failure, runQuietly } from './support/run.mjs';

const PATCHES = join(ROOT, 'test/mutations');
/** A run that takes longer hangs. Tests that wait for something in vain end by their own limits. */
const MOST_MINUTES = 15;

const usesAll = process.argv.includes('--all-tests');
const given = process.argv.slice(2).filter((argument) => argument !== '--all-tests');
const isPath = (argument) => usesAll && /^test(?:\/|$)/.test(argument);
const paths = given.filter(isPath);
const names = given.filter((argument) => !isPath(argument));

await endingPlainly(async () => {
  const mutations = readMutations();
  const copy = makeCopy();
  const tests = [...new Set(mutations.flatMap((mutation) => mutation.tests))];
  console.log(
    `Running ${tests.length} test files or folders without a mutation, then ${mutations.length} mutations\n`,
  );
  const failing = new Set(await failedTests(copy, tests));
  for (const test of failing) console.log(`fails without a mutation, so it does not count: ${test}`);
  let unfound = 0;
  for (const mutation of mutations) {
    const result = await outcome(copy, mutation, failing);
    if (!result.isFound) unfound++;
    console.log(`${mutation.name.padEnd(46)} ${result.text}`);
  }
  console.log(`\n${mutations.length - unfound} of ${mutations.length} mutations found`);
  if (unfound > 0) process.exitCode = 1;
});

function readMutations() {
  const all = readdirSync(PATCHES, { recursive: true })
    .filter((file) => file.endsWith('.patch'))
    .toSorted();
  const chosen = all.filter((file) => names.length === 0 || names.some((name) => file.includes(name)));
  if (chosen.length === 0)
    throw new Failure(`no mutation in test/mutations has a name with ${names.join(', ')}`);
  return chosen.map((file) => {
    const path = join(PATCHES, file);
    const [header] = readFileSync(path, 'utf8').split(/^diff --git /m);
    const finders = [...header.matchAll(/^Finds-it: (.+)$/gm)].map(([, test]) => test.trim());
    if (finders.length === 0) throw new Failure(`${relative(ROOT, path)}: no line "Finds-it: TEST FILE"`);
    const missing = finders.filter((test) => !usesAll && !existsSync(join(ROOT, test)));
    const named = finders.filter((test) => !missing.includes(test));
    const tests = usesAll ? (paths.length > 0 ? paths : ['test']) : named;
    return { name: file.replace(/\.patch$/, ''), path, tests, missing };
  });
}

/** A worktree with what is committed and what is changed in tracked files. It is removed at the end, also by Ctrl-C. */
function makeCopy() {
  const folder = mkdtempSync(join(tmpdir(), 'junction-mutations-'));
  const copy = join(folder, 'copy');
  process.on('exit', () => {
    try {
      git(ROOT, 'worktree', 'remove', '--force', copy);
    } finally {
      rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
    }
  });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => process.exit(130));
  const changed = git(ROOT, 'stash', 'create').trim();
  git(ROOT, 'worktree', 'add', '--quiet', '--detach', copy, changed || 'HEAD');
  // One by one: caches and what is built in them are the copy's own.
  mkdirSync(join(copy, 'node_modules'));
  for (const name of readdirSync(join(ROOT, 'node_modules')))
    if (name === '.bin' || !name.startsWith('.'))
      symlinkSync(join(ROOT, 'node_modules', name), join(copy, 'node_modules', name));
  return copy;
}

async function outcome(copy, { path, tests, missing }, failing) {
  const gone = missing.map((test) => `; no longer there: ${test}`).join('');
  try {
    git(copy, 'apply', path);
  } catch (error) {
    const [why] = String(error.stderr).trim().split('\n');
    return { isFound: false, text: `PATCH DOES NOT APPLY: ${relative(ROOT, path)}: ${why}` };
  }
  try {
    // One failed test is enough, unless it may be one that fails anyway.
    const bail = failing.size === 0 ? ['--bail=1'] : [];
    const finders = (await failedTests(copy, tests, bail)).filter((test) => !failing.has(test));
    if (finders.length === 0) return { isFound: false, text: `NOT FOUND${gone}` };
    return { isFound: true, text: `found by ${finders.join(', ')}${gone}` };
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    return { isFound: false, text: `NO RESULT: ${error.message}` };
  } finally {
    git(copy, 'checkout', '--quiet', '--', '.');
  }
}

/** The files with tests that fail. */
async function failedTests(copy, tests, more = []) {
  if (tests.length === 0) return [];
  await runQuietly([process.execPath, 'scripts/build.mjs'], { cwd: copy });
  const report = join(copy, 'mutations.json');
  rmSync(report, { force: true });
  const { output, code } = await runVitest(copy, [
    ...tests,
    '--reporter=json',
    `--outputFile=${report}`,
    ...more,
  ]);
  const { testResults } = existsSync(report) ? JSON.parse(readFileSync(report, 'utf8')) : { testResults: [] };
  if (testResults.length === 0) throw new Failure(`no test ran\n${output}`);
  const failed = testResults
    .filter(({ status }) => status === 'failed')
    .map(({ name }) => relative(copy, name));
  // A report that --bail ends early may lack the failed test.
  if (failed.length === 0 && code !== 0 && more.length > 0) return [`one of ${tests.join(', ')}`];
  return failed.toSorted();
}

/** In a process group of its own, so that its workers end with it. */
async function runVitest(copy, args) {
  const argv = ['node_modules/vitest/vitest.mjs', 'run', '--maxWorkers=2', '--testTimeout=60000', ...args];
  const child = spawn(process.execPath, argv, {
    cwd: copy,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  const add = (chunk) => {
    output = `${output}${chunk}`.slice(-5000);
  };
  child.stdout.on('data', add);
  child.stderr.on('data', add);
  const end = () => {
    const isRunning = child.exitCode === null && child.signalCode === null;
    if (child.pid !== undefined && isRunning) process.kill(-child.pid, 'SIGKILL');
  };
  process.prependOnceListener('exit', end);
  const timer = setTimeout(end, MOST_MINUTES * 60_000);
  const code = await new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  clearTimeout(timer);
  process.off('exit', end);
  return { output, code };
}

function git(cwd, ...args) {
  return execFileSync('git', args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
}
