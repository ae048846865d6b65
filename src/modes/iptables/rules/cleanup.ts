/**
 * Deletes everything that is ours, from the kernel's state alone. What is ours is known by its name: the
 * fixed chains, and the prefixes of service chains. kubelet's chains, and those of other programs, stay.
 */
import { CHAINS_PER_RESTORE, type Removal, inChunks, piece, type Piece, type Step } from './edit.ts';
import { isLocalnetGuard } from './foreignRules.ts';
import { EVERY_JUMP, EVERY_LAYOUT } from './layouts/index.ts';
import {
  type ChainNames,
  CHAINS,
  FIREWALL_COMMENTS,
  hasServiceChains,
  IPVS_CHAINS,
  isKubeletHere,
  isServiceChain,
  PREFIXES,
  TRIAL_CHAIN,
} from './names.ts';
import { keyOfRule, printRule } from './print.ts';
import { jumpOf, type Table, TABLE_NAMES } from './rule.ts';
import type { ReadChain, Tables, TextRule } from './textRule.ts';

export interface CleanupPlan {
  readonly steps: readonly Step[];
  readonly chains: readonly { readonly table: Table; readonly chain: string }[];
  readonly rules: readonly { readonly table: Table; readonly rule: string }[];
  readonly kept: readonly KeptChain[];
}

export interface KeptChain {
  readonly table: Table;
  readonly chain: string;
  /**
   * called: emptied but not deleted, because rules of other programs jump to it. routeLocalnet: guards 127.0.0.0/8 while
   * route_localnet is on.
   */
  readonly reason: 'called' | 'routeLocalnet';
}

export interface CleanupScope {
  /** route_localnet is on: the guard of 127.0.0.0/8 stays. */
  readonly routesLocalnet: boolean;
  readonly chainsPerRestore?: number | undefined;
  /** Only what this mode wrote; chains that both modes use stay while the other mode's are here. */
  readonly mode?: 'iptables' | 'ipvs' | undefined;
}

const NOTHING: CleanupPlan = { steps: [], chains: [], rules: [], kept: [] };

export function planCleanup(state: Tables, options: CleanupScope): CleanupPlan {
  const names = namesOf(state);
  const parts = TABLE_NAMES.map((table) => cleanTable(state, names, table, options));
  return {
    steps: parts.flatMap((part) => part.steps),
    chains: parts.flatMap((part) => part.chains),
    rules: parts.flatMap((part) => part.rules),
    kept: parts.flatMap((part) => part.kept),
  };
}

export function namesOf(state: Tables): ChainNames {
  return new Map([...state].map(([table, chains]) => [table, new Set(chains.keys())]));
}

function cleanTable(state: Tables, names: ChainNames, table: Table, options: CleanupScope): CleanupPlan {
  const { routesLocalnet, chainsPerRestore: size = CHAINS_PER_RESTORE } = options;
  const chains = state.get(table);
  if (!chains) return NOTHING;
  const firewall = options.mode === 'ipvs' ? NO_FIREWALL : cleanFirewall(state, names, table, routesLocalnet);
  const isInScope = scopeOf(names, options.mode);
  const ours = new Set(
    [...chains.keys()]
      .filter((chain) => isOurs(names, table, chain) && isInScope(table, chain))
      .concat(firewall.chains),
  );
  const { jumps, called } = waysInto(chains, ours, table, options.mode);
  const removes = [...jumps, ...firewall.rules];
  const deleted = [...ours].filter((chain) => !called.has(chain));
  return {
    steps: stepsOf(table, { removes, emptied: [...called], deleted }, size),
    chains: deleted.map((chain) => ({ table, chain })),
    rules: removes.map(({ chain, rule }) => ({ table, rule: `${chain} ${printRule(rule)}` })),
    kept: [
      ...[...called].map((chain): KeptChain => ({ table, chain, reason: 'called' })),
      ...firewall.kept.map((chain): KeptChain => ({ table, chain, reason: 'routeLocalnet' })),
    ],
  };
}

interface Deletions {
  readonly removes: readonly Removal[];
  readonly emptied: readonly string[];
  readonly deleted: readonly string[];
}

