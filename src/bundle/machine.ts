/** What a bundle says of the machine: versions, and the kernel settings that decide about forwarding. */
import { release, arch } from 'node:os';
import { attempt } from '../errors.ts';
import { readFileSync } from 'node:fs';
import { readSysctl } from '../system/sysctl.ts';
import { type Argv, type CommandRunner, run } from '../system/processes.ts';
import { BUILD, VERSION } from '../version.ts';

const PROGRAMS: Readonly<Record<string, Argv>> = {
  iptables: ['iptables', '--version'],
  ip6tables: ['ip6tables', '--version'],
  nft: ['nft', '--version'],
  ipset: ['ipset', '--version'],
  ipvsadm: ['ipvsadm', '--version'],
};
const PROGRAM_LIMIT_MS = 5000;

export async function readVersions(runner: CommandRunner = run): Promise<Readonly<Record<string, string>>> {
  const versions: Record<string, string> = {
    junction: VERSION,
    commit: BUILD.commit,
    node: process.version,
    kernel: `${release()} ${arch()}`,
    system: attempt(() => systemName(readFileSync('/etc/os-release', 'utf8'))) ?? 'unknown',
  };
  for (const [name, argv] of Object.entries(PROGRAMS)) {
    versions[name] = await runner(argv, { timeoutMs: PROGRAM_LIMIT_MS }).then(
      ({ stdout, stderr }) => (stdout || stderr).trim().split('\n')[0] ?? '',
      () => 'not installed',
    );
  }
  return versions;
}

function systemName(text: string): string {
  return /^PRETTY_NAME="?([^"\n]*)/m.exec(text)?.[1] ?? 'unknown';
}

const SYSCTLS: readonly string[] = [
  'net/ipv4/ip_forward',
  'net/ipv6/conf/all/forwarding',
  'net/bridge/bridge-nf-call-iptables',
  'net/bridge/bridge-nf-call-ip6tables',
  'net/ipv4/conf/all/route_localnet',
  'net/ipv4/conf/all/rp_filter',
  'net/ipv4/conf/default/rp_filter',
  'net/ipv4/conf/all/arp_ignore',
  'net/ipv4/conf/all/arp_announce',
  'net/ipv4/ip_local_port_range',
  'net/ipv4/ip_local_reserved_ports',
  'net/netfilter/nf_conntrack_count',
  'net/netfilter/nf_conntrack_max',
  'net/netfilter/nf_conntrack_buckets',
  'net/netfilter/nf_conntrack_tcp_be_liberal',
  'net/netfilter/nf_conntrack_tcp_timeout_established',
  'net/netfilter/nf_conntrack_tcp_timeout_close_wait',
  'net/netfilter/nf_conntrack_udp_timeout',
  'net/netfilter/nf_conntrack_udp_timeout_stream',
  'net/ipv4/vs/conntrack',
  'net/ipv4/vs/conn_reuse_mode',
  'net/ipv4/vs/expire_nodest_conn',
  'net/ipv4/vs/expire_quiescent_template',
];

/** Those that this kernel has. */
export function readSysctls(root: string): Readonly<Record<string, string>> {
  return Object.fromEntries(
    SYSCTLS.flatMap((name) => {
      const value = attempt(() => readSysctl(name, { root }));
      return value === undefined ? [] : [[name.replaceAll('/', '.'), value]];
    }),
  );
}
