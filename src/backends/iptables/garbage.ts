/** Chains of ours that nothing needs any more: of services that are gone, of another layout. */
import { type Piece, piece } from './edit.ts';
import { isKubeletHere } from './entrances.ts';
import { EVERY_LAYOUT } from './layouts/index.ts';
import { CHAINS, IPVS_CHAINS, isServiceChain, PREFIXES } from './names.ts';
import type { Tables } from './parse.ts';
import type { Table } from './rule.ts';

/** Callers before what they call: emptying a caller frees what it called. */
const ORDER: readonly (readonly string[])[] = [
  [PREFIXES.firewall],
  [PREFIXES.external, PREFIXES.externalLocal],
  [PREFIXES.service, PREFIXES.local],
  [PREFIXES.endpoint],
  [...Object.values(CHAINS), ...Object.values(IPVS_CHAINS)], // chains of services jump to KUBE-MARK-DROP
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
