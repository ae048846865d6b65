/**
 * What iptables mode needs: its programs, and a kernel that takes the rules which the mode writes for the sample services.
 * Where it refuses some, each match and target of theirs is offered by itself.
 */
import { isJunctionError, type JunctionError } from '../../errors.ts';
import type { Family } from '../../model/ip.ts';
import { isUnanswered } from '../../system/processes.ts';
import { absent, type Check, type PreflightSettings, present, unknown } from '../prerequisites/check.ts';
import type { Machine, TrialClient } from '../prerequisites/machine.ts';
import {
  conntrackCheck,
  moduleRemedy,
  kernelPiece,
  type KernelPiece,
  pieceRemedy,
} from '../prerequisites/pieces.ts';
import { sysctlChecks } from '../prerequisites/sysctls.ts';
import type { Layout } from './rules/fragment.ts';
import { LAYOUTS } from './rules/layouts/index.ts';
import type { Match, Table } from './rules/rule.ts';
import { EXTENSION_KEYS, EXTENSIONS, type TriedRules, tryExtensions } from './ruleTrial.ts';
import { sampleRules, TRIAL_COUNTER, TRIAL_SETS } from './ruleTrial.ts';

const ROUTE_LOCALNET = {
  name: 'net/ipv4/conf/all/route_localnet',
  value: 1,
  needed: 'for node ports on 127.0.0.1',
} as const;

export async function iptablesModeChecks(
  machine: Machine,
  clients: readonly TrialClient[],
  { layout, localhostNodePorts }: PreflightSettings,
): Promise<readonly Check[]> {
  const families = clients.map(({ family }) => family);
  return [
    ...(await ruleChecks(machine, clients, {
      layout: LAYOUTS[layout],
      localhostNodePorts,
      counters: layout === 'current',
      physdev: layout === 'classic' ? EXTENSIONS.physdevIsIn : undefined,
    })),
    await conntrackCheck(machine, families),
    ...sysctlChecks(machine, localhostNodePorts ? [ROUTE_LOCALNET] : []),
  ];
}

/** The programs of iptables, one set for each family. */
export async function openClients(
  machine: Machine,
  families: readonly Family[],
): Promise<{ readonly clients: readonly TrialClient[]; readonly checks: readonly Check[] }> {
  const clients: TrialClient[] = [];
  const checks: Check[] = [];
  for (const family of families) {
    const subject = `programs ${family === 'IPv4' ? 'iptables' : 'ip6tables'}, -save, -restore`;
    try {
      const client = await machine.openClient(family);
      const { save, restore } = client.programs;
      // With empty input, because an old one does not know the option and goes on to read rules.
      for (const program of [save, restore]) await machine.run([program, '--version'], { stdin: '' });
      const found = `version ${client.version}, ${client.variant} variant: ${client.reason}`;
      checks.push(present(subject, 'always', found));
      clients.push(client);
    } catch (error) {
      if (!isJunctionError(error)) throw error;
      checks.push(failureCheck(subject, error));
    }
  }
  return { clients, checks };
}

interface RuleCheckOptions {
  readonly layout: Layout;
  readonly localhostNodePorts: boolean;
  /** Rules count into counters, where there are any. */
  readonly counters: boolean;
  /** The match physdev and what it is needed for, if the rules have it. */
  readonly physdev: KernelPiece | undefined;
  /** The sets that the rules match, by id. */
  readonly sets?: readonly string[];
}

/** Of one family. */
interface TriedTable extends TriedRules {
  readonly client: TrialClient;
  readonly table: Table;
}

/** The kernel accepts each match and target of a rule, and not the rule. */
const TOGETHER = kernelPiece('rules of several matches', 'x_tables', 'for Services that need such a rule');

export async function ruleChecks(
  machine: Machine,
  clients: readonly TrialClient[],
  options: RuleCheckOptions,
): Promise<readonly Check[]> {
  const omitted = new Set<Match['kind']>();
  // Its first use loads br_netfilter, after which bridged packets pass through iptables: not for a trial to do.
  if (machine.sysctl('net/bridge/bridge-nf-call-iptables').state === 'absent') omitted.add('physdevIsIn');
  const counter = options.counters ? machine.makeCounter(TRIAL_COUNTER) : undefined;
  if (counter?.state !== 'done') omitted.add('nfacct');
  const withoutSet: Family[] = [];
  const tryFamily = async (client: TrialClient): Promise<readonly TriedTable[]> => {
    const { family } = client;
    const name = TRIAL_SETS[family];
    const hasSet = options.sets !== undefined && (await machine.makeSet(name, family)).state === 'done';
    if (options.sets && !hasSet) withoutSet.push(family);
    try {
      return await tryTables(client, options, hasSet ? omitted : new Set([...omitted, 'set']));
    } finally {
      if (hasSet) await machine.removeSet(name);
    }
  };
  try {
    const tried = await Promise.all(clients.map(tryFamily));
    return [
      ...outcomeChecks(machine, tried.flat(), options.physdev),
      ...(options.physdev && omitted.has('physdevIsIn') ? [untriedPhysdev(options.physdev)] : []),
      ...(withoutSet.length > 0 ? [untriedSet(withoutSet)] : []),
      ...(counter?.state === 'refused' ? [noCounters(counter.reason)] : []),
    ];
  } finally {
    if (counter?.state === 'done') await machine.removeCounter(TRIAL_COUNTER);
  }
}

