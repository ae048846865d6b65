/** Chains of ours that nothing needs any more: of services that are gone, of another layout. */
import { type Piece, piece } from './edit.ts';
import { isKubeletHere } from './entrances.ts';
import { EVERY_LAYOUT } from './layouts/index.ts';
import { CHAINS, IPVS_CHAINS, isServiceChain, PREFIXES } from './names.ts';
import type { Tables } from './parse.ts';
import type { Table } from './rule.ts';

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

/** Every chain of ours in this table. */
export function ownChains(state: Tables, table: Table): Set<string> {
  const fixed = fixedChains(state, table);
  const own = new Set<string>();
  for (const chain of state.get(table)?.keys() ?? []) {
    if (isServiceChain(chain) || fixed.has(chain)) own.add(chain);
  }
  return own;
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

/** Fixed chains of every layout: one that this layout does not need is left over from another. */
function fixedChains(state: Tables, table: Table): ReadonlySet<string> {
  const shared = EVERY_LAYOUT.flatMap(({ sharedChains }) => sharedChains)
    .filter((ref) => ref.table === table)
    .map((ref) => ref.chain);
  const marks = table === 'nat' && !isKubeletHere(state) ? [CHAINS.markDrop] : [];
  return new Set([...shared, ...marks, ...Object.values(IPVS_CHAINS)]);
}

/** An iptables mode was here, ours or kube-proxy's. */
export function hasServiceChains(state: Tables): boolean {
  for (const chain of state.get('nat')?.keys() ?? []) if (isServiceChain(chain)) return true;
  return false;
}
