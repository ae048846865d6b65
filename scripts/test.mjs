/**
 * `npm test`: sets up, checks types, lint and format, and runs the tests. `npm test -- test/plan` runs those alone;
 * `npm test -- --node 24` runs all of it on that Node.
 * `npm run test:ship`: the tests of what is released. `npm run test:long`: random cases by the thousand.
 * The last line says how many passed and failed; a check that fails counts as one.
 */
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { setUpOrExit } from './setup.mjs';
import { runOnNode, takeNode } from './support/otherNode.mjs';
import { ROOT } from './support/paths.mjs';
import { runWithLab } from './support/privileged.mjs';
import { Failure, runQuietly } from './support/run.mjs';
import { step } from './support/steps.mjs';

const CHECKS = {
  'Checking types': ['tsc', '--noEmit'],
  'Checking types of the page': ['tsc', '--noEmit', '-p', 'page'],
  Linting: ['oxlint', '--type-aware', '--deny-warnings', 'src', 'lab', 'page', 'test', 'bench', 'scripts'],
  'Checking the format': ['biome', 'format'],
  'Checking imports': ['node', 'scripts/layers.mjs'],
  'Looking for code without users': ['knip', '--production', '--include', 'files,exports,types,duplicates'],
  'Looking for copies': ['jscpd', '--min-lines=10', '--min-tokens=60', '--exit-code=1', 'src', 'page'],
  'Checking samples and links in docs': ['node', 'scripts/docs.mjs', '--check'],
};

const NOT_SHIP = ['--project=!ship'];
const PARTS = {
  test: {
    says: 'Types, lint, format, and all tests but those of npm run test:ship: about eight minutes on two cores.',
    programs: 'tests',
    checks: CHECKS,
    options: () => NOT_SHIP,
  },
  '--ship': {
    says: 'The image, the bundle for nodes, pods, Prometheus, recipes and a soak: about ten minutes on two cores.',
    programs: 'shipTests',
    checks: {},
    options: () => ['--project=ship'],
  },
  '--long': {
    says: 'Every test with random cases, with thousands of them: hours. JUNCTION_SEED and JUNCTION_RUNS say which and how many.',
    programs: 'tests',
    checks: {},
    options: (paths) => [
      ...NOT_SHIP,
      '--testTimeout=7200000',
      ...(paths.length > 0 ? [] : withRandomCases()),
    ],
  },
};

const args = await onWantedNode(process.argv.slice(2));
const part = PARTS[args[0]] ?? PARTS.test;
const paths = part === PARTS.test ? args : args.slice(1);
if (part === PARTS['--long']) {
  process.env.JUNCTION_RUNS ??= '3000';
  process.env.JUNCTION_SEED ??= String(Date.now() % 1e9);
  console.log(`JUNCTION_SEED=${process.env.JUNCTION_SEED} JUNCTION_RUNS=${process.env.JUNCTION_RUNS}`);
}
if (paths.length === 0) console.log(part.says);
await setUpOrExit({ lacking: 'warn', programs: part.programs });
const failedChecks = paths.length === 0 ? await runChecks(part.checks) : 0;
const { passed, failed, skipped } = await runTests([...part.options(paths), ...paths]);

if (skipped.length > 0) printSkipped(skipped);
const isCi = process.env.CI === 'true';
if (isCi && skipped.length > 0) console.log('On CI a skipped test is a failure: it tests nothing.\n');
const allFailed = failed + failedChecks;
console.log(
  `${passed} passed, ${allFailed} failed${skipped.length > 0 ? `, ${skipped.length} skipped` : ''}`,
);
process.exitCode = allFailed > 0 || (isCi && skipped.length > 0) ? 1 : 0;

/** With --node this process only waits for the other one. */
async function onWantedNode(given) {
  try {
    const { wanted, rest } = takeNode(given);
    if (wanted === undefined) return rest;
    process.exit(await runOnNode(wanted, [fileURLToPath(import.meta.url), ...rest]));
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    console.error(error.message);
    process.exit(1);
  }
}

function withRandomCases() {
  return readdirSync(join(ROOT, 'test'), { recursive: true })
    .filter((path) => path.endsWith('.test.ts'))
    .map((path) => join('test', path))
    .filter((path) =>
      /from '(?:fast-check|\S*\/(?:fuzz|randomRun|randomCases)\.ts)'/.test(
        readFileSync(join(ROOT, path), 'utf8'),
      ),
    );
}

async function runChecks(checks) {
  let failures = 0;
  for (const [label, [program, ...rest]] of Object.entries(checks)) {
    try {
      const path = program === 'node' ? process.execPath : join(ROOT, 'node_modules/.bin', program);
      await step(label, () => runQuietly([path, ...rest]));
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      console.error(`\n${error.message}`);
      failures++;
    }
  }
  return failures;
}

async function runTests(rest) {
  const folder = mkdtempSync(join(tmpdir(), 'junction-test-'));
  const countsFile = join(folder, 'counts.json');
  process.env.JUNCTION_COUNTS = countsFile;
  // Gone at the end, whatever a program that was killed has left in it. Some tests are another user there.
  process.env.TMPDIR = join(folder, 'tmp');
  mkdirSync(process.env.TMPDIR);
  chmodSync(process.env.TMPDIR, 0o1777);
  chmodSync(folder, 0o755);
  const reporters = ['--reporter=default', '--reporter=./scripts/support/countReporter.mjs'];
  const vitest = join(ROOT, 'node_modules/vitest/vitest.mjs');
  try {
    const code = await runWithLab([process.execPath, vitest, 'run', ...reporters, ...rest], {
      lacking: 'warn',
    });
    return countsOf(code, countsFile);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** vitest that found nothing to run, or ended before it could count, has failed. */
function countsOf(exitCode, file) {
  const counts = existsSync(file)
    ? JSON.parse(readFileSync(file, 'utf8'))
    : { passed: 0, failed: 0, skipped: [] };
  return { ...counts, failed: exitCode === 0 ? counts.failed : Math.max(1, counts.failed) };
}

function printSkipped(tests) {
  const byReason = new Map();
  for (const test of tests) byReason.set(test.reason, [...(byReason.get(test.reason) ?? []), test]);
  console.log('Skipped:');
  for (const [reason, group] of byReason) {
    console.log(`  ${reason ?? 'without a reason'}`);
    for (const { name } of group) console.log(`    ${name}`);
  }
  console.log('');
}
