/**
 * What the iptables mode needs: its programs, and a kernel that takes the rules which the mode writes for the sample
 * services. They are offered in a chain that nothing jumps to, all together, and one by one where they are refused.
 */
import type { ValidConfig } from '../../config/effective.ts';
import { toSettings } from '../../config/settings.ts';
import { isJunctionError, type JunctionError } from '../../errors.ts';
import type { Family } from '../../model/ip.ts';
import { nodeView } from '../../plan/view.ts';
import { isUnanswered } from '../../system/processes.ts';
import {
  absent,
  type Check,
  type Need,
  present,
  unknown,
  conntrackCheck,
  familyModules,
  moduleRemedy,
  sysctlChecks,
} from '../prerequisites/check.ts';
import type { Machine, TrialClient } from '../prerequisites/machine.ts';
import { samplePlan } from '../prerequisites/sample.ts';
import { isIncompatible } from './outcome.ts';
import { compileAll, type CompileOptions, type Layout } from './rules/fragment.ts';
import { rule } from './rules/layouts/common.ts';
import { LAYOUTS } from './rules/layouts/index.ts';
import { TRIAL_CHAIN } from './rules/names.ts';
import { appendLine, chainLine, printRule } from './rules/print.ts';
import type { Match, Rule, Table } from './rules/rule.ts';

/** The kernel module of a match or target, where it is not `xt_` and the name. */
const MODULES: Readonly<Record<string, string>> = {
  '-m tcp': 'xt_tcpudp',
  '-m udp': 'xt_tcpudp',
  '-j DNAT': 'xt_nat',
  '-j REJECT': 'ipt_REJECT',
  // xt_MASQUERADE since kernel 5.2, which has an alias for the older name.
  '-j MASQUERADE': 'ipt_MASQUERADE',
};
/** What the mode can run without, and what it is needed for. */
const NEEDS: Readonly<Record<string, Need>> = {
  '-m recent': 'for Services with sessionAffinity: ClientIP',
  '-m sctp': 'for Services of protocol SCTP',
  '-m physdev': 'for Services with external IPs',
  '-m ipvs': 'for load balancers with source ranges that leave the node out',
};
const ROUTE_LOCALNET = {
  name: 'net/ipv4/conf/all/route_localnet',
  value: 1,
  needed: 'for node ports on 127.0.0.1',
} as const;

export async function iptablesModeChecks(
  machine: Machine,
  clients: readonly TrialClient[],
  config: ValidConfig,
): Promise<readonly Check[]> {
  const layout = LAYOUTS[config.junction.iptablesLayout];
  const localhostNodePorts = answersOnLoopback(config);
  return [
    ...(await ruleChecks(machine, clients, { layout, localhostNodePorts })),
    await conntrackCheck(
      machine,
      clients.map(({ family }) => family),
    ),
    ...sysctlChecks(machine, localhostNodePorts ? [ROUTE_LOCALNET] : []),
  ];
}

/** Node ports answer on 127.0.0.1. */
export function answersOnLoopback(config: ValidConfig): boolean {
  return nodeView(toSettings(config, config.hostnameOverride), undefined, 'IPv4').nodePorts.loopback;
}

