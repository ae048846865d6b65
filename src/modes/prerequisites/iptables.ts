/** iptables: its programs, the tables, and whether the kernel takes each match and target that a mode writes. */
import type { Rule, Table } from '../iptables/rules/rule.ts';
import type { JunctionError } from '../../errors.ts';
import type { Family } from '../../model/ip.ts';
import { isUnanswered } from '../../system/processes.ts';
import { absent, type Check, present, unknown } from './check.ts';
import { type Extension, SET } from './extensions.ts';
import type { Machine, TrialDoor } from './machine.ts';
import { type Refusal, refusalChecks } from './refusals.ts';
import { type TableTrial, tryRules } from './ruleTrial.ts';
import { TRIAL_COUNTER, TRIAL_SETS, type TrialRule, type TrialSupport } from './trialRules.ts';

export interface RuleTrialOptions {
  readonly rulesOf: (support: TrialSupport) => readonly TrialRule[];
  /** The rules refer to sets. */
  readonly sets: boolean;
  /** Rules count into counters, where there are any. */
  readonly counters: boolean;
  /** What the match physdev is for, if the rules have it. */
  readonly physdev?: Extension | undefined;
}

/** Of one table in one family. */
interface Tried {
  readonly door: TrialDoor;
  readonly table: Table;
  readonly rules: readonly TrialRule[];
  readonly trial: TableTrial;
}

export async function ruleChecks(
  machine: Machine,
  doors: readonly TrialDoor[],
  options: RuleTrialOptions,
): Promise<readonly Check[]> {
  // Where it is not loaded already, see `TrialSupport`.
  const physdev = machine.sysctl('net/bridge/bridge-nf-call-iptables').state !== 'absent';
  const counter = options.counters ? machine.makeCounter(TRIAL_COUNTER) : undefined;
  const withCounter = counter?.state === 'done';
  try {
    const tried = await Promise.all(
      doors.map((door) => tryFamily(machine, door, options, { physdev, counter: withCounter })),
    );
    const withoutSet = tried.filter(({ set }) => options.sets && !set).map(({ door }) => door.family);
    return [
      ...outcomeChecks(
        machine,
        tried.flatMap(({ tables }) => tables),
      ),
      ...(options.physdev && !physdev ? [untriedPhysdev(options.physdev)] : []),
      ...(withoutSet.length > 0 ? [untriedSet(withoutSet)] : []),
      ...(counter?.state === 'refused' ? [noCounters(counter.reason)] : []),
    ];
  } finally {
    if (withCounter) await machine.removeCounter(TRIAL_COUNTER);
  }
}

interface TriedFamily {
  readonly door: TrialDoor;
  readonly set: boolean;
  readonly tables: readonly Tried[];
}

async function tryFamily(
  machine: Machine,
  door: TrialDoor,
  options: RuleTrialOptions,
  support: Pick<TrialSupport, 'physdev' | 'counter'>,
): Promise<TriedFamily> {
  const { family, features } = door;
  const name = TRIAL_SETS[family];
  const set = options.sets && machine.makeSet(name, family).state === 'done';
  try {
    const rules = options.rulesOf({ ...support, family, set, randomFully: features.randomFully });
    return { door, set, tables: await tryTables(door, rules) };
  } finally {
    if (set) await machine.removeSet(name);
  }
}

async function tryTables(door: TrialDoor, rules: readonly TrialRule[]): Promise<readonly Tried[]> {
  const tried: Tried[] = [];
  for (const table of ['nat', 'filter'] as const) {
    const own = rules.filter((each) => each.table === table);
    const trial = await tryRules(
      door,
      table,
      own.map(({ rule }) => rule),
    );
    tried.push({ door, table, rules: own, trial });
    // A family without nat is not served at all.
    if (trial.state !== 'tried') break;
  }
  return tried;
}

function outcomeChecks(machine: Machine, tried: readonly Tried[]): readonly Check[] {
  const refusals: Refusal[] = [];
  const checks = tried.map(({ door, table, rules, trial }): Check => {
    const subject = `iptables ${table} table, ${door.family}`;
    switch (trial.state) {
      case 'failed':
        return failureCheck(subject, trial.error);
      case 'noTable':
        return tableCheck(subject, door, table, trial.reason, tried);
      case 'tried': {
        const { refused } = trial;
        for (const { extension, rule } of rules) {
          const reason = refused.get(rule);
          if (reason !== undefined) refusals.push({ extension, door, table, reason });
        }
        return present(subject, 'always', acceptedNames(rules, refused));
      }
    }
  });
  const total = tried.reduce((sum, { rules }) => sum + rules.length, 0);
  return [...checks, ...refusalChecks(machine, refusals, total)];
}

function acceptedNames(rules: readonly TrialRule[], refused: ReadonlyMap<Rule, string>): string {
  const accepted = rules.filter(({ rule }) => !refused.has(rule)).map(({ extension }) => extension.name);
  const names = [...new Set(accepted)].map((name) => name.replace(/^(match|target) /, ''));
  return names.length === 0 ? 'it is there' : `takes ${names.join(', ')}`;
}

/** A missing program, the lock, or rights. */
function failureCheck(subject: string, error: JunctionError): Check {
  // Another program's turn with the lock passes; it says nothing about the kernel.
  const isOpen = isUnanswered(error) || error.code === 'XTABLES_LOCK_UNUSABLE';
  return (isOpen ? unknown : absent)(subject, 'always', error.message, error.hint);
}

/** A family whose nat table does not work is left out while there is another that does. */
function tableCheck(
  subject: string,
  { family, variant }: TrialDoor,
  table: Table,
  reason: string,
  tried: readonly Tried[],
): Check {
  const otherWorks = tried.some(({ door, trial }) => door.family !== family && trial.state === 'tried');
  const modules =
    variant === 'nft'
      ? ['nf_tables', table === 'nat' ? 'nft_chain_nat' : 'nft_compat']
      : [`${family === 'IPv4' ? 'iptable' : 'ip6table'}_${table}`];
  return absent(
    subject,
    table === 'nat' && otherWorks ? `for ${family} services` : 'always',
    `it does not work: ${reason}`,
    `On the node: modprobe -a ${modules.join(' ')}. Or, if the kernel has that: --iptables-variant=${variant === 'nft' ? 'legacy' : 'nft'}.`,
  );
}

function untriedPhysdev({ name, needed }: Extension): Check {
  return unknown(
    `iptables ${name}`,
    needed,
    'not tried, because that would load br_netfilter, after which bridged packets pass through iptables',
    'Nothing, if pods are not on a bridge; otherwise modprobe br_netfilter, and check again.',
  );
}

function untriedSet(families: readonly Family[]): Check {
  return unknown(
    `iptables ${SET.name}`,
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
