/** `npm run image`: builds the container image. `npm run image -- --help` says what it takes. */
import { mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { setUp } from './setup.mjs';
import { updateLock } from './ship/image/debian.mjs';
import { imageOf, indexOf, writeImage } from './ship/image/oci.mjs';
import { HELP, parseOptions } from './ship/image/options.mjs';
import { sbomOf } from './ship/image/sbom.mjs';
import { checkClean, gitIn } from './ship/releaseChecks.mjs';
import { moveInto, withScratch } from './ship/scratch.mjs';
import { commitOf, epochOf } from './ship/source.mjs';
import { endWithAncestors } from './support/ancestors.mjs';
import { ROOT } from './support/paths.mjs';
import { Failure, endingPlainly } from './support/run.mjs';
import { step } from './support/steps.mjs';

async function main() {
  const options = parseOptions(process.argv.slice(2));
  if (options.help) {
    process.stdout.write(HELP);
    return;
  }
  if (options.updatesPackages) {
    await setUp({ programs: 'image', builds: false });
    await updatePackages(options);
    return;
  }
  const source = sourceOf(options);
  await setUp({ programs: 'image', builds: false });
  const folder = resolve(ROOT, options.output);
  await withFolder(folder, () =>
    withScratch(tmpdir(), (scratch) =>
      withScratch(folder, async (fresh) => {
        const built = await build({ ...options, source, scratch }, fresh);
        for (const name of readdirSync(fresh).sort()) moveInto(join(fresh, name), join(folder, name));
        print(built, folder, source);
      }),
    ),
  );
}

/** What is built, and what it is called. */
function sourceOf({ allowDirty }) {
  const commit = commitOf(['.']);
  const epoch = epochOf();
  if (commit === 'unknown' || epoch === undefined)
    throw new Failure(
      'An image says which commit it is of, and this is no git checkout. Clone the repository, or give both: ' +
        'JUNCTION_COMMIT=… SOURCE_DATE_EPOCH=… npm run image',
    );
  const isDirty = commit.endsWith('-dirty');
  if (isDirty && !allowDirty)
    checkClean(
      gitIn(ROOT),
      '\nTo try them out in an image, with a version that says so: npm run image -- --allow-dirty',
    );
  const { version: number } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  const version = isDirty ? `${number}-dirty` : number;
  const created = new Date(epoch * 1000).toISOString().replace('.000Z', 'Z');
  // The name that the chart asks for, where nobody has said another.
  return { commit, epoch, created, version, reference: `localhost/junction:${version}` };
}

async function build(options, fresh) {
  const { architectures, source } = options;
  // It loads npm packages, which are there only now.
  const { buildLayers } = await import('./ship/image/layers.mjs');
  const built = [];
  for (const arch of architectures) {
    const { layers, packages } = await buildLayers(arch, options);
    const image = imageOf({ arch, layers, source });
    const name = `junction-${source.version}-linux-${arch}`;
    await step(`Writing the image for ${arch}`, async () => {
      await writeImage(fresh, name, image, source);
      const { digest } = image.descriptor;
      const sbom = await sbomOf({ arch, packages, source, digest });
      const lines = packages.map(
        (each) => `${each.name} ${each.version} ${each.architecture} ${each.sha256}\n`,
      );
      writeFileSync(join(fresh, `${name}.spdx.json`), `${JSON.stringify(sbom, undefined, 2)}\n`);
      writeFileSync(join(fresh, `${name}.packages`), lines.join(''));
      writeFileSync(join(fresh, `${name}.digest`), `${digest}\n`);
    });
    built.push({ name, image, layers });
  }
  if (built.length > 1) built.push(await writeIndex(built, source, fresh));
  return built;
}

async function writeIndex(built, source, fresh) {
  const name = `junction-${source.version}-linux`;
  const image = indexOf(
    built.map(({ image: each }) => each),
    source,
  );
  await step('Writing the image for all of them', () => writeImage(fresh, name, image, source));
  writeFileSync(join(fresh, `${name}.digest`), `${image.descriptor.digest}\n`);
  return { name, image, layers: [] };
}

function print(built, folder, { reference, commit }) {
  const megabytes = (bytes) => `${(bytes / 1e6).toFixed(1)} MB`.padStart(12);
  console.log(`\n${reference} of ${commit}\n`);
  for (const { name, image, layers } of built) {
    console.log(`${join(relative(process.cwd(), folder), name)}.oci.tar`);
    console.log(`  ${image.descriptor.digest}`);
    if (layers.length === 0) continue;
    const sum = (field) => layers.reduce((total, layer) => total + layer[field], 0);
    const total = { name: 'together', size: sum('size'), unpackedSize: sum('unpackedSize') };
    console.log(`  ${''.padEnd(18)}${'compressed'.padStart(12)}${'unpacked'.padStart(12)}`);
    for (const each of [...layers, total])
      console.log(`  ${each.name.padEnd(18)}${megabytes(each.size)}${megabytes(each.unpackedSize)}`);
  }
}

async function updatePackages({ architectures, mirror }) {
  await withScratch(tmpdir(), async (scratch) => {
    for (const arch of architectures) {
      const changes = await step(`Asking for Debian's packages for ${arch}`, () =>
        updateLock(arch, { scratch, mirror }),
      );
      console.log(changes.length === 0 ? '  nothing changed' : changes.map((line) => `  ${line}`).join('\n'));
    }
  });
  console.log('\nCommit deploy/image/ with what changed.');
}

/** A folder that was made for nothing disappears. */
async function withFolder(folder, work) {
  const made = mkdirSync(folder, { recursive: true });
  try {
    await work();
  } catch (error) {
    if (made) removeEmpty(folder);
    throw error;
  }
}

function removeEmpty(folder) {
  try {
    rmdirSync(folder);
  } catch (error) {
    if (error.code !== 'ENOTEMPTY') throw error;
  }
}

endWithAncestors();
await endingPlainly(main);
