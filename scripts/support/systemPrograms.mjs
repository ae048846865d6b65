/** The system's programs that Junction and its lab use, and how to get them. */
import { accessSync, constants, existsSync } from 'node:fs';
import { join } from 'node:path';
import { Failure, runQuietly } from './run.mjs';
import { isUnpacked, unpack, unpackedFolder } from './unpacked.mjs';

/** By Debian's names; other systems call these packages the same or nearly so. */
const PACKAGES = {
  iptables: ['iptables', 'iptables-save', 'iptables-restore', 'ip6tables', 'ip6tables-restore'],
  iproute2: ['ip'],
  'util-linux': ['unshare', 'nsenter', 'setpriv'],
  mount: ['mount'],
};

/** Debian has User-mode Linux for x64 alone; elsewhere the demo and the tests say so. */
const GUEST_PACKAGES = process.arch === 'x64' ? { 'user-mode-linux': ['linux.uml'] } : {};

/** For the page. Fonts come with it: what it needs to find them depends on some. */
const BROWSER_PACKAGES = { chromium: ['chromium'] };

/** `npm run image`. Debian's keys come with Debian, and are to be had elsewhere. */
const IMAGE_PACKAGES = {
  mmdebstrap: ['mmdebstrap'],
  dpkg: ['dpkg-deb'],
  gzip: ['gzip'],
  'debian-archive-keyring': ['/usr/share/keyrings/debian-archive-keyring.gpg'],
};

/** To run what is in an image. The second has what container runtimes allow a container to ask of the kernel. */
const CONTAINER_PACKAGES = {
  runc: ['runc'],
  'golang-github-containers-common': ['/usr/share/containers/seccomp.json'],
};

/** `npm run bundle:node`. */
const BUNDLE_PACKAGES = { dpkg: ['dpkg-deb'], gzip: ['gzip'], tar: ['tar'] };

/** Benchmarks and the soak do what other programs do to the rules. */
const BENCH_PACKAGES = { nftables: ['nft'] };

const TEST_PACKAGES = {
  ...GUEST_PACKAGES,
  ...BROWSER_PACKAGES,
  ...IMAGE_PACKAGES,
  ...CONTAINER_PACKAGES,
  ...BUNDLE_PACKAGES,
  kmod: ['modprobe'],
  'dbus-daemon': ['dbus-daemon'],
  bsdutils: ['script'],
  conntrack: ['conntrack'],
  ipset: ['ipset'],
  ipvsadm: ['ipvsadm'],
  ...BENCH_PACKAGES,
  prometheus: ['prometheus', 'promtool'],
  zsh: ['zsh'],
  fish: ['fish'],
};

/** By what they are for: a mode of the demo, benchmarks, what ships, or the tests. */
const NEEDED = {
  none: {},
  iptables: PACKAGES,
  nftables: PACKAGES,
  ipvs: { ...PACKAGES, ...GUEST_PACKAGES, kmod: ['modprobe'] },
  bench: { ...PACKAGES, ...BENCH_PACKAGES },
  guestBench: {
    ...PACKAGES,
    ...BENCH_PACKAGES,
    ...GUEST_PACKAGES,
    kmod: ['modprobe'],
    ipset: ['ipset'],
    ipvsadm: ['ipvsadm'],
  },
  browser: { ...PACKAGES, ...BROWSER_PACKAGES },
  image: IMAGE_PACKAGES,
  container: CONTAINER_PACKAGES,
  bundle: BUNDLE_PACKAGES,
  tests: { ...PACKAGES, ...TEST_PACKAGES },
};

/** Where `iptables` lives, which ordinary users' PATH often leaves out. */
const FOLDERS = ['/usr/local/sbin', '/usr/sbin', '/sbin', '/usr/local/bin', '/usr/bin', '/bin'];

export function missingPackages(purpose) {
  const wanted = NEEDED[purpose];
  return Object.keys(wanted).filter((name) =>
    wanted[name].some((program) => !isInstalled(program, [unpackedFolder(name)])),
  );
}

export function canInstall() {
  return process.getuid?.() === 0 && existsSync('/usr/bin/apt-get');
}

/** Debian 12 fetches 41 MB for the first, which take 116 MB of the disk; 104 MB for the second, which take 350 MB. */
const LARGE = new Set(['user-mode-linux', 'chromium']);

export function howLong(packages) {
  return packages.some((name) => LARGE.has(name)) ? ' (about a minute, once)' : '';
}

export function howToInstall(packages) {
  const names = packages.join(' ');
  if (process.platform !== 'linux') return 'Junction works on Linux only: it programs the Linux kernel.';
  if (existsSync('/usr/bin/apt-get')) return `Install what is missing with: sudo apt-get install -y ${names}`;
  const others = { 'dnf install -y': '/usr/bin/dnf', 'apk add': '/sbin/apk', 'pacman -S': '/usr/bin/pacman' };
  const found = Object.keys(others).find((command) => existsSync(others[command]));
  return found
    ? `Install what is missing with: sudo ${found} ${names}`
    : `Install these packages (the names are Debian's): ${names}`;
}

export async function install(packages, purpose, say) {
  const env = { DEBIAN_FRONTEND: 'noninteractive' };
  const installed = packages.filter((name) => !isUnpacked(name));
  const command = ['apt-get', 'install', '-y', '-q', '--no-install-recommends', ...installed];
  const getAll = async () => {
    if (installed.length > 0) await runQuietly(command, { env });
    for (const name of packages.filter(isUnpacked)) await unpack(name);
  };
  try {
    await getAll();
  } catch {
    // A fresh machine has no package lists, or old ones.
    say('Fetching package lists');
    await runQuietly(['apt-get', 'update', '-q'], { env });
    say(`Installing ${packages.join(', ')}`);
    await getAll();
  }
  const still = missingPackages(purpose);
  if (still.length > 0) throw new Failure(`after installing, ${still.join(', ')} are still incomplete`);
}

/** A program by its name, or a file by its path. */
function isInstalled(program, more = []) {
  if (program.startsWith('/')) return existsSync(program);
  const folders = [...more, ...(process.env.PATH ?? '').split(':').filter(Boolean), ...FOLDERS];
  return folders.some((folder) => {
    try {
      accessSync(join(folder, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}
