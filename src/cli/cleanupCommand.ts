/** `junction cleanup`: takes out everything that is ours, going by the kernel's state alone. */
import { NFACCT } from '../backends/iptables/names.ts';
import { isJunctionError } from '../errors.ts';
import { CLEANED_TABLES, type CleanedIptables, cleanIptables } from '../kernel/iptables/cleaning.ts';
import type { VariantChoice } from '../kernel/iptables/variant.ts';
import { deleteNfacct } from '../kernel/netlink/nfacct.ts';
import { type CommandRunner, run } from '../kernel/process.ts';
import type { Family } from '../model/ip.ts';
import { cleanupIpvs, type IpvsCleanup, printIpvsCleanup } from './cleanupIpvs.ts';
import { cleanupNft, type NftCleanup, printNftCleanup } from './cleanupNft.ts';
import type { Output } from './output.ts';
import { printTable } from './table.ts';

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
}

export async function cleanupCommand(
  output: Output,
  settings: CleanupOptions,
  runner: CommandRunner = run,
  cleanTables: typeof cleanupNft = cleanupNft,
): Promise<number> {
  const { families, dryRun } = settings;
  const iptables: CleanedIptables[] = [];
  const ipvs = await cleanupIpvs(families, dryRun, async () => {
    iptables.push(...(await cleanFamilies(settings, output, runner)));
  });
  const nftables = await cleanTables(families, dryRun);
  const counters = dryRun ? [] : Object.values(NFACCT).filter((name) => deleteNfacct(name));
  const removed: Removed = { iptables, counters, ipvs, nftables };
  output.out(settings.output === 'json' ? printJson(removed, settings) : printText(removed, settings));
  return ipvs.failures.length + nftables.failures.length === 0 ? 0 : 1;
}

/** Rules of a program that is not there cannot be looked for, and nobody has written any with it. */
async function cleanFamilies(
  { families, variant, dryRun }: CleanupOptions,
  output: Output,
  runner: CommandRunner,
): Promise<readonly CleanedIptables[]> {
  const removed: CleanedIptables[] = [];
  for (const family of families) {
    try {
      removed.push(...(await cleanIptables(family, { variant, dryRun, runner })));
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
      ({ table, chain }) =>
        `Kept ${chain} in ${table} (${each.family}): rules that are not ours jump to it.\n`,
    ),
  );
  const counted = counters.map((name) => `Removed the counter ${name}.\n`);
  const others = printIpvsCleanup(ipvs, dryRun) + printNftCleanup(nftables, dryRun);
  const rest = [others, ...kept, ...counted].join('');
  if (rows.length === 0) return rest === '' ? 'Nothing of ours was there.\n' : rest;
  const title = dryRun ? 'Would remove:\n' : 'Removed:\n';
  return title + printTable(['FAMILY', 'VARIANT', 'TABLE', 'CHAINS', 'RULES ELSEWHERE'], rows) + rest;
}

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
