/**
 * Makes a checkout ready to run: the right Node, the system's programs, the npm packages, the build. Needs nothing but
 * Node itself, and takes no time when everything is there.
 */
import { existsSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { checkInstalled, checkKept, explainIntegrity } from './support/lockCheck.mjs';
import { checkNode } from './support/nodeVersion.mjs';
import { npm } from './support/npm.mjs';
import { packagesHash, readStamp, sourceHash } from './support/hashes.mjs';
import { ROOT } from './support/paths.mjs';
import { Failure, runQuietly } from './support/run.mjs';
import { step } from './support/steps.mjs';
import { canInstall, howToInstall, install, missingPackages, reasonsFor } from './support/systemPrograms.mjs';

const PACKAGES_STAMP = 'node_modules/.junction-stamp';
/**
 * Versions come from package-lock.json, as with `npm ci`. That one refuses a lock file in which the optional packages of
 * other systems are absent, and where the registry has only some of them no better lock file can be made. checkInstalled makes up
 * for it.
 */
const INSTALL = ['install', '--no-save', '--no-audit', '--no-fund', '--prefer-offline', '--loglevel=error'];
const BUILD_STAMP = 'dist/.stamp';

/**
 * `lacking: 'warn'` goes on without the system's programs: tests that need them are then skipped. `programs`: what they
 * are for, a mode of the demo, the tests, or nothing. `builds: false`: what is called for builds for itself.
 */
export async function setUp({ lacking = 'fail', programs = 'iptables', builds = true } = {}) {
  checkNode(process.versions.node);
  await installPrograms(lacking, programs);
  await installPackages();
  if (builds) await build();
}

/** For the scripts: sets up, or ends with a plain message. */
export async function setUpOrExit(options) {
  try {
    await setUp(options);
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    console.error(`\n${error.message}`);
    process.exit(1);
  }
}

async function installPrograms(lacking, purpose) {
  const missing = missingPackages(purpose);
  if (missing.length === 0) return;
  if (canInstall()) {
    console.log(`These system packages are installed first, once:\n${reasonsFor(missing)}`);
    await step('Installing system packages', (say) => install(missing, purpose, say));
    return;
  }
  const message = `Programs of these packages are missing:\n${reasonsFor(missing)}\n${howToInstall(missing)}`;
  if (lacking === 'fail') throw new Failure(message);
  console.warn(message);
}

async function installPackages() {
  const wanted = packagesHash();
  if (readStamp(PACKAGES_STAMP) === wanted) return;
  if (!isInstalledByHand()) await step('Installing npm packages', runNpm);
  const unknown = checkInstalled();
  if (unknown.length > 0)
    console.warn(`package-lock.json has no build for this machine of ${unknown.join(', ')}: not checked.`);
  writeFileSync(join(ROOT, PACKAGES_STAMP), `${wanted}\n`);
}

/** Its warnings about the user's own settings stay unseen. */
async function runNpm() {
  checkKept();
  try {
    await runQuietly(npm(...INSTALL));
  } catch (error) {
    throw explainIntegrity(error);
  }
}

/** npm notes what it has installed in a file of its own. */
function isInstalledByHand() {
  if (existsSync(join(ROOT, PACKAGES_STAMP))) return false;
  const installed = statSync(join(ROOT, 'node_modules/.package-lock.json'), { throwIfNoEntry: false });
  return installed !== undefined && installed.mtimeMs >= statSync(join(ROOT, 'package-lock.json')).mtimeMs;
}

async function build() {
  if (readStamp(BUILD_STAMP) === sourceHash()) return;
  await step('Building', () => runQuietly([process.execPath, 'scripts/build.mjs']));
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) await setUpOrExit();
