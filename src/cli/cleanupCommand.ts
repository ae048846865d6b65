/** `junction cleanup`: deletes everything that is ours, found by the kernel's state alone. */
import type { KeptChain } from '../modes/iptables/rules/cleanup.ts';
import { NFACCT } from '../modes/iptables/rules/names.ts';
import { isJunctionError, JunctionError } from '../errors.ts';
import { type CleanedIptables, cleanIptables } from '../modes/iptables/cleanup.ts';
import { TABLE_NAMES } from '../modes/iptables/rules/rule.ts';
import type { VariantChoice } from '../modes/iptables/variant.ts';
import { deleteNfacct } from '../netlink/nfacct.ts';
import type { CommandRunner } from '../system/processes.ts';
import type { Family } from '../model/ip.ts';
import type { ValidConfig } from '../config/effective.ts';
import {
  EVERY_TABLE,
  OWN_TABLES,
  findTables,
  type StaleTable,
  removeTable,
} from '../modes/nftables/cleanup.ts';
import type { Output } from './output.ts';
import { printColumns } from './table.ts';
import { findStaleObjects, type StaleIpvsObjects, removeServers, removeSets } from '../modes/ipvs/cleanup.ts';
import type { IpvsChannels } from '../modes/ipvs/client.ts';
import { directChannel, type NetlinkChannel, type TransactionChannel } from '../netlink/channel.ts';
import { NETLINK_GENERIC, NETLINK_NETFILTER, NETLINK_ROUTE, NetlinkSocket } from '../netlink/socket.ts';
import { BACKSTOP_TABLE } from '../modes/nftables/rules/names.ts';
import { NFT_FAMILY } from '../modes/nftables/rules/print.ts';
import { decodeTable, getTables } from '../netlink/nftables/objects.ts';
import { alreadyRunning, findHolder } from '../system/instanceLock.ts';
import { request } from 'node:http';
import { systemClock } from '../time/systemClock.ts';
import { wait } from '../time/wait.ts';

type Mode = ValidConfig['mode'];

/** What was there, or is deleted. */
interface Removed {
  readonly iptables: readonly CleanedIptables[];
  readonly counters: readonly string[];
  readonly ipvs: IpvsCleanup;
  readonly nftables: NftCleanup;
}

export interface CleanupCommandOptions {
  readonly families: readonly Family[];
  readonly variant: VariantChoice;
  readonly output: string;
  readonly dryRun: boolean;
  /** Only what this mode wrote; `all`: everything that is Junction's or kube-proxy's. */
  readonly mode: 'all' | Mode;
}

/** Everything here is the real one unless a test brings its own. */
interface CleanupMachine {
  readonly runner?: CommandRunner;
  readonly routesLocalnet?: () => boolean;
  readonly cleanTables?: typeof cleanupNft;
  /** The mode of a service proxy that runs here, as far as it says so. */
  readonly runningMode?: () => Promise<string | undefined>;
}

export async function cleanupCommand(
  output: Output,
  settings: CleanupCommandOptions,
  machine: CleanupMachine = {},
): Promise<number> {
  const { families, dryRun, mode } = settings;
  const { cleanTables = cleanupNft, runningMode = async () => undefined } = machine;
  const isShared = mode === 'iptables' || mode === 'ipvs';
  if (isShared && !dryRun && (await runningMode()) === mode) throw stillRunning(mode);
  const isOf = (...modes: readonly Mode[]): boolean => mode === 'all' || modes.includes(mode);
  const iptables: CleanedIptables[] = [];
  const removeRules = async (): Promise<void> => {
    iptables.push(...(await cleanFamilies(settings, output, machine)));
  };
  const ipvs = isOf('ipvs') ? await cleanupIpvs(families, dryRun, removeRules) : NO_IPVS;
  if (mode === 'iptables') await removeRules();
  const nftables = isOf('nftables')
    ? await cleanTables(families, dryRun, mode === 'all' ? EVERY_TABLE : OWN_TABLES)
    : NO_TABLES;
  const counters =
    dryRun || !isOf('iptables') ? [] : Object.values(NFACCT).filter((name) => deleteNfacct(name));
  const removed: Removed = { iptables, counters, ipvs, nftables };
  output.out(settings.output === 'json' ? printJson(removed, settings) : printText(removed, settings));
  return ipvs.failures.length + nftables.failures.length === 0 ? 0 : 1;
}

const NO_IPVS: IpvsCleanup = { remains: [], failures: [] };
const NO_TABLES: NftCleanup = { tables: [], failures: [], junctionIsRunning: false };

