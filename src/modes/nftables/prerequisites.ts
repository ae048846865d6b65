/**
 * What nftables mode needs: a kernel that takes the table which the mode writes for the sample services. Where it does
 * not, the table is offered again piece by piece. All by netlink: the program nft need not be installed.
 */
import { isJunctionError } from '../../errors.ts';
import type { Family } from '../../model/ip.ts';
import { systemClock } from '../../time/systemClock.ts';
import { wait } from '../../time/wait.ts';
import { absent, DONE, present, unknown } from '../prerequisites/check.ts';
import type { Check, CheckState, Need, Trial } from '../prerequisites/check.ts';
import type { Machine } from '../prerequisites/machine.ts';
import {
  conntrackCheck,
  kernelPiece,
  modulesOf,
  offerWithModules,
  pieceRemedy,
} from '../prerequisites/pieces.ts';
import type { KernelPiece } from '../prerequisites/pieces.ts';
import { atLeast } from '../iptables/variant.ts';
import { TRANSIENT } from './client.ts';
import { EMPTY_TABLE, OWNED_TABLE, type TrialTable, trialTable } from './trialTable.ts';

/** Without these there is no table at all. */
const TABLES = kernelPiece('tables', 'nf_tables', 'always', '3.13');
const NAT_CHAINS = kernelPiece('chains that rewrite addresses', 'nft_chain_nat nf_nat', 'always', '4.18');

const AFFINITY: Need =
  'for Services with sessionAffinity: ClientIP, the first of which would keep all rules from being written';
const METRICS: Need = 'for metrics that count connections by service and endpoint';
const COUNTERS = 'counters of elements';

/** `pieceOf` in `trialTable.ts` says which statements of the table belong to which of these. */
export const NFT_PIECES = [
  kernelPiece('sets of several fields', 'nf_tables', 'always', '4.1'),
  kernelPiece('sets of ranges', 'nf_tables', 'always', '3.13'),
  kernelPiece('sets of several fields with ranges', 'nf_tables', 'always', '5.6'),
  kernelPiece('rewriting the destination by a map', 'nft_nat', 'always', '4.1'),
  kernelPiece('drawing an endpoint at random', 'nft_numgen', 'always', '4.9'),
  kernelPiece('maps to chains', 'nf_tables', 'always', '3.13'),
  kernelPiece('asking whether an address is local', 'nft_fib_ipv* nft_fib', 'always', '4.10'),
  kernelPiece('refusing a connection before it is routed', 'nft_reject_ipv* nft_reject', 'always', '5.9'),
  kernelPiece('marks of packets', 'nf_tables', 'always', '3.13'),
  kernelPiece('asking connection tracking', 'nft_ct nf_conntrack', 'always', '3.13'),
  kernelPiece('masquerading with random ports', 'nft_masq', 'always', '3.18'),
  kernelPiece('affinity entries', 'nft_ct nf_tables', AFFINITY, '4.3'),
  kernelPiece('affinity lookup', 'nft_nat nf_tables', AFFINITY, '4.3'),
  kernelPiece(COUNTERS, 'nf_tables', METRICS, '5.7'),
] as const;

export type NftPieceName = (typeof NFT_PIECES)[number]['name'];

/** The kernel takes each piece by itself, and not the whole. */
const TOGETHER = kernelPiece('all of it in one table', 'nf_tables', 'always', '5.13');
/** Offered as a table of its own. */
const OWNERSHIP = kernelPiece(
  'tables that nobody else can change',
  'nf_tables',
  'for connections that should survive nft flush ruleset',
  '5.12',
);

interface Lack {
  readonly row: KernelPiece;
  readonly reason: string;
}

interface TriedFamily {
  readonly family: Family;
  readonly accepted: readonly KernelPiece[];
  readonly lacks: readonly Lack[];
  /** Without it nothing else was tried. */
  readonly lackOfBase?: Lack | undefined;
}

export async function nftablesModeChecks(
  machine: Machine,
  families: readonly Family[],
): Promise<readonly Check[]> {
  const tried: TriedFamily[] = [];
  for (const family of families) tried.push(await tryFamily(machine, family));
  return [
    ...tried.flatMap((one) => [familyCheck(machine, one, tried), ...lackChecks(machine, one)]),
    await conntrackCheck(machine, families),
    ...(await nftProgramChecks(machine)),
  ];
}

/** What follows for the mode. */
interface NftAbilities {
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
    counters: families.every((family) => has(pieceSubject(COUNTERS, family), 'present')),
  };
}

