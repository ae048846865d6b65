/**
 * What the nftables mode needs: a kernel that takes the table which the mode writes for the sample services. The table is
 * written under another name and deleted. Everything is asked by netlink: the program nft need not be installed.
 */
import { type Family, hostCidr } from '../../model/ip.ts';
import {
  absent,
  type Check,
  type Need,
  present,
  unknown,
  conntrackCheck,
  familyModules,
  loadModules,
  moduleRemedy,
} from '../prerequisites/check.ts';
import type { Machine } from '../prerequisites/machine.ts';
import { NOBODY, samplePlan } from '../prerequisites/sample.ts';
import { TRANSIENT } from './client.ts';
import { wholeTable } from './rules/counts.ts';
import { printDeclaration, printNftRule } from './print.ts';
import { addChains, addSets, byName, editOperations, nftRule, toChain } from './rules/table.ts';
import type { ChainSpec, Statement, TableOperation, TableTransaction } from './rules/table.ts';

/** The first kernel with all of it. */
const SINCE = '5.9';
/** The kernel modules of statements; of others, nf_tables. */
const MODULES: Partial<Record<Statement['kind'], string>> = {
  addressType: 'nft_fib_ipv* nft_fib',
  reject: 'nft_reject_ipv* nft_reject',
  isRewritten: 'nft_ct nf_conntrack',
  learn: 'nft_ct nf_tables',
  masquerade: 'nft_masq',
  dnatByMap: 'nft_nat nft_numgen',
};

const OWNERSHIP = 'tables that no other program can change';
const OWNERSHIP_NEED: Need = 'for connections that should survive nft flush ruleset';

type FamilyTrial =
  | { readonly family: Family; readonly state: 'done' }
  | {
      readonly family: Family;
      readonly state: 'refused';
      /** The refused operation as nft prints it. */
      readonly what: string;
      readonly reason: string;
      readonly modules: readonly string[];
      /** The kernel has no table, or no NAT, of this family. */
      readonly isFamily: boolean;
    };

export async function nftablesModeChecks(
  machine: Machine,
  families: readonly Family[],
): Promise<readonly Check[]> {
  const trials: FamilyTrial[] = [];
  for (const family of families) trials.push(await tryFamily(machine, family));
  const works = trials.some(({ state }) => state === 'done');
  const checks: Check[] = [];
  for (const trial of trials) {
    checks.push(familyCheck(machine, trial, works));
    if (trial.state === 'done') checks.push(await ownershipCheck(machine, trial.family));
  }
  return [...checks, await conntrackCheck(machine, families)];
}

/** A family that could not be tried is served all the same: a sync that fails is repeated. */
export function canServe(checks: readonly Check[], family: Family): boolean {
  const check = checks.find(({ subject }) => subject === familySubject(family));
  return check?.state === 'present' || check?.state === 'unknown';
}

/** Loads the modules of what is refused, until the same is refused again. */
async function tryFamily(machine: Machine, family: Family): Promise<FamilyTrial> {
  const transaction = sampleTable(family);
  let refused: TableOperation | undefined;
  let failures = '';
  for (;;) {
    const trial = await machine.tryTable(family, transaction);
    if (trial.state === 'done') return { family, state: 'done' };
    const { operation = transaction[0] } = trial;
    const modules = modulesOf(operation, transaction, family);
    if (operation === refused || TRANSIENT.test(trial.reason)) {
      const isFamily = operation?.kind === 'addTable' || operation?.kind === 'addChain';
      const reason = `the kernel refuses it (${trial.reason})${failures}`;
      return { family, state: 'refused', what: printOperation(operation, family), reason, modules, isFamily };
    }
    refused = operation;
    failures = await loadModules(machine, modules);
  }
}

/** A family without tables or NAT is left out if another one works. */
function familyCheck(machine: Machine, trial: FamilyTrial, otherWorks: boolean): Check {
  const subject = familySubject(trial.family);
  if (trial.state === 'done')
    return present(subject, 'always', 'the kernel takes the table of sample services');
  const { family, what, reason, modules, isFamily } = trial;
  // A kernel that was busy, or short of descriptors, to the last has said nothing about the operation.
  const check = TRANSIENT.test(reason) ? unknown : absent;
  const remedy = moduleRemedy(machine, modules, SINCE);
  return check(
    subject,
    isFamily && otherWorks ? `for ${family} services` : 'always',
    `${what}: ${reason}`,
    // Modules do not tell whether a family is built in.
    isFamily
      ? `${remedy} Its options are CONFIG_NF_TABLES, CONFIG_NF_TABLES_${family.toUpperCase()}, CONFIG_NFT_NAT.`
      : remedy,
  );
}

