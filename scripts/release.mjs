/**
 * `npm run release -- --dry-run`: builds everything that is released from a clean clone of this commit, tests it, and
 * writes it to release/VERSION with checksums, provenance and notes. Without --dry-run it also makes the tag. It pushes nothing.
 */
import { execFileSync } from 'node:child_process';
import { chmodSync, copyFileSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { parseArgs } from 'node:util';
import { provenanceOf, sha256Of } from './ship/provenance.mjs';
import { checkRelease } from './ship/releaseChecks.mjs';
import { moveInto, withScratch } from './ship/scratch.mjs';
import { ROOT } from './support/paths.mjs';
import { Failure, endingPlainly, runAloud, runQuietly } from './support/run.mjs';
import { step } from './support/steps.mjs';

const HELP = `Builds a release: the image, the bundles for nodes, the chart, the manifests; with checksums, provenance and notes.

Usage:
  npm run release -- --dry-run [--skip-tests]
  npm run release

Everything is built and tested in a clean clone of this commit, and written to release/VERSION.
Nothing is pushed anywhere. Without --dry-run the tag vVERSION is made, and the commands that publish it are printed.

Flags:
      --dry-run      makes no tag
      --skip-tests   builds without running the tests; with --dry-run only
  -h, --help         this text

Examples:
  npm run release -- --dry-run                 # about twenty minutes
  npm run release -- --dry-run --skip-tests    # a few minutes
`;

async function main() {
  const options = parse();
  if (options.help) {
    process.stdout.write(HELP);
    return;
  }
  const destination = (version) => join(ROOT, 'release', version);
  const release = checkRelease(ROOT, { destination, scratch: tmpdir() });
  console.log(`Junction ${release.version} from ${release.commit.slice(0, 12)}\n`);
  mkdirSync(join(ROOT, 'release'), { recursive: true });
  const folder = destination(release.version);
  await withScratch(tmpdir(), (work) => buildIn(join(work, 'clone'), release, folder, options));
  printFiles(folder);
  if (options['dry-run']) console.log('\nA dry run: no tag was made, and nothing was pushed.');
  else tag(release);
}

function parse() {
  const flags = {
    'dry-run': { type: 'boolean' },
    'skip-tests': { type: 'boolean' },
    help: { type: 'boolean', short: 'h' },
  };
  let values;
  try {
    ({ values } = parseArgs({ options: flags }));
  } catch (error) {
    throw new Failure(`${error.message}\n\n${HELP}`);
  }
  if (values['skip-tests'] && !values['dry-run'])
    throw new Failure('What is released is tested: --skip-tests works with --dry-run only.');
  return values;
}

async function buildIn(clone, release, folder, options) {
  const started = new Date();
  const inClone = (label, ...argv) => step(label, () => runQuietly(argv, { cwd: clone }));
  const node = process.execPath;
  await step('Cloning', () => runQuietly(['git', 'clone', '--quiet', '--no-local', ROOT, clone]));
  await inClone('Checking out the commit', 'git', 'checkout', '--quiet', '--detach', release.commit);
  await inClone('Setting up', node, 'scripts/setup.mjs');
  await inClone(
    'Building the image for amd64 and arm64',
    node,
    'scripts/image.mjs',
    '--arch',
    'all',
    '--locked',
  );
  await inClone('Building the bundles for nodes', node, 'scripts/bundle.mjs', '--arch', 'all');
  const built = join(clone, 'release');
  await step('Packing the chart and the manifests', () => pack(clone, built, release));
  if (options['skip-tests']) console.log('  The tests were not run (--skip-tests).');
  else await test(clone);
  const finished = new Date();
  await withScratch(join(ROOT, 'release'), async (fresh) => {
    await step('Writing checksums, provenance and notes', () =>
      collect({ clone, built, fresh, release, started, finished }),
    );
    chmodSync(fresh, 0o755);
    moveInto(fresh, folder);
  });
}

/** Where the clone's own tests find what was built, they take it; all of them must pass. */
async function test(clone) {
  const code = await runAloud(['bash', '.ci/run'], { cwd: clone, env: { CI: 'true' } });
  if (code !== 0) throw new Failure('The tests fail: nothing is released.');
}

/** The same bytes for the same commit. Helm expects the chart's folder at the top. */
async function pack(clone, built, { version, commit }) {
  const date = execFileSync('git', ['show', '-s', '--format=%ct', commit], {
    cwd: clone,
    encoding: 'utf8',
  }).trim();
  const same = [
    '--sort=name',
    `--mtime=@${date}`,
    '--owner=0',
    '--group=0',
    '--numeric-owner',
    '--mode=u=rwX,go=rX',
    '--format=ustar',
    '--use-compress-program=gzip -9n',
  ];
  const tar = (file, from, ...names) =>
    runQuietly(['tar', '--create', '--file', join(built, file), ...same, '--directory', from, ...names], {
      cwd: clone,
    });
  await tar(`junction-chart-${version}.tgz`, 'deploy/chart', 'junction');
  await tar(`junction-manifests-${version}.tar.gz`, 'deploy', 'manifests', 'migration', 'monitoring');
}

async function collect({ clone, built, fresh, release, started, finished }) {
  const files = [];
  for (const name of readdirSync(built).sort()) {
    if (!statSync(join(built, name)).isFile()) continue;
    copyFileSync(join(built, name), join(fresh, name));
    files.push({ path: name, sha256: await sha256Of(join(fresh, name)) });
  }
  const provenance = provenanceOf({ ...release, root: clone, files, started, finished });
  writeFileSync(join(fresh, 'provenance.json'), `${JSON.stringify(provenance, undefined, 2)}\n`);
  writeFileSync(join(fresh, 'NOTES.md'), release.notes);
  for (const name of ['NOTES.md', 'provenance.json'])
    files.push({ path: name, sha256: await sha256Of(join(fresh, name)) });
  const sums = files.map(({ path, sha256 }) => `${sha256}  ${path}\n`);
  writeFileSync(join(fresh, 'SHA256SUMS'), sums.join(''));
}

function printFiles(folder) {
  const names = readdirSync(folder).sort();
  const sizes = names.map((name) => `${(statSync(join(folder, name)).size / 1e6).toFixed(1)} MB`);
  const width = Math.max(...sizes.map((size) => size.length));
  console.log(`\n${relative(process.cwd(), folder)}/`);
  for (const [index, name] of names.entries()) console.log(`  ${sizes[index].padStart(width)}  ${name}`);
}

function tag({ version, commit }) {
  execFileSync('git', ['tag', '--annotate', '--message', `Junction ${version}`, `v${version}`, commit], {
    cwd: ROOT,
  });
  console.log(`
The tag v${version} is made. To publish:
  git push origin v${version}
  skopeo copy --all oci-archive:release/${version}/junction-${version}-linux.oci.tar docker://REGISTRY/junction:${version}
and upload the files of release/${version} with NOTES.md as its text.`);
}

await endingPlainly(main);