/**
 * In one transaction where it is not too large: a proxy that runs beside `cleanup --force` repairs its jumps within
 * milliseconds, and chains that are jumped to cannot be deleted.
 */
function stepsOf(table: Table, { removes, emptied, deleted }: Deletions, size: number): readonly Step[] {
  if (removes.length + emptied.length + deleted.length === 0) return [];
  if (emptied.length + deleted.length <= size) {
    const writes = emptied.map((name) => ({ name, rules: [] }));
    // A chain that is deleted is emptied first, so its rules are not there to be removed one by one.
    const gone = new Set(deleted);
    const elsewhere = removes.filter(({ chain }) => !gone.has(chain));
    return [{ table, pieces: [piece(undefined, { removes: elsewhere, writes, deletes: deleted })] }];
  }
  const empty = (name: string): Piece => piece(undefined, { writes: [{ name, rules: [] }] });
  const deletions = [...inChunks(table, deleted.map(deletion), size)];
  return [
    ...(removes.length > 0 ? [{ table, pieces: [piece(undefined, { removes })] }] : []),
    ...inChunks(table, emptied.map(empty), size),
    // Chains call each other, so all are emptied before the first is deleted.
    ...(deletions.length > 1 ? inChunks(table, deleted.map(empty), size) : []),
    ...deletions,
  ];
}

function deletion(chain: string): Piece {
  return piece(undefined, { deletes: [chain] });
}

/**
 * The two modes share the names of some chains. Such a chain is deleted with its own mode, which the other chains show, and
 * with either where the other mode has none.
 */
function scopeOf(names: ChainNames, mode: CleanupScope['mode']): (table: Table, chain: string) => boolean {
  if (mode === undefined) return () => true;
  const isIpvsHere = [...names.values()].some((chains) => [...chains].some((each) => IPVS_ONLY.has(each)));
  const isOtherHere = mode === 'iptables' ? isIpvsHere : hasServiceChains(names);
  return (table, chain) => {
    if (IPVS_ONLY.has(chain)) return mode === 'ipvs';
    if (SHARED_WITH_IPVS.has(`${table} ${chain}`)) return !isOtherHere;
    return mode === 'iptables';
  };
}

const IPVS_ONLY: ReadonlySet<string> = new Set(Object.values(IPVS_CHAINS));
const SHARED_WITH_IPVS: ReadonlySet<string> = new Set([
  `nat ${CHAINS.services}`,
  `nat ${CHAINS.postrouting}`,
  `nat ${CHAINS.markMasquerade}`,
  `filter ${CHAINS.forward}`,
  `filter ${CHAINS.proxyFirewall}`,
]);

function isOurs(names: ChainNames, table: Table, chain: string): boolean {
  return chain === CHAINS.canary || (table !== 'mangle' && isOfSomeLayout(names, table, chain));
}

/**
 * Rules of other chains that jump into ours: jumps that we write, to be removed, and which of our chains other programs'
 * rules jump to. Those rules are not ours to change, so the chain must stay.
 */
function waysInto(
  chains: ReadonlyMap<string, ReadChain>,
  ours: ReadonlySet<string>,
  table: Table,
  mode: CleanupScope['mode'],
): { readonly jumps: readonly Removal[]; readonly called: ReadonlySet<string> } {
  const inTable = EVERY_JUMP.filter((jump) => jump.table === table);
  const keys = new Set(inTable.map(({ chain, rule }) => `${chain} ${keyOfRule(rule)}`));
  const jumps: Removal[] = [];
  const called = new Set<string>();
  for (const [chain, { rules }] of chains) {
    if (ours.has(chain)) continue;
    for (const rule of rules) {
      const next = rule.jump ?? '';
      // Where kubelet has no jump to KUBE-FIREWALL, ours goes even if the chain stays.
      const isToFirewall = next === CHAINS.firewall && chain === 'FORWARD' && mode !== 'ipvs';
      if (!ours.has(next) && !isToFirewall) continue;
      const ownJump =
        rule.isOpaque && inTable.find((jump) => jump.chain === chain && jumpOf(jump.rule) === next);
      if (ownJump) jumps.push(ownJump);
      else if (keys.has(`${chain} ${rule.key}`)) jumps.push({ chain, rule });
      else if (ours.has(next)) called.add(next);
    }
  }
  return { jumps, called };
}

