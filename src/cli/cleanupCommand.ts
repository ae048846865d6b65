/** `junction cleanup`: deletes everything that is ours, found by the kernel's state alone. */
import type { ValidConfig } from '../config/effective.ts';
import { appendPort } from '../config/goFormats.ts';
import { runningMode } from '../system/kubeProxy.ts';
import { isJunctionError, JunctionError } from '../errors.ts';
import type { Family } from '../model/ip.ts';
import { type CleanedIptables, cleanIptables } from '../modes/iptables/cleanup.ts';
import type { KeptChain } from '../modes/iptables/rules/cleanup.ts';
import { NFACCT } from '../modes/iptables/rules/names.ts';
import { TABLE_NAMES } from '../modes/iptables/rules/rule.ts';
import type { VariantChoice } from '../modes/iptables/variant.ts';
import { findStaleObjects, removeServers, removeSets, type StaleIpvsObjects } from '../modes/ipvs/cleanup.ts';
import {
  EVERY_TABLE,
  findTables,
  OWN_TABLES,
  removeTable,
  type StaleTable,
} from '../modes/nftables/cleanup.ts';
import { requireNetAdmin } from '../modes/prerequisites/check.ts';
import { withChannel } from '../netlink/sockets.ts';
import { deleteNfacct } from '../netlink/nfacct.ts';
import { NETLINK_GENERIC, NETLINK_NETFILTER, NETLINK_ROUTE } from '../netlink/socket.ts';
import { alreadyRunning, findHolder } from '../system/instanceLock.ts';
import type { CommandRunner } from '../system/processes.ts';
import { systemClock } from '../time/systemClock.ts';
import { wait } from '../time/wait.ts';
import { UsageError } from './commands.ts';
import type { Output, PrintOptions } from './output.ts';
import { waitForProxy } from './proxyWait.ts';
import { printColumns } from './table.ts';

export interface CleanupCommandOptions extends Pick<PrintOptions, 'families' | 'output'> {
  readonly variant: VariantChoice;
  readonly dryRun: boolean;
  /** Only what this mode wrote; `all`: everything that is Junction's or kube-proxy's. */
  readonly mode: 'all' | ValidConfig['mode'];
}

/** Everything here is the real one unless a test brings its own. */
interface CleanupMachine {
  readonly runner?: CommandRunner;
  readonly routesLocalnet?: () => boolean;
  readonly cleanTables?: typeof cleanupNft;
  /** The mode of a service proxy that runs here, as far as it says so. */
  readonly runningMode?: () => Promise<string | undefined>;
}

/** What was there, or is deleted. */
interface Removed {
  readonly iptables: readonly CleanedIptables[];
  readonly counters: readonly string[];
  /** Virtual servers, the device, and sets. */
  readonly ipvs: { readonly remains: readonly StaleIpvsObjects[]; readonly failures: readonly string[] };
  readonly nftables: NftCleanup;
}

/** Whole tables that an nftables mode left, ours or kube-proxy's. */
export interface NftCleanup {
  readonly tables: readonly StaleTable[];
  /** What the kernel refused to delete. */
  readonly failures: readonly string[];
  /** A Junction runs, and writes again what is removed. */
  readonly junctionIsRunning: boolean;
}

/** As people call it: not beside a Junction that runs here. */
export async function runCleanup(
  { metricsBindAddress }: ValidConfig,
  output: Output,
  { force, waitForProxy: address, timeoutMs, stay, ...settings }: RunCleanupOptions,
): Promise<number> {
  refuseContradictions(address, timeoutMs, force);
  requireNetAdmin();
  if (address !== '') {
    const health = appendPort(address, HEALTH_PORT);
    await waitForProxy(output, { health, metrics: metricsBindAddress, timeoutMs });
  } else if (!settings.dryRun) await refuseBesideJunction(output, force);
  const code = await cleanupCommand(output, settings, { runningMode: () => runningMode(metricsBindAddress) });
  if (!stay || code !== 0) return code;
  output.err('note: done; staying until stopped\n');
  return untilStopped();
}

