/**
 * The table that the mode writes for the sample services, under another name: written, read back and deleted. The kernel
 * checks whether a rule may stand at a hook only when it takes the whole, so the table is really there for a moment; its
 * rules stand behind one that asks for an address that no packet has.
 */
import { type Family, hostCidr } from '../../model/ip.ts';
import { NOBODY, samplePlan } from '../prerequisites/sample.ts';
import type { NftPieceName } from './prerequisites.ts';
import { wholeTable } from './rules/referenceCounts.ts';
import { addChains, addSets, byName, editOperations, nftRule, toChain } from './rules/table.ts';
import type {
  ChainSpec,
  FilledTable,
  NftClient,
  Statement,
  TableSet,
  TableTransaction,
} from './rules/table.ts';

export interface TrialTable extends FilledTable {
  /** Nobody else may change it. */
  readonly isOwned?: true;
}

export type NftTrial =
  /** Sets and chains that the kernel took for something else, by name. */
  | { readonly state: 'done'; readonly different: readonly string[] }
  /** In the kernel's word. */
  | { readonly state: 'refused'; readonly reason: string };

export const EMPTY_TABLE: TrialTable = { sets: [], chains: [], elements: [] };
export const OWNED_TABLE: TrialTable = { ...EMPTY_TABLE, isOwned: true };

const MARK = 0x4000;
/** The kernel makes room for them all when the map is made. */
const MOST_CLIENTS = 64;

/** With these pieces alone: chains and jumps stay, so that each statement is reached from the hooks that it has in full. */
export function trialTable(family: Family, pieces?: readonly NftPieceName[]): TrialTable {
  const whole = wholeTable(samplePlan(family, false), {
    masqueradeMark: MARK,
    counters: pieces === undefined || pieces.includes('counters of elements'),
    nodePortIps: [NOBODY[family]],
    serviceCidrs: [hostCidr(NOBODY[family])],
  });
  const setsByName = byName(whole.sets);
  const isWanted = (statement: Statement): boolean =>
    pieces === undefined ||
    statement.kind === 'jump' ||
    pieces.some((name) => name === pieceOf(statement, setsByName.get(setOf(statement) ?? '')));
  const chains = whole.chains.map((chain) => ({
    ...chain,
    rules: chain.rules
      .map(({ statements }) => nftRule(...statements.filter(isWanted)))
      .filter(({ statements }) => statements.length > 0),
  }));
  const statements = chains.flatMap(({ rules }) => rules.flatMap((each) => each.statements));
  const used = new Set(statements.map(setOf));
  const isUsed = (name: string): boolean => pieces === undefined || used.has(name);
  const sets = whole.sets.filter(({ name }) => isUsed(name));
  return {
    sets: sets.map((set) => (set.dynamicSize ? { ...set, dynamicSize: MOST_CLIENTS } : set)),
    chains: chains.flatMap((chain) => guarded(chain, family)),
    elements: whole.elements.filter(({ set }) => isUsed(set)),
  };
}

/** A row of `NFT_PIECES`, by name. What every kernel with tables has is of none. */
function pieceOf(statement: Statement, set: TableSet | undefined): NftPieceName | undefined {
  const isLong = (set?.key.length ?? 0) > 1;
  switch (statement.kind) {
    case 'inSet':
      if (set?.counts) return undefined;
      if (set?.ranges) return isLong ? 'sets of several fields with ranges' : 'sets of ranges';
      return isLong ? 'sets of several fields' : undefined;
    case 'dnatByMap':
      if (set?.dynamicSize) return 'affinity lookup';
      if (set?.key.some((part) => typeof part === 'object')) return 'drawing an endpoint at random';
      return set?.counts ? 'counters of elements' : 'rewriting the destination by a map';
    case 'verdictByMap':
      return statement.key.includes('originalPort') ? 'affinity entries' : 'maps to chains';
    case 'learn':
      return 'affinity entries';
    case 'addressType':
      return 'asking whether an address is local';
    case 'reject':
      return 'refusing a connection before it is routed';
    case 'hasMark':
    case 'changeMark':
      return 'marks of packets';
    case 'isRewritten':
      return 'asking connection tracking';
    case 'masquerade':
      return 'masquerading with random ports';
    default:
      return undefined;
  }
}

function setOf(statement: Statement): string | undefined {
  if ('set' in statement) return statement.set;
  return 'map' in statement ? statement.map : undefined;
}

/** A chain at a hook passes on nothing but what is sent to nobody. */
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

export async function writeAndDelete(client: NftClient, table: TrialTable): Promise<NftTrial> {
  const outcome = await client.commit(writing(table));
  if (outcome.state === 'refused') return { state: 'refused', reason: outcome.name };
  try {
    const state = await client.inspect(table);
    const found = [...(state?.sets ?? []), ...(state?.chains ?? [])];
    return { state: 'done', different: found.flatMap(([name, is]) => (is === 'different' ? [name] : [])) };
  } finally {
    await client.commit([{ kind: 'deleteTable' }]);
  }
}

/** In place of what a run that was killed has left. */
function writing({ sets, chains, elements, isOwned }: TrialTable): TableTransaction {
  // Nothing is left of one that was owned.
  if (isOwned) return [{ kind: 'addTable', isOwned }];
  return [
    { kind: 'addTable' },
    { kind: 'deleteTable' },
    { kind: 'addTable' },
    ...addSets(sets),
    ...addChains(chains),
    ...editOperations([{ removes: [], adds: elements }], byName(sets)),
  ];
}