interface FirewallCleanup {
  readonly rules: readonly Removal[];
  readonly chains: readonly string[];
  readonly kept: readonly string[];
}

const NO_FIREWALL: FirewallCleanup = { rules: [], chains: [], kept: [] };

/**
 * KUBE-FIREWALL is kubelet's where there is one. Otherwise our rules go, and the chain if nothing else is in it; but the
 * guard of 127.0.0.0/8 stays, with the way to it, while route_localnet is on.
 */
function cleanFirewall(
  state: Tables,
  names: ChainNames,
  table: Table,
  routesLocalnet: boolean,
): FirewallCleanup {
  const chain = state.get(table)?.get(CHAINS.firewall);
  if (table !== 'filter' || !chain || isKubeletHere(names)) return NO_FIREWALL;
  const stays = (rule: TextRule): boolean =>
    !isOurFirewallRule(rule) || (routesLocalnet && isLocalnetGuard(rule));
  if (!chain.rules.some(stays)) return { rules: [], chains: [CHAINS.firewall], kept: [] };
  return {
    rules: chain.rules.filter((rule) => !stays(rule)).map((rule) => ({ chain: CHAINS.firewall, rule })),
    chains: [],
    kept: routesLocalnet && chain.rules.some(isLocalnetGuard) ? [CHAINS.firewall] : [],
  };
}

function isOurFirewallRule({ target, options }: TextRule): boolean {
  const isOurs = options.some(
    ({ name, values }) => name === '--comment' && FIREWALL_COMMENTS.includes(values[0] ?? ''),
  );
  return target[1] === 'DROP' && isOurs;
}

/** What every other chain of ours may call. */
const CALLED_BY_ALL: readonly string[] = [CHAINS.markMasquerade, CHAINS.markDrop];

/**
 * Callers before what they call: emptying a caller frees what it called. The fixed chains come first, because
 * KUBE-NODEPORTS of a mode before may still call every service's KUBE-EXT-: deleted the other way round, the kernel
 * refuses each of these, and each is then tried by itself (measured in User-mode Linux: 134 s for 28 chains).
 */
const ORDER: readonly (readonly string[])[] = [
  [...Object.values(CHAINS), ...Object.values(IPVS_CHAINS)].filter((chain) => !CALLED_BY_ALL.includes(chain)),
  [PREFIXES.firewall],
  [PREFIXES.external, PREFIXES.externalLocal],
  [PREFIXES.service, PREFIXES.local],
  [PREFIXES.endpoint],
  CALLED_BY_ALL,
];

/** Chains of every layout in this table. */
export function ownChains(names: ChainNames, table: Table): Set<string> {
  const own = new Set<string>();
  for (const chain of names.get(table) ?? []) if (isOfSomeLayout(names, table, chain)) own.add(chain);
  return own;
}

/** A fixed chain that the layout in use does not need is left over from another one. */
function isOfSomeLayout(names: ChainNames, table: Table, chain: string): boolean {
  if (chain === CHAINS.markDrop) return table === 'nat' && !isKubeletHere(names);
  return isServiceChain(chain) || FIXED[table].has(chain) || chain === TRIAL_CHAIN;
}

const FIXED: Readonly<Record<Table, ReadonlySet<string>>> = {
  filter: fixedChains('filter', [CHAINS.forward]),
  nat: fixedChains('nat', [CHAINS.postrouting, CHAINS.markMasquerade]),
  mangle: new Set(),
};

function fixedChains(table: Table, base: readonly string[]): ReadonlySet<string> {
  const shared = EVERY_LAYOUT.flatMap(({ sharedChains }) => sharedChains).filter(
    (ref) => ref.table === table,
  );
  return new Set([...shared.map(({ chain }) => chain), ...base, ...Object.values(IPVS_CHAINS)]);
}

/** In batches that must follow each other. */
export function garbageBatches(unneeded: ReadonlySet<string>): readonly (readonly Piece[])[] {
  const stale = [...unneeded];
  return ORDER.map((prefixes) =>
    stale.filter((chain) => prefixes.some((prefix) => chain.startsWith(prefix))).map(deletion),
  );
}
