/** A Debian 12 with systemd and what the package depends on, and nothing else: 140 MB, made once. */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { script } from '../scripts.ts';

const SUITE = 'bookworm';
/** `iproute2` is for the test: interfaces, and the namespace of a pod. */
const PACKAGES = ['systemd-sysv', 'iptables', 'kmod', 'libstdc++6', 'iproute2'];
const UNREAD = ['doc', 'locale', 'man', 'info'].map((name) => `path-exclude=/usr/share/${name}/*`);

export async function debianRoot(): Promise<string> {
  const [{ MIRROR, KEYRING }, { cached }] = [await script('ship/image/debian'), await script('ship/cache')];
  const options = [
    '--variant=essential',
    `--include=${PACKAGES.join(',')}`,
    '--aptopt=APT::Install-Recommends "false"',
    ...UNREAD.map((line) => `--dpkgopt=${line}`),
  ];
  const source = `deb [signed-by=${KEYRING}] ${MIRROR}/debian ${SUITE} main`;
  const hash = createHash('sha256')
    .update(JSON.stringify([options, source]))
    .digest('hex')
    .slice(0, 16);
  const folder = await cached(`systemd-root-${hash}`, async (fresh) => {
    // Not the folder itself, which is there already and belongs to whoever runs this. In mounts of its own: mmdebstrap
    // has left /proc mounted in the folder.
    const command = ['--mount', 'mmdebstrap', ...options, SUITE, join(fresh, 'root'), source];
    await promisify(execFile)('unshare', command);
  });
  return join(folder, 'root');
}
