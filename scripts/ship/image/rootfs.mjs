/** The bottom layer: what of the Debian packages runs, and the few files without which programs stumble. */
const DROPPED = [
  // Devices are the container runtime's; apt's settings are of no use without apt.
  /^dev(\/|$)/,
  /^etc\/(apt|dpkg|fstab|hostname|resolv\.conf)(\/|$)/,
  // Documentation but for copyright notices; what debuggers and package checkers read.
  /^usr\/share\/doc\/[^/]+\/(?!copyright$)/,
  /^usr\/share\/(man|info|lintian|gcc|gdb|locale|bug|iptables)(\/|$)/,
  // Character sets of iconv, and profiling; neither Node nor iptables load them.
  /^usr\/lib\/[^/]+\/(gconv|audit)(\/|$)/,
  /^usr\/lib\/[^/]+\/lib(memusage|pcprofile|thread_db|c_malloc_debug|mvec|nsl|nss_hesiod|nss_compat|BrokenLocale)\.so/,
  // Shell and Python scripts, and bridges, which have no part in this.
  /^usr\/s?bin\/(ip6?tables-apply|nfnl_osf|(arp|eb)tables.*|iptables-xml|xtables-monitor|.*-translate)$/,
];

/** As Debian's system is since its release 12: these are links into /usr. */
const MERGED = ['bin', 'lib', 'lib64', 'sbin'];

/** Which of the two the plain name means is Debian's choice; Junction looks at the node and takes the one in use there. */
const ALTERNATIVES = ['iptables', 'ip6tables'].flatMap((name) =>
  ['', '-save', '-restore'].map((suffix) => ({
    path: `usr/sbin/${name}${suffix}`,
    type: 'symlink',
    target: 'xtables-nft-multi',
  })),
);

const FOLDERS = ['etc', 'proc', 'root', 'run', 'sys', 'dev', 'tmp', 'usr/lib/modules', 'var/lib/kube-proxy'];

const TEXTS = {
  'etc/passwd':
    'root:x:0:0:root:/root:/usr/sbin/nologin\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n',
  'etc/group': 'root:x:0:\nnogroup:x:65534:\n',
  // Without it glibc asks the network for names that /etc/hosts has.
  'etc/nsswitch.conf': 'passwd: files\ngroup: files\nhosts: files dns\nprotocols: files\nservices: files\n',
  // Scanners take the advisories of this system for the packages that are listed in /var/lib/dpkg/status.d.
  'usr/lib/os-release': `PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"
NAME="Debian GNU/Linux"
VERSION_ID="12"
VERSION="12 (bookworm)"
VERSION_CODENAME=bookworm
ID=debian
HOME_URL="https://www.debian.org/"
`,
};

const STICKY_FOR_ALL = 0o1777;

/** Entries of the layer's archive. */
export function rootfsEntries({ entries, packages }) {
  const kept = entries
    .map((entry) => ({ ...entry, path: mergedPath(entry.path) }))
    .filter(({ path, type }) => type !== 'folder' && !DROPPED.some((pattern) => pattern.test(path)))
    .map(withoutSpecialBits);
  return [
    ...kept,
    ...MERGED.map((path) => ({ path, type: 'symlink', target: `usr/${path}` })),
    ...['usr/bin', 'usr/lib64', ...FOLDERS].map((path) => ({
      path,
      type: 'folder',
      ...(path === 'tmp' && { mode: STICKY_FOR_ALL }),
    })),
    ...ALTERNATIVES,
    ...Object.entries(TEXTS).map(([path, text]) => ({ path, type: 'file', data: Buffer.from(text) })),
    { path: 'etc/os-release', type: 'symlink', target: '../usr/lib/os-release' },
    ...packages.map(({ name, control }) => ({
      path: `var/lib/dpkg/status.d/${name}`,
      type: 'file',
      data: Buffer.from(control),
    })),
  ];
}

function mergedPath(path) {
  return MERGED.includes(path.split('/', 1)[0]) ? `usr/${path}` : path;
}

/** No file of the image makes anybody more than they are. */
function withoutSpecialBits(entry) {
  return entry.mode === undefined ? entry : { ...entry, mode: entry.mode & 0o755 };
}