interface RunCleanupOptions extends CleanupCommandOptions {
  readonly force: boolean;
  /** The address of its health; '': no wait. */
  readonly waitForProxy: string;
  readonly timeoutMs: number;
  readonly stay: boolean;
}

/** kube-proxy's default. */
const HEALTH_PORT = 10_256;

function refuseContradictions(address: string, timeoutMs: number, force: boolean): void {
  const problems = [
    ...(address !== '' && force ? ['--force and --wait-for-proxy contradict each other: name one'] : []),
    ...(address === '' && timeoutMs !== 0 ? ['--timeout has no effect without --wait-for-proxy'] : []),
    ...(timeoutMs < 0 ? ['--timeout must not be negative'] : []),
  ];
  if (problems.length > 0) throw new UsageError(problems, 'junction cleanup --help lists its flags');
}

/** A signal ends the process. */
function untilStopped(): Promise<never> {
  return new Promise(() => setInterval(() => undefined, 2 ** 31 - 1));
}

export async function cleanupCommand(
  output: Output,
  settings: CleanupCommandOptions,
  machine: CleanupMachine = {},
): Promise<number> {
  const { families, dryRun, mode } = settings;
  const { cleanTables = cleanupNft, runningMode } = machine;
  const isShared = mode === 'iptables' || mode === 'ipvs';
  // The names of these modes are kube-proxy's on purpose, so that its objects cannot be distinguished from ours.
  if (isShared && !dryRun && (await runningMode?.()) === mode)
    throw new JunctionError(
      'STILL_RUNNING',
      `a service proxy runs here in the ${mode} mode, and what this would remove is its own`,
      { hint: 'Stop it first; --dry-run says what would be removed.' },
    );
  const isAll = mode === 'all';
  const iptables: CleanedIptables[] = [];
  const removeRules = async (): Promise<void> => {
    for (const family of families) iptables.push(...(await cleanFamily(family, settings, output, machine)));
  };
  const ipvs =
    isAll || mode === 'ipvs'
      ? await cleanupIpvs(families, dryRun, removeRules)
      : { remains: [], failures: [] };
  if (mode === 'iptables') await removeRules();
  const nftables =
    isAll || mode === 'nftables'
      ? await cleanTables(families, dryRun, isAll ? EVERY_TABLE : OWN_TABLES)
      : { tables: [], failures: [], junctionIsRunning: false };
  const hasCounters = !dryRun && (isAll || mode === 'iptables');
  const counters = hasCounters ? Object.values(NFACCT).filter((name) => deleteNfacct(name)) : [];
  const removed: Removed = { iptables, counters, ipvs, nftables };
  output.out(settings.output === 'json' ? printJson(removed, dryRun) : printText(removed, dryRun));
  const failures = [ipvs, nftables, ...iptables].flatMap((each) => each.failures);
  return failures.length > 0 || (nftables.junctionIsRunning && !dryRun) ? 1 : 0;
}

/** Rules of a program that is not there cannot be looked for, and nobody has written any with it. */
async function cleanFamily(
  family: Family,
  { variant, dryRun, mode }: CleanupCommandOptions,
  output: Output,
  { runner, routesLocalnet }: CleanupMachine,
): Promise<readonly CleanedIptables[]> {
  const only = mode === 'iptables' || mode === 'ipvs' ? mode : undefined;
  try {
    return await cleanIptables(family, { variant, dryRun, runner, routesLocalnet, mode: only });
  } catch (error) {
    if (!isJunctionError(error, 'PROGRAM_MISSING')) throw error;
    output.err(`note: ${error.message}, so there are no rules of it to remove (${family})\n`);
    return [];
  }
}

/** Sets can be deleted after the rules that match them, so the rules are removed in between. */
function cleanupIpvs(
  families: readonly Family[],
  dryRun: boolean,
  removeRules: () => Promise<void>,
): Promise<Removed['ipvs']> {
  return withChannel(NETLINK_ROUTE, (route) =>
    withChannel(NETLINK_NETFILTER, (netfilter) =>
      withChannel(NETLINK_GENERIC, async (generic) => {
        const channels = { route, netfilter, generic };
        const remains: StaleIpvsObjects[] = [];
        for (const family of families) remains.push(await findStaleObjects(channels, family));
        const failures = dryRun ? [] : [...(await removeServers(channels, remains))];
        await removeRules();
        if (!dryRun) failures.push(...(await removeSets(channels, remains)));
        return { remains, failures };
      }),
    ),
  );
}

