/** `junction cleanup`: takes out everything that is ours, going by the kernel's state alone. */
import type { KeptChain } from '../modes/iptables/rules/cleanup.ts';
import { NFACCT } from '../modes/iptables/rules/names.ts';
import { isJunctionError, JunctionError } from '../errors.ts';
import { CLEANED_TABLES, type CleanedIptables, cleanIptables } from '../modes/iptables/cleanup.ts';
import type { VariantChoice } from '../modes/iptables/variant.ts';
import { deleteNfacct } from '../netlink/nfacct.ts';
import type { CommandRunner } from '../system/process.ts';
import type { Family } from '../model/ip.ts';
import { cleanupIpvs, type IpvsCleanup, printIpvsCleanup } from './cleanupIpvs.ts';
import { cleanupNft, type NftCleanup, printNftCleanup } from './cleanupNft.ts';
import type { ValidConfig } from '../config/index.ts';
import { EVERY_TABLE, OWN_TABLES } from '../modes/nftables/cleanup.ts';
import type { Output } from './output.ts';
import { printTable } from './table.ts';

type Mode = ValidConfig['mode'];

/** What was there, or is gone. */
interface Removed {
  readonly iptables: readonly CleanedIptables[];
  readonly counters: readonly string[];
  readonly ipvs: IpvsCleanup;
  readonly nftables: NftCleanup;
}

export interface CleanupOptions {
  readonly families: readonly Family[];
  readonly variant: VariantChoice;
  readonly output: string;
  readonly dryRun: boolean;
  /** Only what this mode wrote; `all`: everything that is Junction's or kube-proxy's. */
  readonly mode: 'all' | Mode;
}

/** Everything here is the real one unless a test brings its own. */
export interface CleanupMachine {
  readonly runner?: CommandRunner;
  readonly routesLocalnet?: () => boolean;
  readonly cleanTables?: typeof cleanupNft;
  /** The mode of a service proxy that runs here, as far as it says so. */
  readonly runningMode?: () => Promise<string | undefined>;
}

export async function cleanupCommand(
  output: Output,
  settings: CleanupOptions,
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

/** The names of these modes are kube-proxy's on purpose, so that nothing tells its objects from ours. */
function stillRunning(mode: Mode): JunctionError {
  return new JunctionError(
    'STILL_RUNNING',
    `a service proxy runs here in the ${mode} mode, and what this would remove is its own`,
    { hint: 'Stop it first; --dry-run says what would go.' },
  );
}

/** Rules of a program that is not there cannot be looked for, and nobody has written any with it. */
async function cleanFamilies(
  { families, variant, dryRun, mode }: CleanupOptions,
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

function printText({ iptables, counters, ipvs, nftables }: Removed, { dryRun }: CleanupOptions): string {
  const rows = iptables.flatMap((each) =>
    CLEANED_TABLES.map((table) => [
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
  if (rows.length === 0) return rest === '' ? 'Nothing of ours was there.\n' : rest;
  const title = dryRun ? 'Would remove:\n' : 'Removed:\n';
  return title + printTable(['FAMILY', 'VARIANT', 'TABLE', 'CHAINS', 'RULES ELSEWHERE'], rows) + rest;
}

const WHY_KEPT: Readonly<Record<KeptChain['reason'], string>> = {
  called: 'rules that are not ours jump to it.',
  routeLocalnet:
    'route_localnet is on, and without this rule neighbours would reach what listens on 127.0.0.1. To be rid of both: sysctl -w net.ipv4.conf.all.route_localnet=0, then this command again.',
};

function printJson({ iptables, counters, ipvs, nftables }: Removed, { dryRun }: CleanupOptions): string {
  const removed = iptables.map(({ family, variant, chains, rules, kept }) => ({
    family,
    variant,
    chains,
    rules,
    kept,
  }));
  return `${JSON.stringify({ dryRun, removed, counters, ipvs, nftables }, null, 2)}\n`;
}