async function tryTables(
  client: TrialClient,
  { layout, localhostNodePorts, sets: filledSets = [] }: RuleCheckOptions,
  omitted: ReadonlySet<Match['kind']>,
): Promise<readonly TriedTable[]> {
  const { family, features } = client;
  const { randomFully } = features;
  const sample = { layout, family, randomFully, localhostNodePorts, filledSets, omitted };
  const tables: TriedTable[] = [];
  for (const table of ['nat', 'filter'] as const) {
    const tried = await tryExtensions(client, table, sampleRules(table, sample));
    tables.push({ client, table, ...tried });
    // A family without nat is not served at all.
    if (tried.trial.state !== 'tried') break;
  }
  return tables;
}

function outcomeChecks(
  machine: Machine,
  tried: readonly TriedTable[],
  physdev: KernelPiece = EXTENSIONS.physdevIsIn,
): readonly Check[] {
  const tables = tried.map((each) => tableCheck(each, tried));
  // The nft variant has every match and target that nftables lacks from one module; without it, hardly any is left.
  const isCompatMissing =
    tried.every(({ client, refusals }) => refusals.size === 0 || client.variant === 'nft') &&
    tried.some(({ refusals, extensions }) => refusals.size > extensions.length / 2);
  if (isCompatMissing) {
    const keys = EXTENSION_KEYS.filter((key) => tried.some(({ refusals }) => refusals.has(key)));
    const names = keys.map((key) => EXTENSIONS[key].name).join(', ');
    const found = `the kernel refuses most of what iptables has: ${names}`;
    const remedy = moduleRemedy(machine, ['nft_compat']);
    return [...tables, absent('kernel module nft_compat', 'always', found, remedy)];
  }
  const checks = [...EXTENSION_KEYS, undefined].flatMap((key) => {
    const refusing = tried.filter(({ refusals }) => refusals.has(key));
    const row = key === 'physdevIsIn' ? physdev : key ? EXTENSIONS[key] : TOGETHER;
    const reasons = refusing.map(({ refusals }) => refusals.get(key) ?? '');
    return refusing.length > 0 ? [extensionCheck(machine, row, refusing, reasons)] : [];
  });
  return [...tables, ...checks];
}

/** One check for each, whatever tables and families it was refused in. */
function extensionCheck(
  machine: Machine,
  row: KernelPiece,
  refusing: readonly TriedTable[],
  reasons: readonly string[],
): Check {
  const places = refusing.map(({ client, table }) => `${table} ${client.family}`).join(', ');
  const families = refusing.map(({ client }) => client.family);
  const lackOfProgram = reasons.find((reason) =>
    /Couldn't load (match|target)|(unknown|unrecognized) option/i.test(reason),
  );
  return absent(
    `iptables ${row.name}`,
    row.needed,
    `refused in ${places}: ${lackOfProgram ?? reasons[0] ?? ''}`,
    lackOfProgram === undefined
      ? pieceRemedy(machine, row, families)
      : 'The programs lack it, not the kernel: install the whole package iptables, in a newer version.',
  );
}

function tableCheck(
  { client, table, extensions, trial, refusals }: TriedTable,
  tried: readonly TriedTable[],
): Check {
  const { family, variant } = client;
  const subject = `iptables ${table} table, ${family}`;
  if (trial.state === 'failed') return failureCheck(subject, trial.error);
  if (trial.state === 'tried') {
    const accepted = extensions.filter((key) => !refusals.has(key));
    const names = accepted.map((key) => EXTENSIONS[key].name.replace(/^(match|target) /, ''));
    return present(subject, 'always', names.length === 0 ? 'it is there' : `takes ${names.join(', ')}`);
  }
  // A family whose nat table does not work is left out while there is another that does.
  const otherWorks = tried.some((other) => other.client.family !== family && other.trial.state === 'tried');
  const modules =
    variant === 'nft'
      ? ['nf_tables', table === 'nat' ? 'nft_chain_nat' : 'nft_compat']
      : [`${family === 'IPv4' ? 'iptable' : 'ip6table'}_${table}`];
  return absent(
    subject,
    table === 'nat' && otherWorks ? `for ${family} services` : 'always',
    `it does not work: ${trial.reason}`,
    `On the node: modprobe -a ${modules.join(' ')}. Or, if the kernel has that: --iptables-variant=${variant === 'nft' ? 'legacy' : 'nft'}.`,
  );
}

/** A missing program, the lock, or rights. */
function failureCheck(subject: string, error: JunctionError): Check {
  // Another program's turn with the lock passes; it says nothing about the kernel.
  const isOpen = isUnanswered(error) || error.code === 'XTABLES_LOCK_UNUSABLE';
  return (isOpen ? unknown : absent)(subject, 'always', error.message, error.hint);
}

function untriedPhysdev({ name, needed }: KernelPiece): Check {
  return unknown(
    `iptables ${name}`,
    needed,
    'not tried, because that would load br_netfilter, after which bridged packets pass through iptables',
    'Nothing, if pods are not on a bridge; otherwise modprobe br_netfilter, and check again.',
  );
}

function untriedSet(families: readonly Family[]): Check {
  return unknown(
    `iptables ${EXTENSIONS.set.name}`,
    'always',
    `not tried, because no set could be made (${families.join(', ')})`,
    'Check again with the ipset types loaded.',
  );
}

function noCounters(reason: string): Check {
  return absent(
    'kernel module nfnetlink_acct',
    'for two metrics that count packets by rules',
    `no counters: ${reason}`,
    'Nothing, if you do not miss those metrics; otherwise, on the node: modprobe -a nfnetlink_acct xt_nfacct.',
  );
}