/** All of it at once; piece by piece only to find out which. */
async function tryFamily(machine: Machine, family: Family): Promise<TriedFamily> {
  const whole = trialTable(family);
  const lacks: Lack[] = [];
  const isLacking = async (row: KernelPiece, table: TrialTable): Promise<boolean> => {
    const offer = (): Promise<Trial> => tryTable(machine, family, table);
    const trial = await offerWithModules(machine, modulesOf(row, family), offer);
    if (trial.state === 'refused') lacks.push({ row, reason: trial.reason });
    return trial.state === 'refused';
  };
  if ((await tryTable(machine, family, whole)).state === 'refused') {
    if ((await isLacking(TABLES, EMPTY_TABLE)) || (await isLacking(NAT_CHAINS, trialTable(family, []))))
      return { family, accepted: [], lacks: [], lackOfBase: lacks[0] };
    for (const row of NFT_PIECES) await isLacking(row, trialTable(family, [row.name]));
    const again = lacks.length > 0 ? DONE : await tryTable(machine, family, whole);
    if (again.state === 'refused') lacks.push({ row: TOGETHER, reason: again.reason });
  }
  await isLacking(OWNERSHIP, OWNED_TABLE);
  const accepted = [...NFT_PIECES, OWNERSHIP].filter((row) => !lacks.some((lack) => lack.row === row));
  return { family, accepted, lacks };
}

const TRIES = 4;
const PAUSE_MS = 10;

/** A node starts many programs at once, and one that writes rules meanwhile does not mean that something is missing. */
async function tryTable(machine: Machine, family: Family, table: TrialTable): Promise<Trial> {
  for (let tries = 1; ; tries++) {
    const trial = await machine.tryTable(family, table);
    if (trial.state === 'done') return trial.different.length === 0 ? DONE : FORGOTTEN;
    if (tries === TRIES || !TRANSIENT.test(trial.reason))
      return { state: 'refused', reason: `the kernel refuses it (${trial.reason})` };
    await wait(systemClock, PAUSE_MS * tries);
  }
}

const FORGOTTEN: Trial = {
  state: 'refused',
  reason: 'the kernel takes it, and knows nothing of it afterwards',
};

/** A family without tables is left out while there is another that has them. */
function familyCheck(
  machine: Machine,
  { family, accepted, lackOfBase }: TriedFamily,
  tried: readonly TriedFamily[],
): Check {
  const subject = familySubject(family);
  if (!lackOfBase) return present(subject, 'always', `takes ${accepted.map(({ name }) => name).join(', ')}`);
  const otherWorks = tried.some((other) => other.family !== family && other.lackOfBase === undefined);
  const { row, reason } = lackOfBase;
  return lacking(reason)(
    subject,
    otherWorks ? `for ${family} services` : 'always',
    `no ${row.name} of this family: ${reason}`,
    // Modules do not tell whether a family is built in.
    `${pieceRemedy(machine, row, [family])} Its options are CONFIG_NF_TABLES, CONFIG_NF_TABLES_${family.toUpperCase()}, CONFIG_NFT_NAT.`,
  );
}

function lackChecks(machine: Machine, { family, lacks }: TriedFamily): readonly Check[] {
  return lacks.map(({ row, reason }) => {
    const subject = pieceSubject(row.name, family);
    return lacking(reason)(subject, row.needed, reason, pieceRemedy(machine, row, [family]));
  });
}

/** A kernel that was busy, or short of descriptors, to the last has said nothing about the piece. */
function lacking(reason: string): typeof absent {
  return TRANSIENT.test(reason) ? unknown : absent;
}

function familySubject(family: Family): string {
  return `nftables, ${family}`;
}

function pieceSubject(name: string, family: Family): string {
  return `nftables: ${name}, ${family}`;
}

/** The same as kube-proxy asks for. */
const OLDEST_NFT = '1.0.1';

/** The program nft, by which people look at the table. Nothing where it is not installed. */
async function nftProgramChecks(machine: Machine): Promise<readonly Check[]> {
  const printed = await machine.run(['nft', '--version'], { stdin: '' }).catch((error: unknown) => {
    if (isJunctionError(error)) return undefined;
    throw error;
  });
  const version = /v(\d+\.\d+(?:\.\d+)?)/.exec(printed?.stdout ?? '')?.[1];
  if (version === undefined) return [];
  const subject = 'program nft';
  const needed = 'for looking at the table, by people alone';
  if (atLeast(version, OLDEST_NFT)) return [present(subject, needed, `version ${version}`)];
  const found = `version ${version}, which is known to misprint tables like ours, or to end with an error`;
  const remedy = 'A newer package nftables, if you want to look: 1.0.6 prints the table rightly.';
  return [absent(subject, needed, found, remedy)];
}
