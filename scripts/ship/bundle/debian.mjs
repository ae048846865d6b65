/** The Debian package, by dpkg-deb. */
import { createHash } from 'node:crypto';
import { copyFileSync, mkdirSync, readFileSync, renameSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../../support/paths.mjs';
import { runQuietly } from '../../support/run.mjs';
import { ARCHITECTURES } from '../image/architectures.mjs';
import { filesBelow, settle, template, unitFor, write } from './tree.mjs';
import { epochOf } from '../source.mjs';

const SCRIPTS = ['postinst', 'prerm', 'postrm'];
const CONFFILES = ['etc/default/junction', 'etc/junction/config.conf'];

/** A pre-release is older than its release: 0.3.0-rc.1 is 0.3.0~rc.1 to Debian. */
function debianVersion(version) {
  return version.replace('-', '~');
}

export function packageFile({ arch, version }) {
  return `junction_${debianVersion(version)}_${architectureOf(arch)}.deb`;
}

function architectureOf(arch) {
  return Object.keys(ARCHITECTURES).find((name) => ARCHITECTURES[name] === arch);
}

/** Takes the files out of `tree`, which `layOut` made. `compression`: flags of dpkg-deb. */
export async function writePackage({ tree, root, file, compression, ...kind }) {
  mkdirSync(join(root, 'usr/lib'), { recursive: true });
  for (const name of ['bin', 'lib/junction', 'share']) renameSync(join(tree, name), join(root, 'usr', name));
  renameSync(join(tree, 'etc'), join(root, 'etc'));
  write(root, 'lib/systemd/system/junction.service', unitFor('/usr/bin/junction'));
  const documents = join(root, 'usr/share/doc/junction');
  write(documents, 'copyright', template('debian/copyright'));
  copyFileSync(join(ROOT, 'CHANGELOG.md'), join(documents, 'changelog'));
  const texts = [join(documents, 'changelog'), join(root, 'usr/share/man/man8/junction.8')];
  await runQuietly(['gzip', '-9n', ...texts]);
  const files = filesBelow(root);
  write(root, 'DEBIAN/control', controlOf(root, files, kind));
  write(root, 'DEBIAN/conffiles', CONFFILES.map((path) => `/${path}\n`).join(''));
  const sums = files.filter((path) => !CONFFILES.includes(path)).map((path) => sumOf(root, path));
  write(root, 'DEBIAN/md5sums', sums.join(''));
  for (const name of SCRIPTS) write(root, `DEBIAN/${name}`, template(`debian/${name}`), 0o755);
  settle(root);
  const command = ['dpkg-deb', '--root-owner-group', ...compression, '--build', root, file];
  await runQuietly(command, { env: { SOURCE_DATE_EPOCH: String(epochOf() ?? 0) } });
}

function controlOf(root, files, { arch, version }) {
  const kilobytes = files.reduce((sum, path) => sum + Math.ceil(statSync(join(root, path)).size / 1024), 0);
  return template('debian/control', {
    VERSION: debianVersion(version),
    ARCHITECTURE: architectureOf(arch),
    SIZE: String(kilobytes),
    GLIBC: glibcOf(join(root, 'usr/lib/junction')),
  });
}

/** The newest version of glibc whose functions Node and koffi use: each is named in the file, by the linker. */
function glibcOf(program) {
  const minors = ['bin/node', 'koffi.node'].flatMap((name) => {
    const text = readFileSync(join(program, name), 'latin1');
    return [...text.matchAll(/GLIBC_2\.(\d+)/g)].map(([, minor]) => Number(minor));
  });
  return `2.${minors.reduce((most, minor) => Math.max(most, minor))}`;
}

/** As `dpkg --verify` reads them. */
function sumOf(root, path) {
  const sum = createHash('md5').update(readFileSync(join(root, path)));
  return `${sum.digest('hex')}  ${path}\n`;
}