/** The names of these modes are kube-proxy's on purpose, so that its objects cannot be distinguished from ours. */
function stillRunning(mode: Mode): JunctionError {
  return new JunctionError(
    'STILL_RUNNING',
    `a service proxy runs here in the ${mode} mode, and what this would remove is its own`,
    { hint: 'Stop it first; --dry-run says what would be removed.' },
  );
}

/** Rules of a program that is not there cannot be looked for, and nobody has written any with it. */
async function cleanFamilies(
  { families, variant, dryRun, mode }: CleanupCommandOptions,
  output: Output,
  { runner, routesLocalnet }: CleanupMachine,
): Promise<readonly CleanedIptables[]> {
  const removed: CleanedIptables[] = [];
  for (const family of families) {
    try {
      removed.push(
        ...(await cleanIptables(family, {
          variant,
          dryRun,
          runner,
          routesLocalnet,
          mode: mode === 'iptables' || mode === 'ipvs' ? mode : undefined,
        })),
      );
    } catch (error) {
      if (!isJunctionError(error, 'PROGRAM_MISSING')) throw error;
      output.err(`note: ${error.message}, so there are no rules of it to remove (${family})\n`);
    }
  }
  return removed;
}

function printText(
  { iptables, counters, ipvs, nftables }: Removed,
  { dryRun }: CleanupCommandOptions,
): string {
  const rows = iptables.flatMap((each) =>
    TABLE_NAMES.map((table) => [
      each.family,
      each.variant,
      table,
      String(each.chains.filter((chain) => chain.table === table).length),
      String(each.rules.filter((rule) => rule.table === table).length),
    ]).filter(([, , , chains, rules]) => chains !== '0' || rules !== '0'),
  );
  const kept = iptables.flatMap((each) =>
    each.kept.map(
      ({ table, chain, reason }) => `Kept ${chain} in ${table} (${each.family}): ${WHY_KEPT[reason]}\n`,
    ),
  );
  const counted = counters.map((name) => `Removed the counter ${name}.\n`);
  const others = printIpvsCleanup(ipvs, dryRun) + printNftCleanup(nftables, dryRun);
  const rest = [others, ...kept, ...counted].join('');
  const header = ['FAMILY', 'VARIANT', 'TABLE', 'CHAINS', 'RULES ELSEWHERE'];
  return printRemoved('', header, rows, dryRun) + rest || 'Nothing of ours was there.\n';
}

const WHY_KEPT: Readonly<Record<KeptChain['reason'], string>> = {
  called: 'rules that are not ours jump to it.',
  routeLocalnet:
    'route_localnet is on, and without this rule neighbours would reach what listens on 127.0.0.1. To be rid of both: sysctl -w net.ipv4.conf.all.route_localnet=0, then this command again.',
};

function printJson(
  { iptables, counters, ipvs, nftables }: Removed,
  { dryRun }: CleanupCommandOptions,
): string {
  const removed = iptables.map(({ family, variant, chains, rules, kept }) => {
    return { family, variant, chains, rules, kept };
  });
  return `${JSON.stringify({ dryRun, removed, counters, ipvs, nftables }, null, 2)}\n`;
}

/** What the IPVS mode left: virtual servers, the device, and sets. */
interface IpvsCleanup {
  readonly remains: readonly StaleIpvsObjects[];
  /** What the kernel refused to delete. */
  readonly failures: readonly string[];
}

/** Sets can be deleted after the rules that match them, so the rules are removed in between. */
async function cleanupIpvs(
  families: readonly Family[],
  dryRun: boolean,
  removeRules: () => Promise<void>,
): Promise<IpvsCleanup> {
  const sockets = [NETLINK_ROUTE, NETLINK_NETFILTER, NETLINK_GENERIC].map((protocol) =>
    NetlinkSocket.open(protocol),
  );
  try {
    const [route, netfilter, generic] = sockets.map(directChannel);
    if (!route || !netfilter || !generic) throw new Error('no sockets');
    const channels: IpvsChannels = { route, netfilter, generic };
    const remains: StaleIpvsObjects[] = [];
    for (const family of families) remains.push(await findStaleObjects(channels, family));
    const failures = dryRun ? [] : [...(await removeServers(channels, remains))];
    await removeRules();
    if (!dryRun) failures.push(...(await removeSets(channels, remains)));
    return { remains, failures };
  } finally {
    for (const socket of sockets) socket.close();
  }
}

function printIpvsCleanup({ remains, failures }: IpvsCleanup, dryRun: boolean): string {
  const rows = remains
    .filter(({ servers, addresses, sets }) => servers.length + addresses + sets.length > 0)
    .map(({ family, servers, addresses, sets }) =>
      [family, servers.length, addresses, sets.length].map(String),
    );
  const header = ['FAMILY', 'VIRTUAL SERVERS', 'ADDRESSES ON KUBE-IPVS0', 'SETS'];
  return printRemoved(' of IPVS', header, rows, dryRun) + printFailures(failures);
}

