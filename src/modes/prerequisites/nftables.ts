/** nftables: whether the kernel takes a table like ours; where it does not, which part of it. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Family } from '../../model/ip.ts';
import { absent, type Check, type CheckState, type Need, present, unknown } from './check.ts';
import type { Machine } from './machine.ts';
import { moduleRemedy } from './modules.ts';
import { COUNTERS, type NftFeature, nftFeatures } from './nftFeatures.ts';
import { EMPTY_TABLE, OWNED_TABLE, type TableTrial, type TrialTable, trialTable } from './nftTrial.ts';

/** Without these there is no table at all. */
type Base = Pick<NftFeature, 'name' | 'modules' | 'since'>;

const TABLES: Base = { name: 'tables', modules: ['nf_tables'], since: '3.13' };
const NAT_CHAINS: Base = {
  name: 'chains that rewrite addresses',
  modules: ['nft_chain_nat', 'nf_nat'],
  since: '4.18',
};

/** Every part by itself is taken, and the whole is not. */
const TOGETHER: Base = { name: 'all of it in one table', modules: ['nf_tables'], since: '5.13' };

/** Apart from the others: a table of its own. */
const OWNERSHIP = {
  name: 'tables that nobody else can change',
  modules: ['nf_tables'],
  since: '5.12',
  needed: 'for connections that should survive nft flush ruleset',
} as const;

interface Lack {
  readonly feature: Base & Partial<Pick<NftFeature, 'needed'>>;
  readonly reason: string;
}

interface TriedFamily {
  readonly family: Family;
  readonly accepted: readonly Base[];
  readonly lacks: readonly Lack[];
  /** Nothing else could be tried without it. */
  readonly lackOfBase?: Lack;
}

export async function nftChecks(machine: Machine, families: readonly Family[]): Promise<readonly Check[]> {
  const tried: TriedFamily[] = [];
  for (const family of families) tried.push(await tryOwnership(machine, await tryFamily(machine, family)));
  return tried.flatMap((one) => [familyCheck(machine, one, tried), ...lackChecks(machine, one)]);
}

/** What follows for the mode. */
export interface NftAbilities {
  /** Those that can be served. */
  readonly families: readonly Family[];
  readonly counters: boolean;
}

export function abilitiesOf(checks: readonly Check[], families: readonly Family[]): NftAbilities {
  const has = (wanted: string, ...states: readonly CheckState[]): boolean =>
    checks.every(({ subject, state }) => subject !== wanted || states.includes(state));
  return {
    // One that could not be tried is served all the same: a sync that fails is repeated.
    families: families.filter((family) => has(familySubject(family), 'present', 'unknown')),
    counters: families.every((family) => has(lackSubject(COUNTERS, family), 'present')),
  };
}

async function tryFamily(machine: Machine, family: Family): Promise<TriedFamily> {
  const features = nftFeatures(family);
  const whole = await tryTable(machine, family, trialTable(features, family));
  if (reasonOf(whole) === undefined) return { family, accepted: features, lacks: [] };
  for (const [base, table] of [
    [TABLES, EMPTY_TABLE],
    [NAT_CHAINS, trialTable([], family)],
  ] as const) {
    const reason = await refusal(machine, family, base.modules, table);
    if (reason !== undefined)
      return { family, accepted: [], lacks: [], lackOfBase: { feature: base, reason } };
  }
  const lacks: Lack[] = [];
  for (const feature of features) {
    const reason = await refusal(machine, family, feature.modules, trialTable([feature], family));
    if (reason !== undefined) lacks.push({ feature, reason });
  }
  const accepted = features.filter((feature) => !lacks.some((lack) => lack.feature === feature));
  if (lacks.length > 0) return { family, accepted, lacks };
  const again = reasonOf(await tryTable(machine, family, trialTable(features, family)));
  return { family, accepted, lacks: again === undefined ? [] : [{ feature: TOGETHER, reason: again }] };
}

