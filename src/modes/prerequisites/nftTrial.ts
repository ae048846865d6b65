/**
 * A table of our own that is written, read back and taken away. The kernel says whether a rule may stand where it does
 * only when it takes the whole, so the table is really there for a moment; its rules stand behind one that asks for an
 * address that nobody has.
 */
import {
  type ChainSpec,
  type Element,
  type HookSpec,
  type Ruleset,
  setsByName,
  type Statement,
} from '../nftables/rules/rule.ts';
import {
  addChains,
  elementOperations,
  type NftClient,
  type TableOperation,
  type TableTransaction,
} from '../nftables/rules/transaction.ts';
import { type Family, hostCidr } from '../../model/ip.ts';
import type { NftFeature } from './nftFeatures.ts';
import { NOBODY } from './nftFeatures.ts';

export interface TrialTable extends Ruleset {
  readonly elements: readonly Element[];
  /** Nobody else may change it. */
  readonly isOwned?: true;
}

export type TableTrial =
  /** Sets and chains that the kernel took for something else, by name. */
  | { readonly state: 'done'; readonly different: readonly string[] }
  /** In the kernel's word. */
  | { readonly state: 'refused'; readonly reason: string };

const HOOKS: readonly HookSpec[] = [
  { point: 'prerouting', priority: -100 },
  { point: 'input', priority: 100 },
  { point: 'output', priority: -100 },
  { point: 'postrouting', priority: 100 },
];

export const EMPTY_TABLE: TrialTable = { sets: [], chains: [], elements: [] };
export const OWNED_TABLE: TrialTable = { ...EMPTY_TABLE, isOwned: true };

/** With chains at all four hooks, and behind them the rules of these features. */
export function trialTable(features: readonly NftFeature[], family: Family): TrialTable {
  const toNobody: Statement = {
    kind: 'addressIn',
    side: 'destination',
    cidr: hostCidr(NOBODY[family]),
    not: false,
  };
  const chains = HOOKS.flatMap((hook): readonly ChainSpec[] => {
    const own = features.filter(({ at }) => at === hook.point);
    if (own.length === 0) return [{ name: hook.point, hook, rules: [] }];
    const behind = own.map(({ rules }, index) => ({ name: `${hook.point}-${index + 1}`, rules }));
    const jumps = behind.map(({ name }) => ({
      statements: [toNobody, { kind: 'jump', chain: name }] as const,
    }));
    return [...behind, { name: hook.point, hook, rules: jumps }];
  });
  return {
    sets: features.flatMap(({ sets }) => sets),
    chains,
    elements: features.flatMap(({ elements }) => elements),
  };
}

export async function tryTable(door: NftClient, table: TrialTable): Promise<TableTrial> {
  const outcome = await door.commit(writing(table));
  if (outcome.state === 'refused') return { state: 'refused', reason: outcome.name };
  try {
    const state = await door.inspect(table);
    const found = [...(state?.sets ?? []), ...(state?.chains ?? [])];
    return { state: 'done', different: found.flatMap(([name, is]) => (is === 'different' ? [name] : [])) };
  } finally {
    await door.commit([{ kind: 'deleteTable' }]);
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
    ...sets.map((set): TableOperation => ({ kind: 'addSet', set })),
    ...addChains(chains),
    ...elementOperations('addElements', elements, setsByName({ sets })),
  ];
}