function cleanupNft(
  families: readonly Family[],
  dryRun: boolean,
  names: readonly string[],
): Promise<NftCleanup> {
  return withChannel(NETLINK_NETFILTER, async (channel) => {
    const { stale, isJunctionRunning } = await findTables(channel, families, names);
    const failures: string[] = [];
    for (const each of dryRun ? [] : stale) {
      const why = await removeTable(channel, each);
      if (why !== undefined) failures.push(`table ${each.family} ${each.table}: ${why}`);
    }
    return { tables: stale, failures, junctionIsRunning: isJunctionRunning };
  });
}

function printJson({ iptables, ...others }: Removed, dryRun: boolean): string {
  const removed = iptables.map(({ family, variant, chains, rules, kept, failures }) => {
    return { family, variant, chains, rules, kept, failures };
  });
  return `${JSON.stringify({ dryRun, removed, ...others }, null, 2)}\n`;
}

function printText({ iptables, counters, ipvs, nftables }: Removed, dryRun: boolean): string {
  const table = (what: string, header: readonly string[], rows: readonly (readonly unknown[])[]): string => {
    const title = `${dryRun ? 'Would remove' : 'Removed'}${what}:`;
    const cells = rows.map((row) => row.map(String));
    return rows.length === 0 ? '' : `${title}\n${printColumns(header, cells)}`;
  };
  const failed = (failures: readonly string[]): string =>
    failures.map((failure) => `Could not remove ${failure}\n`).join('');
  const ipvsRows = ipvs.remains
    .map(({ family, servers, bound, sets }) => [family, servers.length, bound.length, sets.length] as const)
    .filter(([, ...counts]) => counts.some((count) => count > 0));
  const nftRows = nftables.tables.map(({ family, table: name, objects }) => [family, name, objects]);
  const running = 'A Junction is running here, and its tables are its own: stop it first.\n';
  const kept = iptables.flatMap(({ family, kept: chains }) =>
    chains.map(({ table: of, chain, reason }) => `Kept ${chain} in ${of} (${family}): ${WHY_KEPT[reason]}\n`),
  );
  const text = [
    table('', ['FAMILY', 'VARIANT', 'TABLE', 'CHAINS', 'RULES ELSEWHERE'], iptables.flatMap(rowsOf)),
    ...iptables.map(({ failures }) => failed(failures)),
    table(' of IPVS', ['FAMILY', 'VIRTUAL SERVERS', 'ADDRESSES ON KUBE-IPVS0', 'SETS'], ipvsRows),
    failed(ipvs.failures),
    table(' of nftables', ['FAMILY', 'TABLE', 'SETS, MAPS AND CHAINS'], nftRows),
    failed(nftables.failures),
    nftables.junctionIsRunning ? running : '',
    ...kept,
    ...counters.map((name) => `Removed the counter ${name}.\n`),
  ].join('');
  return text || 'Nothing of ours was there.\n';
}

function rowsOf({ family, variant, chains, rules }: CleanedIptables): readonly (readonly unknown[])[] {
  return TABLE_NAMES.map((table) => {
    const [own, elsewhere] = [chains, rules].map(
      (list) => list.filter((each) => each.table === table).length,
    );
    return [family, variant, table, own, elsewhere];
  }).filter(([, , , own, elsewhere]) => own !== 0 || elsewhere !== 0);
}

const WHY_KEPT: Readonly<Record<KeptChain['reason'], string>> = {
  called: 'rules that are not ours jump to it.',
  routeLocalnet:
    'route_localnet is on, and without this rule neighbours would reach what listens on 127.0.0.1. To be rid of both: sysctl -w net.ipv4.conf.all.route_localnet=0, then this command again.',
};

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