/** The programs of iptables, one set for each family. */
export async function openClients(
  machine: Machine,
  families: readonly Family[],
): Promise<{ readonly clients: readonly TrialClient[]; readonly checks: readonly Check[] }> {
  const clients: TrialClient[] = [];
  const checks: Check[] = [];
  for (const family of families) {
    const subject = `program ${family === 'IPv4' ? 'iptables' : 'ip6tables'}`;
    try {
      const client = await machine.openClient(family);
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

/** Tables in which nft wrote a rule that iptables cannot print. */
export async function foreignRuleChecks(clients: readonly TrialClient[]): Promise<readonly Check[]> {
  const checks: Check[] = [];
  for (const client of clients.filter(({ variant }) => variant === 'nft'))
    for (const table of ['nat', 'filter'] as const)
      if (await hasForeignRule(client, table))
        checks.push(
          absent(
            `iptables ${table} table, ${client.family}`,
            'for programs that read it with iptables-save',
            'iptables cannot print it, because nft wrote a rule into it',
            `Junction works all the same. nft list table ${client.family === 'IPv4' ? 'ip' : 'ip6'} ${table} shows the rule; it belongs in a table of its own.`,
          ),
        );
  return checks;
}

async function hasForeignRule(client: TrialClient, table: Table): Promise<boolean> {
  let isForeign = false;
  try {
    await client.readTable(table, async (text) => {
      isForeign ||= isIncompatible(text);
    });
  } catch (error) {
    // The trial of the rules says what is wrong.
    if (!isJunctionError(error)) throw error;
  }
  return isForeign;
}

interface SampleOptions {
  readonly layout: Layout;
  readonly localhostNodePorts: boolean;
}

/** A family without nat is left out if the other one works. */
export async function ruleChecks(
  machine: Machine,
  clients: readonly TrialClient[],
  options: SampleOptions,
): Promise<readonly Check[]> {
  const checks: Check[] = [];
  for (const client of clients) {
    const isOther = checks.some(({ state }) => state === 'present');
    checks.push(
      ...(await familyChecks(machine, client, options, isOther ? `for ${client.family} services` : 'always')),
    );
  }
  return checks;
}

/** Of matches and targets that the mode can run without, all that are refused; of the others, the first. */
async function familyChecks(
  machine: Machine,
  client: TrialClient,
  options: SampleOptions,
  needed: Need,
): Promise<readonly Check[]> {
  const { family } = client;
  const subject = `iptables rules, ${family}`;
  const set = TRIAL_SETS[family];
  const samples = (['nat', 'filter'] as const).map(
    (table) => [table, sampleRules(table, client, options)] as const,
  );
  const matchesSet = samples.some(([, rules]) => rules.some((each) => wordsOf(each).includes('-m set')));
  const hasSet = matchesSet && (await machine.makeSet(set, family)).state === 'done';
  // The first use of physdev loads br_netfilter, after which bridged packets pass through iptables.
  const hasBridges = machine.sysctl('net/bridge/bridge-nf-call-iptables').state !== 'absent';
  const refused = new Set([...(hasSet ? [] : ['-m set']), ...(hasBridges ? [] : ['-m physdev'])]);
  const degraded: Check[] = [];
  try {
    for (const [table, sample] of samples) {
      const rules = sample.filter((each) => !wordsOf(each).some((words) => refused.has(words)));
      const refusals = await refusalsOf(client, table, rules);
      if (typeof refusals === 'string') return [noTable(subject, needed, client, table, refusals)];
      for (const [words, reason] of refusals) {
        refused.add(words);
        const check = refusalCheck(machine, client, table, words, reason);
        if (check.state === 'missing') return [...degraded, check];
        degraded.push(check);
      }
    }
    return [present(subject, 'always', 'the kernel takes those of sample services'), ...degraded];
  } catch (error) {
    if (!isJunctionError(error)) throw error;
    return [failureCheck(subject, error)];
  } finally {
    if (hasSet) await machine.removeSet(set);
  }
}

const PLAIN = rule([], { kind: 'accept' });

/**
 * Why the kernel refuses `-m recent`, or a whole rule if it takes others with the same matches and targets. A text: the table takes
 * no rule at all.
 */
async function refusalsOf(
  client: TrialClient,
  table: Table,
  sample: readonly Rule[],
): Promise<ReadonlyMap<string, string> | string> {
  const refusals = new Map<string, string>();
  if ((await offer(client, table, [PLAIN, ...sample])) === undefined) return refusals;
  const reason = await offer(client, table, [PLAIN]);
  if (reason !== undefined) return reason;
  const accepted = new Set<string>();
  const refused: { readonly rule: Rule; readonly reason: string }[] = [];
  for (const each of sample) {
    const why = await offer(client, table, [each]);
    if (why !== undefined) refused.push({ rule: each, reason: why });
    else for (const words of wordsOf(each)) accepted.add(words);
  }
  // Simple rules first: of those there is least to choose from.
  for (const { rule: each, reason: why } of refused.sort(
    (a, b) => wordsOf(a.rule).length - wordsOf(b.rule).length,
  )) {
    const words = wordsOf(each);
    if (words.some((word) => refusals.has(word))) continue;
    refusals.set(words.find((word) => !accepted.has(word)) ?? printRule(each), why);
  }
  return refusals;
}

/** `-m recent` and `-j DNAT`. */
function wordsOf(each: Rule): readonly string[] {
  return printRule(each).match(WORDS) ?? [];
}

const WORDS = /(?<=^| )-[mj] [\w-]+/g;

function moduleOf(words: string): string {
  return MODULES[words] ?? words.toLowerCase().replace(/^-[mj] /, 'xt_');
}

/** Returns why the kernel refuses the rules. */
async function offer(client: TrialClient, table: Table, rules: readonly Rule[]): Promise<string | undefined> {
  const lines = [HEAD, ...rules.map((each) => appendLine(TRIAL_CHAIN, each))];
  if (client.variant === 'nft') {
    // The transaction also deletes the chain with its rules, which the kernel refuses after it has looked at each rule. It
    // names every line that it refuses, and nothing is there, not for a moment. POSTROUTING, because the kernel's own
    // chains in the nat table need a module that a chain of ours does not.
    const head = table === 'nat' ? [chainLine('POSTROUTING')] : [];
    const error = await restore(client, table, [...head, ...lines, REMOVAL]);
    const named = [...(error?.detail ?? '').matchAll(/^line \d+: (\w+) failed \((.*?)\)/gm)];
    // Before 1.8.9 it is CHAIN_USER_DEL.
    const [, , reason] = named.find(([, operation = '']) => !/^CHAIN_(USER_)?DEL$/.test(operation)) ?? [];
    // The first nft variants name no lines.
    if (!error || named.length > 0) return reason && `the kernel refuses it ("${reason}")`;
  }
  try {
    const error = await restore(client, table, lines);
    return error && reasonOf(error);
  } finally {
    // Also what a killed run left.
    await restore(client, table, [HEAD, REMOVAL]);
  }
}

const HEAD = chainLine(TRIAL_CHAIN);
const REMOVAL = `-X ${TRIAL_CHAIN}`;

async function restore(
  client: TrialClient,
  table: Table,
  lines: readonly string[],
): Promise<JunctionError | undefined> {
  try {
    await client.restore(table, [`*${table}`, ...lines, 'COMMIT', ''].join('\n'));
    return undefined;
  } catch (error) {
    if (isJunctionError(error, 'IPTABLES_RESTORE_FAILED')) return error;
    throw error;
  }
}

/** The line that says most: that a library or a module is missing, rather than that a line failed. */
function reasonOf({ detail, message }: JunctionError): string {
  const lines = (detail ?? message).split('\n');
  const best = lines.find((line) =>
    /missing kernel module|Couldn't load|initialize|option|Could not/.test(line),
  );
  return (best ?? message).replace(/^\S*restore v\S+ \(\w+\): /, '').trim();
}

function refusalCheck(
  machine: Machine,
  { family, variant }: TrialClient,
  table: Table,
  words: string,
  reason: string,
): Check {
  const modules = [
    // Which brings every match and target that nftables lacks.
    ...(variant === 'nft' ? ['nft_compat'] : []),
    ...(words.match(WORDS) ?? []).flatMap((each) => familyModules(moduleOf(each), family)),
  ];
  return absent(
    `iptables ${words}, ${family}`,
    NEEDS[words] ?? 'always',
    `refused in the ${table} table: ${reason}`,
    /Couldn't load (match|target)|(unknown|unrecognized) option/i.test(reason)
      ? 'The programs lack it, not the kernel: install the whole package iptables, in a newer version.'
      : moduleRemedy(machine, modules),
  );
}

function noTable(
  subject: string,
  needed: Need,
  { family, variant }: TrialClient,
  table: Table,
  reason: string,
): Check {
  const modules =
    variant === 'nft'
      ? ['nf_tables', table === 'nat' ? 'nft_chain_nat' : 'nft_compat']
      : [`${family === 'IPv4' ? 'iptable' : 'ip6table'}_${table}`];
  return absent(
    subject,
    table === 'nat' ? needed : 'always',
    `the ${table} table does not work: ${reason}`,
    `On the node: modprobe -a ${modules.join(' ')}. Or, if the kernel has that: --iptables-variant=${variant === 'nft' ? 'legacy' : 'nft'}.`,
  );
}

/** A missing program, the lock, or rights. */
function failureCheck(subject: string, error: JunctionError): Check {
  // A lock that another program holds says nothing about the kernel.
  const isOpen = isUnanswered(error) || error.code === 'XTABLES_LOCK_UNUSABLE';
  return (isOpen ? unknown : absent)(subject, 'always', error.message, error.hint);
}

const TRIAL_SETS: Readonly<Record<Family, string>> = { IPv4: TRIAL_CHAIN, IPv6: 'KUBE-6-JUNCTION-TRIAL' };
const MARK = 0x4000;

/** Each once. No rule jumps, and chains and sets in them have the names of the trial. */
function sampleRules(
  table: Table,
  { family, features }: TrialClient,
  { layout, localhostNodePorts }: SampleOptions,
): readonly Rule[] {
  const plan = samplePlan(family, localhostNodePorts);
  const compile: CompileOptions = {
    family,
    view: plan.view,
    nodePortIps: 'all',
    masqueradeMark: MARK,
    randomFully: features.randomFully,
    dropInvalid: true,
    nfacct: { invalidDropped: false, localhostNodePorts: false },
    endpointComments: true,
  };
  const { chains, tail, foreign } = layout.base(compile);
  const fragments = [...compileAll(layout, plan.servicePorts, compile)].map(([, fragment]) => fragment);
  const shared = [...layout.jumps, ...tail, ...foreign, ...fragments.flatMap((each) => each.shared)];
  const rules = [
    ...[...chains, ...fragments.flatMap((each) => each.chains)]
      .filter((chain) => chain.table === table)
      .flatMap((chain) => chain.rules),
    ...shared.filter((each) => each.table === table).map((each) => each.rule),
  ].map((each) => forTrial(each, family));
  return [...new Map(rules.map((each) => [printRule(each), each])).values()];
}

function forTrial({ matches, target }: Rule, family: Family): Rule {
  const named = matches.map((match): Match => {
    if (match.kind === 'recentSet' || match.kind === 'recentCheck') return { ...match, name: TRIAL_CHAIN };
    return match.kind === 'set' ? { ...match, name: TRIAL_SETS[family] } : match;
  });
  return rule(named, target?.kind === 'jump' ? PLAIN.target : target);
}
