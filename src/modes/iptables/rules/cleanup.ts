/**
 * Deletes everything that is ours, from the kernel's state alone. What is ours is known by its name: the
 * fixed chains, and the prefixes of service chains. kubelet's chains, and those of other programs, stay.
 */
import { type Piece, piece, type Removal } from './edit.ts';
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
import { keyOfRule } from './print.ts';
import { jumpOf, type Table } from './rule.ts';
import type { TableChains, Tables, TextRule } from './textRule.ts';

/** What is to be deleted of a table. */
export interface TableCleanup {
  readonly table: Table;
  /** Rules of chains that stay, and of those that go. */
  readonly removes: readonly Removal[];
  readonly deleted: readonly string[];
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
  /** Only what this mode wrote; chains that both modes use stay while the other mode's are here. */
  readonly mode?: 'iptables' | 'ipvs' | undefined;
}

export function planCleanup(state: Tables, scope: CleanupScope): readonly TableCleanup[] {
  const names: ChainNames = namesOf(state);
  return [...state].map(([table, chains]) => cleanTable(table, chains, names, scope));
}

export function namesOf(state: Tables): Map<Table, ReadonlySet<string>> {
  return new Map([...state].map(([table, chains]) => [table, new Set(chains.keys())]));
}

function cleanTable(table: Table, chains: TableChains, names: ChainNames, scope: CleanupScope): TableCleanup {
  const { mode, routesLocalnet } = scope;
  const isInScope = scopeOf(names, mode);
  const own = [...chains.keys()].filter((chain) => isOurs(names, table, chain) && isInScope(table, chain));
  const firewall =
    table === 'filter' && !isKubeletHere(names) && mode !== 'ipvs' ? chains.get(CHAINS.firewall) : undefined;
  const stays = (rule: TextRule): boolean =>
    !isOurFirewallRule(rule) || (routesLocalnet && isLocalnetGuard(rule));
  // KUBE-FIREWALL is kubelet's where there is one. The guard of 127.0.0.0/8 stays, with the way to it, while route_localnet is on.
  const isFirewallKept = firewall?.rules.some(stays);
  const ours = new Set(firewall && !isFirewallKept ? [...own, CHAINS.firewall] : own);
  const { jumps, called } = waysInto(chains, ours, table, mode);
  const ofFirewall = isFirewallKept ? (firewall?.rules.filter((rule) => !stays(rule)) ?? []) : [];
  const isGuarded = routesLocalnet && firewall?.rules.some(isLocalnetGuard);
  return {
    table,
    removes: [...jumps, ...ofFirewall.map((rule) => ({ chain: CHAINS.firewall, rule }))],
    deleted: [...ours].filter((chain) => !called.has(chain)),
    kept: [
      ...[...called].map((chain): KeptChain => ({ table, chain, reason: 'called' })),
      ...(isGuarded ? [{ table, chain: CHAINS.firewall, reason: 'routeLocalnet' } as const] : []),
    ],
  };
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
  chains: TableChains,
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
    stale
      .filter((chain) => prefixes.some((prefix) => chain.startsWith(prefix)))
      .map((chain) => piece(undefined, { deletes: [chain] })),
  );
}
