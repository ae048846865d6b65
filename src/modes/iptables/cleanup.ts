/** Takes our chains and rules out of iptables, whichever variants of it hold some. */
import {
  type CleanupScope,
  type KeptChain,
  ownChains,
  planCleanup,
  type TableCleanup,
} from './rules/cleanup.ts';
import { inChunks, type Piece, piece, type Step } from './rules/edit.ts';
import { printRule, ruleArgs } from './rules/print.ts';
import { type Table, TABLE_NAMES } from './rules/rule.ts';
import type { ReadChain, TableChains, Tables } from './rules/textRule.ts';
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

export interface CleanedIptables {
  readonly chains: readonly { readonly table: Table; readonly chain: string }[];
  readonly rules: readonly { readonly table: Table; readonly rule: string }[];
  readonly kept: readonly KeptChain[];
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
  const routed = family === 'IPv4' && routesLocalnet();
  const tables = planCleanup(await readState(client), { routesLocalnet: routed, mode });
  const failures: string[] = [];
  for (const table of dryRun ? [] : tables) failures.push(...(await remove(client, table)));
  return {
    chains: tables.flatMap(({ table, deleted }) => deleted.map((chain) => ({ table, chain }))),
    rules: tables.flatMap(({ table, removes }) =>
      removes.map(({ chain, rule }) => ({ table, rule: `${chain} ${printRule(rule)}` })),
    ),
    kept: tables.flatMap(({ kept }) => kept),
    failures,
    family,
    variant: client.variant,
  };
}

/**
 * In one transaction where it is not too large: a proxy that runs beside `cleanup --force` repairs its jumps within
 * milliseconds, and chains that are jumped to cannot be deleted. Where iptables or the kernel refuses a part, the rest is
 * removed without it.
 */
async function remove(client: IptablesClient, cleanup: TableCleanup): Promise<readonly string[]> {
  const { table, removes, deleted, kept } = cleanup;
  const committer = new Committer(client, new ReportBuilder());
  const empty = (name: string): Piece => piece(undefined, { writes: [{ name, rules: [] }] });
  const called = kept.flatMap(({ chain, reason }) => (reason === 'called' ? chain : []));
  const gone = new Set(deleted);
  if (removes.length + called.length + deleted.length === 0) return [];
  if (called.length + deleted.length <= client.chainsPerRestore) {
    // A chain that is deleted is emptied first, so its rules are not there to be removed one by one.
    const elsewhere = removes.filter(({ chain }) => !gone.has(chain));
    const all = [...called.map(empty), piece(undefined, { removes: elsewhere, deletes: deleted })];
    if (await isCommitted(committer, { table, pieces: all })) return [];
  }
  const failures: string[] = [];
  if (
    removes.length > 0 &&
    !(await isCommitted(committer, { table, pieces: [piece(undefined, { removes })] }))
  )
    for (const { chain, rule } of removes)
      try {
        await client.deleteRule(table, chain, ruleArgs(rule));
      } catch (error) {
        if (!isJunctionError(error)) throw error;
        failures.push(`a rule of chain ${chain} in ${table}: ${error.message}`);
      }
  // Chains call each other, so all are emptied before the first is deleted.
  for (const step of inChunks(table, [...called, ...deleted].map(empty), client.chainsPerRestore))
    await committer.tryCommit(step);
  const deletions = deleted.map((chain) => piece(undefined, { deletes: [chain] }));
  for (const step of inChunks(table, deletions, client.chainsPerRestore))
    for (const left of await committer.tryCommit(step))
      failures.push(`chain ${left.deletes.join()} in ${table}: rules jump to it`);
  return failures;
}

async function isCommitted(committer: Committer, step: Step): Promise<boolean> {
  try {
    await committer.commit(step);
    return true;
  } catch (error) {
    if (isRefusal(error)) return false;
    throw error;
  }
}

async function readState(client: IptablesClient): Promise<Tables> {
  const state = new Map<Table, TableChains>();
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
async function readJumps(client: IptablesClient, table: Table): Promise<TableChains> {
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
