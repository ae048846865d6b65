/** All that doctor asks of the machine: reads, in the network namespace of this thread, and trials that leave nothing behind. */
import { readdirSync, readFileSync } from 'node:fs';
import { release } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { findKubeProxyProcesses } from '../system/kubeProxy.ts';
import { attempt, JunctionError } from '../errors.ts';
import { FAMILIES, type Family, type Ip } from '../model/ip.ts';
import { cleanIptables } from '../modes/iptables/cleanup.ts';
import { readAddresses } from '../modes/ipvs/device.ts';
import { findTables, type StaleTable } from '../modes/nftables/cleanup.ts';
import { withChannel } from '../netlink/sockets.ts';
import {
  decodeLink,
  decodeRoute,
  getLinks,
  getRoute,
  IFF_UP,
  type FoundRoute,
} from '../netlink/rtnetlink.ts';
import { type BaseChain, decodeChain, getChains } from '../netlink/nftables/objects.ts';
import { NETLINK_NETFILTER, NETLINK_ROUTE } from '../netlink/socket.ts';
import { countCpus } from '../system/conntrackSysctls.ts';
import { type CommandRunner, run, timeLimited } from '../system/processes.ts';
import { readSysctl } from '../system/sysctl.ts';

const PROGRAM_LIMIT_MS = 30_000;
const NFT_FAMILIES = ['ip', 'ip6', 'inet'] as const;
/** What nftables.service loads on Debian, and on Fedora and its relatives. */
const NFT_FILES = ['/etc/nftables.conf', '/etc/sysconfig/nftables.conf'];

export interface DoctorLink {
  readonly index: number;
  readonly name: string;
  /** `bridge`, `veth`, `vxlan`; hardware and loopback have none. */
  readonly kind: string | undefined;
  readonly isUp: boolean;
  readonly addresses: readonly Ip[];
}

export interface NftBaseChain extends Pick<BaseChain, 'hook' | 'policy' | 'priority'> {
  readonly family: string;
  readonly table: string;
  readonly name: string;
}

export type RouteLook =
  | ({ readonly state: 'found' } & FoundRoute)
  /** `ENETUNREACH`, `EHOSTUNREACH`, `EXDEV` */
  | { readonly state: 'refused'; readonly errno: string };

export interface DoctorMachine {
  readonly kernelRelease: string;
  readonly cpus: number;
  readonly run: CommandRunner;
  /** `undefined`: there is none, or it may not be read. */
  sysctl(name: string): string | undefined;
  /** Of /proc: `net/netstat`, `4711/status`. */
  procFile(path: string): string | undefined;
  /** Processes of this network namespace with that name. */
  processesNamed(name: string): readonly string[];
  links(): Promise<readonly DoctorLink[]>;
  /** Of all tables of nf_tables, those of iptables-nft among them. */
  nftBaseChains(): Promise<readonly NftBaseChain[]>;
  /** Tables of nf_tables with these names that no running process owns. */
  tables(names: readonly string[]): Promise<readonly StaleTable[]>;
  /** What an iptables or ipvs mode left. */
  staleRules(family: Family): Promise<{ readonly chains: number; readonly rules: number }>;
  /** Where the kernel would send a packet; with `arrival`, whether it would take it at all. */
  route(to: Ip, arrival?: { readonly source: Ip; readonly inLink: number }): Promise<RouteLook>;
  hasIpv6(): boolean;
  /** Files that nftables.service loads, with those that they include. */
  savedRulesets(): readonly SavedRuleset[];
}

export interface SavedRuleset {
  readonly path: string;
  readonly text: string;
}

