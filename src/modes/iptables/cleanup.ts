/** Takes our chains and rules out of iptables, whichever variants of it hold some. */
import { type CleanupPlan, type CleanupScope, ownChains, planCleanup } from './rules/cleanup.ts';
import { piece, type Step } from './rules/edit.ts';
import { ruleArgs } from './rules/print.ts';
import { type Table, TABLE_NAMES } from './rules/rule.ts';
import type { ReadChain, Tables } from './rules/textRule.ts';
import { ChainReader } from './chains.ts';
import { Committer, isRefusal } from './rules/commit.ts';
import { ReportBuilder } from '../../proxy/report.ts';
import { isJunctionError } from '../../errors.ts';
import { FAMILIES, type Family } from '../../model/ip.ts';
import { type CommandRunner, run } from '../../system/processes.ts';
import { isLocalnetRouted } from '../../system/sysctl.ts';
import { IptablesClient } from './client.ts';
import { isIncompatible } from './outcome.ts';
import { type Variant, type VariantChoice, variantsInUse } from './variant.ts';
import { NFACCT } from './rules/names.ts';
import { deleteNfacct } from '../../netlink/nfacct.ts';
import type { Log } from '../../log/log.ts';

export interface CleanedIptables extends CleanupPlan {
  /** What could not be removed, and why. */
  readonly failures: readonly string[];
  readonly family: Family;
  readonly variant: Variant;
}

interface CleaningOptions {
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
    chainsPerRestore: client.chainsPerRestore,
    routesLocalnet: family === 'IPv4' && routesLocalnet(),
    mode,
  });
  const failures: string[] = [];
  for (const step of dryRun ? [] : plan.steps) failures.push(...(await remove(client, step)));
  return { ...plan, failures, family, variant: client.variant };
}

/** Where the kernel or iptables refuses a part, the rest is removed without it. */
async function remove(client: IptablesClient, step: Step): Promise<readonly string[]> {
  const { table, pieces } = step;
  try {
    await client.commit(step);
    return [];
  } catch (error) {
    if (!isRefusal(error)) throw error;
  }
  const failures: string[] = [];
  for (const { chain, rule } of pieces.flatMap(({ removes }) => removes))
    try {
      await client.deleteRule(table, chain, ruleArgs(rule));
    } catch (error) {
      if (!isJunctionError(error)) throw error;
      failures.push(`a rule of chain ${chain} in ${table}: ${error.message}`);
    }
  const deletes = pieces.flatMap((each) => each.deletes);
  const empty = [...pieces.flatMap(({ writes }) => writes.map(({ name }) => name)), ...deletes];
  const committer = new Committer(client, new ReportBuilder());
  await committer.tryCommit({
    table,
    pieces: empty.map((name) => piece(undefined, { writes: [{ name, rules: [] }] })),
  });
  const deletions = deletes.map((name) => piece(undefined, { deletes: [name] }));
  for (const kept of await committer.tryCommit({ table, pieces: deletions }))
    failures.push(`chain ${kept.deletes.join()} in ${table}: rules jump to it`);
  return failures;
}

async function readState(client: IptablesClient): Promise<Tables> {
  const state = new Map<string, ReadonlyMap<string, ReadChain>>();
  for (const table of TABLE_NAMES) {
    try {
      const text = await client.save(table);
      const reader = new ChainReader(table);
      reader.take(text);
      state.set(table, isIncompatible(text) ? await readJumps(client, table) : reader.chains);
    } catch (error) {
      if (!isMissingTable(error)) throw error;
    }
  }
  return state;
}

/** Of a table that iptables cannot print: its chains, and the rules of those that are not ours. */
async function readJumps(client: IptablesClient, table: Table): Promise<ReadonlyMap<string, ReadChain>> {
  const chains = new Map<string, ReadChain>();
  const names = await client.chainNames(table);
  const own = ownChains(new Map([[table, names]]), table);
  for (const name of names)
    chains.set(name, { rules: own.has(name) ? [] : ((await client.readChain(table, name)) ?? []) });
  return chains;
}

/** A kernel without a table has nothing of ours in it; "you must be root" is another matter. */
function isMissingTable(error: unknown): boolean {
  if (!isJunctionError(error, 'IPTABLES_FAILED')) return false;
  const text = `${error.message} ${error.detail ?? ''}`;
  return (
    /does not exist|No such file or directory/.test(text) && !/must be root|Permission denied/i.test(text)
  );
}

/*
 * A node that was switched from a mode that wrote rules of iptables, ours or kube-proxy's: once the new rules work, the
 * old ones go. kubelet's chains, and what others have, stay.
 */

const ROUTE_LOCALNET_OFF =
  'nothing; to be rid of both: sysctl -w net.ipv4.conf.all.route_localnet=0, then restart';

/** Nothing that fails here may stop the proxy. */
export async function removeStaleRules(log: Log): Promise<void> {
  for (const family of FAMILIES) {
    try {
      for (const cleaned of await cleanIptables(family, { variant: 'auto', dryRun: false })) {
        const { chains, rules, kept, failures } = cleaned;
        if (failures.length > 0)
          log.warn('Cannot remove all of the rules that an iptables or ipvs mode left', {
            ipFamily: family,
            why: failures.slice(0, 3).join('; '),
            whatToDo: 'junction cleanup',
          });
        if (chains.length + rules.length > 0)
          log.info('Removed the rules that an iptables or ipvs mode left', {
            ipFamily: family,
            variant: cleaned.variant,
            chains: chains.length,
            rulesElsewhere: rules.length,
          });
        for (const { table, chain, reason } of kept)
          if (reason === 'called')
            log.warn('Kept a chain that rules of others jump to', { ipFamily: family, table, chain });
          else
            log.info('Kept the guard of 127.0.0.0/8: route_localnet is on', {
              ipFamily: family,
              table,
              chain,
              whatToDo: ROUTE_LOCALNET_OFF,
            });
      }
    } catch (error) {
      // Nobody has written rules with a program that is not there.
      if (isJunctionError(error, 'PROGRAM_MISSING')) log.verbose(2, error.message, { ipFamily: family });
      else
        log.warn('Cannot look for rules that an iptables or ipvs mode left', {
          ipFamily: family,
          err: error,
          whatToDo: 'junction cleanup',
        });
    }
  }
  for (const name of Object.values(NFACCT)) deleteNfacct(name);
}