async function tryOwnership(machine: Machine, tried: TriedFamily): Promise<TriedFamily> {
  if (tried.lackOfBase) return tried;
  const reason = await refusal(machine, tried.family, OWNERSHIP.modules, OWNED_TABLE);
  if (reason === undefined) return { ...tried, accepted: [...tried.accepted, OWNERSHIP] };
  return { ...tried, lacks: [...tried.lacks, { feature: OWNERSHIP, reason }] };
}

/** Where it is refused, the modules are loaded and it is tried again: the kernel does so itself, if it may. */
async function refusal(
  machine: Machine,
  family: Family,
  modules: readonly string[],
  table: TrialTable,
): Promise<string | undefined> {
  const first = reasonOf(await tryTable(machine, family, table));
  if (first === undefined) return undefined;
  const loads: string[] = [];
  for (const module of modules) {
    const load = await machine.loadModule(module);
    if (load.state === 'refused') loads.push(load.reason);
  }
  const second = reasonOf(await tryTable(machine, family, table));
  return second === undefined ? undefined : [second, ...loads].join('; ');
}

/** What the kernel says, or a message ends with, when it is busy with somebody else's change. */
const TRANSIENT = /\b(?:EINTR|EAGAIN|EBUSY|ENOBUFS|ERESTART|EMFILE)\b/;
const TRIES = 4;
const PAUSE_MS = 10;

/** A node starts many programs at once, and one that writes rules meanwhile does not mean that something is missing. */
async function tryTable(machine: Machine, family: Family, table: TrialTable): Promise<TableTrial> {
  for (let tries = 1; ; tries++) {
    const trial = await machine.tryTable(family, table);
    if (trial.state === 'done' || tries === TRIES || !TRANSIENT.test(trial.reason)) return trial;
    await sleep(PAUSE_MS * tries);
  }
}

function reasonOf(trial: TableTrial): string | undefined {
  if (trial.state === 'refused') return `the kernel refuses it (${trial.reason})`;
  return trial.different.length === 0 ? undefined : 'the kernel takes it, and knows nothing of it afterwards';
}

/** A family without tables is left out while there is another that has them. */
function familyCheck(
  machine: Machine,
  { family, accepted, lackOfBase }: TriedFamily,
  tried: readonly TriedFamily[],
): Check {
  const subject = familySubject(family);
  const otherWorks = tried.some((other) => other.family !== family && other.lackOfBase === undefined);
  const needed: Need = otherWorks && lackOfBase ? `for ${family} services` : 'always';
  if (lackOfBase)
    return lacking(lackOfBase.reason)(
      subject,
      needed,
      `no ${lackOfBase.feature.name} of this family: ${lackOfBase.reason}`,
      `${remedy(machine, lackOfBase.feature)} Its options are ${optionsFor(family)}.`,
    );
  return present(subject, needed, `takes ${accepted.map(({ name }) => name).join(', ')}`);
}

function lackChecks(machine: Machine, { family, lacks }: TriedFamily): readonly Check[] {
  return lacks.map(({ feature, reason }) =>
    lacking(reason)(
      lackSubject(feature.name, family),
      feature.needed ?? 'always',
      reason,
      remedy(machine, feature),
    ),
  );
}

/** A kernel that was busy, or short of descriptors, to the last has said nothing about the kernel. */
function lacking(reason: string): typeof absent {
  return TRANSIENT.test(reason) ? unknown : absent;
}

function remedy(machine: Machine, { modules, since }: Base): string {
  const kernel = `It came with Linux ${since}; this is ${machine.kernelRelease}.`;
  return `${kernel} Kernel module${modules.length > 1 ? 's' : ''} ${modules.join(', ')}. ${moduleRemedy(machine, modules)}`;
}

/** Of the kernel's configuration: modules do not tell whether a family is built in. */
function optionsFor(family: Family): string {
  return `CONFIG_NF_TABLES, CONFIG_NF_TABLES_${family.toUpperCase()}, CONFIG_NFT_NAT`;
}

function familySubject(family: Family): string {
  return `nftables, ${family}`;
}

function lackSubject(name: string, family: Family): string {
  return `nftables: ${name}, ${family}`;
}
