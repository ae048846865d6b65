/** `junction cleanup`: takes out everything that is ours, going by the kernel's state alone. */
import { type CleanupPlan, planCleanup } from '../backends/iptables/cleanup.ts';
import { printStep } from '../backends/iptables/edit.ts';
import { parseSave, type Tables } from '../backends/iptables/parse.ts';
import type { Table } from '../backends/iptables/rule.ts';
import { NFACCT } from '../backends/iptables/names.ts';
import { isJunctionError } from '../errors.ts';
import { IptablesDoor } from '../kernel/iptables/door.ts';
import { tableDoor } from '../kernel/iptables/iptablesProxy.ts';
import { variantsInUse } from '../kernel/iptables/inUse.ts';
import type { VariantChoice } from '../kernel/iptables/variant.ts';
import type { Variant } from '../kernel/iptables/version.ts';
import { deleteNfacct } from '../kernel/netlink/nfacct.ts';
import { type CommandRunner, run } from '../kernel/process.ts';
import type { Family } from '../model/ip.ts';
import type { Output } from './output.ts';
import { printTable } from './table.ts';

const TABLES: readonly Table[] = ['filter', 'nat', 'mangle'];

interface Removed extends CleanupPlan {
  readonly family: Family;
  readonly variant: Variant;
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
): Promise<number> {
  const removed: Removed[] = [];
  for (const family of settings.families) {
    const variants = settings.variant === 'auto' ? await variantsInUse(family, runner) : [settings.variant];
    for (const variant of variants) {
      removed.push(await cleanVariant(settings, family, variant, runner));
    }
  }
  const counters = settings.dryRun ? [] : Object.values(NFACCT).filter((name) => deleteNfacct(name));
  output.out(
    settings.output === 'json'
      ? printJson(removed, counters, settings)
      : printText(removed, counters, settings),
  );
  return 0;
}

async function cleanVariant(
  settings: CleanupOptions,
  family: Family,
  variant: VariantChoice,
  runner: CommandRunner,
): Promise<Removed> {
  const door = await IptablesDoor.open({ family, variant, runner });
  const plan = planCleanup(await readState(door), tableDoor(door).chainsPerRestore);
  if (!settings.dryRun) {
    for (const step of plan.steps) {
      await door.restore(step.table, printStep(step), { flush: false, counters: true });
    }
  }
  return { ...plan, family, variant: door.variant };
}

async function readState(door: IptablesDoor): Promise<Tables> {
  const state = new Map<string, NonNullable<ReturnType<Tables['get']>>>();
  for (const table of TABLES) {
    try {
      const chains = parseSave(await door.save(table, { counters: false })).get(table);
      if (chains) state.set(table, chains);
    } catch (error) {
      if (!isMissingTable(error)) throw error;
    }
  }
  return state;
}

/** A kernel without a table has nothing of ours in it; being told "you must be root" is another matter. */
function isMissingTable(error: unknown): boolean {
  if (!isJunctionError(error, 'IPTABLES_FAILED')) return false;
  const text = `${error.message} ${error.detail ?? ''}`;
  return (
    /does not exist|No such file or directory/.test(text) && !/must be root|Permission denied/i.test(text)
  );
}

function printText(
  removed: readonly Removed[],
  counters: readonly string[],
  { dryRun }: CleanupOptions,
): string {
  const rows = removed.flatMap((each) =>
    TABLES.map((table) => [
      each.family,
      each.variant,
      table,
      String(each.chains.filter((chain) => chain.table === table).length),
      String(each.rules.filter((rule) => rule.table === table).length),
    ]).filter(([, , , chains, rules]) => chains !== '0' || rules !== '0'),
  );
  const kept = removed.flatMap((each) =>
    each.kept.map(
      ({ table, chain }) =>
        `Kept ${chain} in ${table} (${each.family}): rules that are not ours jump to it.\n`,
    ),
  );
  const counted = counters.map((name) => `Removed the counter ${name}.\n`);
  const rest = [...kept, ...counted].join('');
  if (rows.length === 0) return rest === '' ? 'Nothing of ours was there.\n' : rest;
  const title = dryRun ? 'Would remove:\n' : 'Removed:\n';
  return title + printTable(['FAMILY', 'VARIANT', 'TABLE', 'CHAINS', 'RULES ELSEWHERE'], rows) + rest;
}

function printJson(
  removed: readonly Removed[],
  counters: readonly string[],
  { dryRun }: CleanupOptions,
): string {
  const list = removed.map(({ family, variant, chains, rules, kept }) => ({
    family,
    variant,
    chains,
    rules,
    kept,
  }));
  return `${JSON.stringify({ dryRun, removed: list, counters }, null, 2)}\n`;
}
