/** Takes our chains and rules out of iptables, whichever variants of it hold some. */
import { type CleanupScope, type CleanupPlan, planCleanup } from './rules/cleanup.ts';
import { printStep } from './rules/edit.ts';
import { parseSave, type Tables } from './rules/parse.ts';
import type { Table } from './rules/rule.ts';
import { isJunctionError } from '../../errors.ts';
import type { Family } from '../../model/ip.ts';
import { type CommandRunner, run } from '../../system/processes.ts';
import { isLocalnetRouted } from '../../system/sysctl.ts';
import { IptablesClient } from './client.ts';
import { tableClient } from './proxier.ts';
import { variantsInUse } from './inUse.ts';
import type { VariantChoice } from './variant.ts';
import type { Variant } from './version.ts';

export const CLEANED_TABLES: readonly Table[] = ['filter', 'nat', 'mangle'];

export interface CleanedIptables extends CleanupPlan {
  readonly family: Family;
  readonly variant: Variant;
}

export interface CleaningOptions {
  /** `auto`: every variant that may hold rules of ours. */
  readonly variant: VariantChoice;
  readonly dryRun: boolean;
  readonly runner?: CommandRunner | undefined;
  readonly routesLocalnet?: (() => boolean) | undefined;
  /** Only what this mode wrote. */
  readonly mode?: CleanupScope['mode'];
}

export async function cleanIptables(
  family: Family,
  options: CleaningOptions,
): Promise<readonly CleanedIptables[]> {
  const { variant, runner = run } = options;
  const cleaned: CleanedIptables[] = [];
  const variants = variant === 'auto' ? await variantsInUse(family, runner) : [variant];
  for (const each of variants) cleaned.push(await cleanVariant(family, { ...options, variant: each }));
  return cleaned;
}

async function cleanVariant(family: Family, options: CleaningOptions): Promise<CleanedIptables> {
  const { variant, dryRun, mode, runner = run, routesLocalnet = isLocalnetRouted } = options;
  const client = await IptablesClient.open({ family, variant, runner });
  const plan = planCleanup(await readState(client), {
    chainsPerRestore: tableClient(client).chainsPerRestore,
    routesLocalnet: family === 'IPv4' && routesLocalnet(),
    mode,
  });
  if (!dryRun) {
    for (const step of plan.steps) {
      await client.restore(step.table, printStep(step), { flush: false, counters: true });
    }
  }
  return { ...plan, family, variant: client.variant };
}

async function readState(client: IptablesClient): Promise<Tables> {
  const state = new Map<string, NonNullable<ReturnType<Tables['get']>>>();
  for (const table of CLEANED_TABLES) {
    try {
      const chains = parseSave(await client.save(table, { counters: false })).get(table);
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
