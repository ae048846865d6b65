/** `npm run bundle:node`: what a node without containers needs, as an archive and as a Debian package. */
import { readFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { setUp } from './setup.mjs';
import { ARCHITECTURES } from './ship/image/architectures.mjs';
import { nodeFor } from './ship/node.mjs';
import { checkClean, gitIn } from './ship/releaseChecks.mjs';
import { runtimePackages } from './ship/runtime.mjs';
import { commitOf } from './ship/source.mjs';
import { endWithAncestors } from './support/ancestors.mjs';
import { ROOT } from './support/paths.mjs';
import { Failure, endingPlainly } from './support/run.mjs';
import { step } from './support/steps.mjs';

const HELP = `Builds what a node needs to run Junction as a systemd service: Node, the program, the unit, completion, licences.

Usage:
  npm run bundle:node [-- flags]

Writes to release/, for each architecture:
  junction-VERSION-linux-x64.tar.gz    to unpack anywhere
  junction_VERSION_amd64.deb           for Debian and Ubuntu

The same commit gives the same bytes. Root is not needed.

Flags:
      --arch ARCH       amd64 (x64), arm64 or all (default: this machine's)
      --output FOLDER   where to write it (default: release)
      --allow-dirty     build with changes that no commit has; the version then ends in -dirty
  -h, --help            this text
`;

async function main() {
  const options = parse();
  if (options.help) {
    process.stdout.write(HELP);
    return;
  }
  const architectures = architecturesOf(options.arch ?? process.arch);
  const version = versionOf(options['allow-dirty']);
  await setUp({ programs: 'bundle' });
  // It loads npm packages, which are there only now.
  const { buildNodeBundle } = await import('./ship/bundle/bundle.mjs');
  const folder = resolve(ROOT, options.output);
  const built = [];
  for (const arch of architectures) {
    // What they fetch has lines of its own.
    await runtimePackages(arch);
    await nodeFor(arch);
    const label = `Building the bundle for ${arch} (about a minute and a half)`;
    built.push(...(await step(label, (say) => buildNodeBundle(folder, { arch, version, say }))));
  }
  console.log(`\n${relative(process.cwd(), folder) || '.'}/`);
  for (const { name, size } of built) console.log(`  ${(size / 1e6).toFixed(1).padStart(5)} MB  ${name}`);
}

function parse() {
  const options = {
    arch: { type: 'string' },
    output: { type: 'string', default: 'release' },
    'allow-dirty': { type: 'boolean', default: false },
    help: { type: 'boolean', short: 'h', default: false },
  };
  try {
    return parseArgs({ options }).values;
  } catch (error) {
    throw new Failure(`${error.message}\n\nSee: npm run bundle:node -- --help`);
  }
}

/** By Node's names. */
function architecturesOf(name) {
  const known = Object.values(ARCHITECTURES);
  if (name === 'all') return known;
  const arch = ARCHITECTURES[name] ?? name;
  if (known.includes(arch)) return [arch];
  throw new Failure(
    `--arch ${JSON.stringify(name)} must be one of ${[...Object.keys(ARCHITECTURES), 'all'].join(', ')}`,
  );
}

function versionOf(allowsDirty) {
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  if (!commitOf(['.']).endsWith('-dirty')) return version;
  if (allowsDirty) return `${version}-dirty`;
  checkClean(
    gitIn(ROOT),
    '\nTo try them out, with a version that says so: npm run bundle:node -- --allow-dirty',
  );
  return version;
}

endWithAncestors();
await endingPlainly(main);
