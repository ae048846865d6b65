/** The system's programs that Junction and its lab use, and how to get them. */
import { accessSync, constants, existsSync, readFileSync } from 'node:fs';
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
const GUEST_PACKAGES =
  process.arch === 'x64' ? { 'user-mode-linux': ['linux.uml'], ...(hasAmx() ? { tcc: ['tcc'] } : {}) } : {};

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
  kmod: ['modprobe'],
  'dbus-daemon': ['dbus-daemon'],
  bsdutils: ['script'],
  conntrack: ['conntrack'],
  ipset: ['ipset'],
  ipvsadm: ['ipvsadm'],
  ...BENCH_PACKAGES,
  zsh: ['zsh'],
  fish: ['fish'],
};

/** For the tests of what is released. */
const SHIP_PACKAGES = {
  ...GUEST_PACKAGES,
  ...IMAGE_PACKAGES,
  ...CONTAINER_PACKAGES,
  ...BUNDLE_PACKAGES,
  kmod: ['modprobe'],
  ipvsadm: ['ipvsadm'],
  ...BENCH_PACKAGES,
  prometheus: ['prometheus', 'promtool'],
  zsh: ['zsh'],
  fish: ['fish'],
};

/** What a package is installed for. */
const REASONS = {
  'user-mode-linux': 'a kernel with IPVS, which is booted for IPVS mode (41 MB to fetch, 116 MB on disk)',
  tcc: 'helps that kernel to boot on a processor with AMX',
  chromium: 'shows the page (104 MB to fetch, 350 MB on disk)',
  iptables: 'iptables mode writes rules with it',
  iproute2: 'makes the links and addresses of test networks',
  'util-linux': 'makes network namespaces',
  mount: 'mounts what a pod has',
  kmod: 'loads modules of the kernel',
  'dbus-daemon': 'the message bus that firewalld speaks on',
  bsdutils: 'a terminal for commands',
  conntrack: 'shows tracked connections',
  ipset: 'shows the sets of IPVS mode',
  ipvsadm: 'shows the virtual servers of IPVS mode',
  nftables: 'shows nftables rules, and changes them as other programs do',
  zsh: 'completion of commands',
  fish: 'completion of commands',
  mmdebstrap: 'unpacks Debian for the image',
  dpkg: 'unpacks and builds Debian packages',
  gzip: 'compresses the image and the bundle',
  tar: 'packs the bundle',
  'debian-archive-keyring': 'checks the packages of the image',
  runc: 'runs the image',
  'golang-github-containers-common': 'the system calls that a container may use',
  prometheus: 'evaluates alerts and dashboards; unpacked, not installed',
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
  image: IMAGE_PACKAGES,
  container: CONTAINER_PACKAGES,
  bundle: BUNDLE_PACKAGES,
  tests: { ...PACKAGES, ...TEST_PACKAGES },
  shipTests: { ...PACKAGES, ...SHIP_PACKAGES },
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

/** A line for each package, of what it is for. */
export function reasonsFor(packages) {
  const width = Math.max(...packages.map((name) => name.length));
  return packages.map((name) => `  ${name.padEnd(width)}  ${REASONS[name]}`).join('\n');
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

/** See `lab/guest/processorState.ts`. */
function hasAmx() {
  return existsSync('/proc/cpuinfo') && /\bamx_tile\b/.test(readFileSync('/proc/cpuinfo', 'utf8'));
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