export function doctorMachine(sysctlRoot = '/proc/sys', runner: CommandRunner = run): DoctorMachine {
  return {
    kernelRelease: release(),
    cpus: countCpus(),
    run: timeLimited(runner, PROGRAM_LIMIT_MS),
    sysctl: (name) => attempt(() => readSysctl(name, { root: sysctlRoot })),
    procFile: (path) => attempt(() => readFileSync(`/proc/${path}`, 'utf8')),
    processesNamed: (name) => findKubeProxyProcesses('/proc', name),
    links: readLinks,
    nftBaseChains: readBaseChains,
    tables: async (names) =>
      (await withChannel(NETLINK_NETFILTER, (channel) => findTables(channel, FAMILIES, names))).stale,
    staleRules: async (family) => {
      const cleaned = await cleanIptables(family, { variant: 'auto', dryRun: true, runner });
      return {
        chains: cleaned.reduce((sum, { chains }) => sum + chains.length, 0),
        rules: cleaned.reduce((sum, { rules }) => sum + rules.length, 0),
      };
    },
    route: lookUpRoute,
    hasIpv6: () => (attempt(() => readdirSync('/proc/sys/net/ipv6/conf')) ?? []).length > 0,
    savedRulesets: () => readSavedRulesets(NFT_FILES),
  };
}

/** A file that includes itself, or a pattern of a directory with many files, ends here. */
const MAX_RULESETS = 100;

export function readSavedRulesets(paths: readonly string[]): readonly SavedRuleset[] {
  const found = new Map<string, SavedRuleset>();
  const waiting = [...paths];
  for (let path = waiting.shift(); path !== undefined && found.size < MAX_RULESETS; path = waiting.shift()) {
    const file = path;
    const text = found.has(file) ? undefined : attempt(() => readFileSync(file, 'utf8'));
    if (text === undefined) continue;
    found.set(file, { path: file, text });
    for (const [, included = ''] of text.matchAll(/^\s*include\s+"([^"]+)"/gm))
      waiting.push(...matchingFiles(resolve('/etc', included)));
  }
  return [...found.values()];
}

/** `*` stands for any part of a file's name, as in nft. */
function matchingFiles(pattern: string): readonly string[] {
  const [folder, name] = [dirname(pattern), basename(pattern)];
  if (!name.includes('*')) return [pattern];
  const parts = name.split('*').map((part) => part.replaceAll(/[^\w]/g, '\\$&'));
  const names = new RegExp(`^${parts.join('.*')}$`);
  return (attempt(() => readdirSync(folder)) ?? [])
    .filter((each) => names.test(each))
    .sort()
    .map((each) => join(folder, each));
}

function readLinks(): Promise<readonly DoctorLink[]> {
  return withChannel(NETLINK_ROUTE, async (route) => {
    const links = await route.list(getLinks(), 'the links', decodeLink);
    const addresses = await readAddresses(route);
    return links.map(({ index, name, kind, flags }) => {
      const own = addresses.flatMap(({ linkIndex, ip }) => (linkIndex === index ? ip : []));
      return { index, name, kind, isUp: (flags & IFF_UP) !== 0, addresses: own };
    });
  });
}

/** A kernel without nf_tables has none. */
function readBaseChains(): Promise<readonly NftBaseChain[]> {
  return withChannel(NETLINK_NETFILTER, async (channel) => {
    const chains: NftBaseChain[] = [];
    for (const each of NFT_FAMILIES)
      for (const { family = '', table, name, base } of await channel.list(
        getChains(each),
        'the chains of nftables',
        decodeChain,
      ))
        if (base) chains.push({ family, table, name, ...base });
    return chains;
  });
}

function lookUpRoute(to: Ip, arrival?: { readonly source: Ip; readonly inLink: number }): Promise<RouteLook> {
  return withChannel(NETLINK_ROUTE, async (route) => {
    const reply = await route.request(getRoute(to, arrival));
    if (reply.kind === 'refused') return { state: 'refused', errno: reply.name };
    const [message] = reply.messages;
    if (!message) throw new JunctionError('NETLINK_FAILED', `netlink: no answer to the route to ${to}`);
    return { state: 'found', ...decodeRoute(message.payload) };
  });
}

/** Families that both the machine and the configuration have. */
export function familiesHere(
  families: readonly Family[],
  machine: Pick<DoctorMachine, 'hasIpv6'>,
): readonly Family[] {
  return families.filter((family) => family === 'IPv4' || machine.hasIpv6());
}