async function ownershipCheck(machine: Machine, family: Family): Promise<Check> {
  const subject = `nftables: ${OWNERSHIP}, ${family}`;
  const lasting = await machine.tryTable(family, [{ kind: 'addTable', isOwned: true, isPersistent: true }]);
  if (lasting.state === 'done') return present(subject, OWNERSHIP_NEED, 'the kernel protects the table');
  const trial = await machine.tryTable(family, [{ kind: 'addTable', isOwned: true }]);
  if (trial.state === 'done')
    return present(subject, OWNERSHIP_NEED, 'the kernel protects the backstop; the table, from Linux 6.9 on');
  const found = `the kernel refuses it (${trial.reason})`;
  return absent(
    subject,
    OWNERSHIP_NEED,
    found,
    `They came with Linux 5.12; this is ${machine.kernelRelease}.`,
  );
}

function familySubject(family: Family): string {
  return `nftables, ${family}`;
}

/** The modules of what the refused operation has and the operations before it do not. */
function modulesOf(
  refused: TableOperation | undefined,
  transaction: TableTransaction,
  family: Family,
): readonly string[] {
  if (refused?.kind === 'addChain') return ['nft_chain_nat', 'nf_nat'];
  if (refused?.kind !== 'addRule') return ['nf_tables'];
  const before = transaction.slice(0, transaction.indexOf(refused)).flatMap(statementsOf);
  const fresh = statementsOf(refused).filter(({ kind }) => before.every((each) => each.kind !== kind));
  const modules = fresh.flatMap(({ kind }) => familyModules(MODULES[kind] ?? 'nf_tables', family));
  return modules.length > 0 ? [...new Set(modules)] : ['nf_tables'];
}

function statementsOf(operation: TableOperation): readonly Statement[] {
  return operation.kind === 'addRule' ? operation.rule.statements : [];
}

function printOperation(operation: TableOperation | undefined, family: Family): string {
  switch (operation?.kind) {
    case 'addChain':
      return `chain ${operation.chain}${operation.hook ? ` of type nat at ${operation.hook.point}` : ''}`;
    case 'addSet':
      return printDeclaration(operation.set, family);
    case 'addRule':
      return `rule in ${operation.chain}: ${printNftRule(operation.rule, family)}`;
    case 'addElements':
      return `elements of ${operation.set.name}`;
    default:
      return `tables of ${family}`;
  }
}

const MARK = 0x4000;
/** The kernel makes room for all of them when the map is made. */
const MAX_CLIENTS = 64;

/**
 * The kernel checks whether a rule may stand at a hook only when it takes the whole table, so the table is there for a
 * moment; its rules stand behind one that asks for an address that no packet has.
 */
function sampleTable(family: Family): TableTransaction {
  const { sets, chains, elements } = wholeTable(samplePlan(family, false), {
    masqueradeMark: MARK,
    counters: true,
    nodePortIps: [NOBODY[family]],
    serviceCidrs: [hostCidr(NOBODY[family])],
  });
  const small = sets.map((set) => (set.dynamicSize ? { ...set, dynamicSize: MAX_CLIENTS } : set));
  return [
    { kind: 'addTable' },
    ...addSets(small),
    ...addChains(chains.flatMap((chain) => guarded(chain, family))),
    ...editOperations([{ removes: [], adds: elements }], byName(small)),
  ];
}

/** A chain at a hook passes on only what is sent to nobody. */
function guarded(chain: ChainSpec, family: Family): readonly ChainSpec[] {
  const { hook, name, rules } = chain;
  if (!hook) return [chain];
  const behind = `${name}-behind`;
  const cidr = hostCidr(NOBODY[family]);
  const toNobody: Statement = { kind: 'addressIn', side: 'destination', cidr, not: false };
  return [
    { name: behind, rules },
    { name, hook, rules: [nftRule(toNobody, toChain(behind))] },
  ];
}