function printRemoved(
  what: string,
  header: readonly string[],
  rows: readonly (readonly string[])[],
  dryRun: boolean,
): string {
  return rows.length === 0
    ? ''
    : `${dryRun ? 'Would remove' : 'Removed'}${what}:\n${printColumns(header, rows)}`;
}

function printFailures(failures: readonly string[]): string {
  return failures.map((failure) => `Could not remove ${failure}\n`).join('');
}

/** What an nftables mode left, ours or kube-proxy's: whole tables. */
export interface NftCleanup {
  readonly tables: readonly StaleTable[];
  /** What the kernel refused to delete. */
  readonly failures: readonly string[];
  /** A Junction owns a backstop, so it runs, and repairs what is removed. */
  readonly junctionIsRunning: boolean;
}

async function cleanupNft(
  families: readonly Family[],
  dryRun: boolean,
  names: readonly string[] = EVERY_TABLE,
): Promise<NftCleanup> {
  const socket = NetlinkSocket.open(NETLINK_NETFILTER);
  try {
    return await cleanTables(directChannel(socket), families, dryRun, names);
  } finally {
    socket.close();
  }
}

export async function cleanTables(
  channel: TransactionChannel,
  families: readonly Family[],
  dryRun: boolean,
  names: readonly string[] = EVERY_TABLE,
): Promise<NftCleanup> {
  const tables = await findTables(channel, families, names);
  const junctionIsRunning = await isBackstopOwned(channel, families);
  const failures: string[] = [];
  for (const each of dryRun ? [] : tables) {
    const why = await removeTable(channel, each);
    if (why !== undefined) failures.push(`table ${each.family} ${each.table}: ${why}`);
  }
  return { tables, failures, junctionIsRunning };
}

async function isBackstopOwned(channel: NetlinkChannel, families: readonly Family[]): Promise<boolean> {
  const replies = await channel.dumpAll(families.map((family) => getTables(NFT_FAMILY[family])));
  return replies
    .flatMap((reply) => (reply.kind === 'answered' ? reply.messages : []))
    .map(({ payload }) => decodeTable(payload))
    .some(({ name, owner }) => name === BACKSTOP_TABLE && owner !== undefined);
}

function printNftCleanup({ tables, failures, junctionIsRunning }: NftCleanup, dryRun: boolean): string {
  const rows = tables.map(({ family, table, objects }) => [family, table, String(objects)]);
  const header = ['FAMILY', 'TABLE', 'SETS, MAPS AND CHAINS'];
  const running = 'A Junction is running here and will write its tables again: stop it first.\n';
  return `${printRemoved(' of nftables', header, rows, dryRun)}${printFailures(failures)}${junctionIsRunning ? running : ''}`;
}

/** A Junction that is ending may take a moment. */
const WAIT_MS = 10_000;
const RETRY_MS = 200;

/** Throws `ALREADY_RUNNING` while a Junction runs, which would write the rules again; with `force`, warns and continues. */
export async function refuseBesideJunction(output: Output, force: boolean): Promise<void> {
  const until = performance.now() + (force ? 0 : WAIT_MS);
  for (let isFirst = true; ; isFirst = false) {
    const holder = await findHolder();
    if (!holder || holder.isImpostor) return;
    if (force) {
      output.err(`warning: a Junction runs here, and writes its rules again: ${holder.text}\n`);
      return;
    }
    if (performance.now() >= until)
      throw alreadyRunning(
        holder.text,
        'Stop it first: it would write again what is removed. Or say --force, to remove all the same.',
      );
    if (isFirst) output.err(`note: waiting for a Junction to end: ${holder.text}\n`);
    await wait(systemClock, RETRY_MS);
  }
}

const TIMEOUT_MS = 2000;
const LONGEST_ANSWER = 64;

/** The mode of a service proxy that runs here: kube-proxy and Junction both serve `/proxyMode`. `undefined`: none does. */
export function runningMode(metricsBindAddress: string): Promise<string | undefined> {
  if (metricsBindAddress === '') return Promise.resolve(undefined);
  const address = metricsBindAddress.replace(/^(0\.0\.0\.0|\[::\]|)(?=:\d+$)/, '127.0.0.1');
  return new Promise((resolve) => {
    const asked = request(`http://${address}/proxyMode`, { timeout: TIMEOUT_MS }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part: string) => {
        text += part;
        if (text.length > LONGEST_ANSWER) asked.destroy();
      });
      response.on('end', () => resolve(response.statusCode === 200 ? text.trim() : undefined));
      response.on('close', () => resolve(undefined));
    });
    asked.on('timeout', () => asked.destroy());
    asked.on('error', () => resolve(undefined));
    asked.end();
  });
}
