/** For nodes without containers: an archive to unpack anywhere, and a Debian package. The same bytes for the same commit. */
import { mkdirSync, renameSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { runQuietly } from '../../support/run.mjs';
import { packageFile, writePackage } from './debian.mjs';
import { layOut, settle, template, unitFor, write } from './tree.mjs';
import { withScratch } from '../scratch.mjs';
import { epochOf } from '../source.mjs';

/** Measured with Node 24.21.0: of its 127 MB, gzip leaves 44 and xz 31. */
export const SMALL = { archive: 'gzip -9n', package: ['-Zxz'] };
/** For tests. */
export const QUICK = { archive: 'gzip -1n', package: ['-Znone'] };

/**
 * Writes both to `destination`, and answers with their names and sizes. What is there by these names is replaced at the end.
 * `arch` is Node's name of it.
 */
export async function buildNodeBundle(destination, { arch, version, compression = SMALL, say = () => {} }) {
  mkdirSync(destination, { recursive: true });
  const name = `junction-${version}-linux-${arch}`;
  const [archive, debian] = [`${name}.tar.gz`, packageFile({ arch, version })];
  await withScratch(destination, async (scratch) => {
    const tree = join(scratch, name);
    say(`Assembling Junction for ${arch}`);
    await layOut(tree, { arch, version });
    say(`Packing ${archive}`);
    await writeArchive({
      tree,
      file: join(scratch, archive),
      arch,
      version,
      compression: compression.archive,
    });
    say(`Packing ${debian}`);
    const [root, file] = [join(scratch, 'root'), join(scratch, debian)];
    await writePackage({ tree, root, file, arch, version, compression: compression.package });
    for (const each of [archive, debian]) renameSync(join(scratch, each), join(destination, each));
  });
  return [archive, debian].map((each) => ({ name: each, size: statSync(join(destination, each)).size }));
}

async function writeArchive({ tree, file, arch, version, compression }) {
  const name = basename(tree);
  write(tree, 'lib/systemd/system/junction.service', unitFor('/opt/junction/bin/junction'));
  write(tree, 'README.md', template('README.md', { NAME: name, VERSION: version, ARCH: arch }));
  settle(tree);
  const same = [
    '--sort=name',
    '--format=ustar',
    '--owner=0',
    '--group=0',
    '--numeric-owner',
    `--mtime=@${epochOf() ?? 0}`,
  ];
  const packing = `--use-compress-program=${compression}`;
  await runQuietly(['tar', '--create', '--file', file, ...same, packing, '--directory', dirname(tree), name]);
}
