/** How much of the traffic an endpoint gets: as it was counted, where something counts, or as it is expected. */
import type { EndpointRow } from '../../../src/explain/types.ts';
import type { PoolName } from '../../../src/plan/types.ts';

export interface Weights {
  /** What the widths are, in words. */
  readonly text: string;
  readonly isCounted: boolean;
  readonly weightOf: (row: EndpointRow) => number;
  /** Of all traffic, from 0 to 1. */
  readonly totalShare: (rows: readonly EndpointRow[]) => number;
  /** Of a pool's, all. */
  readonly poolTotals: Readonly<Record<PoolName, number>>;
}

export function weightsOf(rows: readonly EndpointRow[]): Weights {
  const used = rows.filter(({ pools }) => pools.length > 0);
  const weightOf = ({ connections = 0 }: EndpointRow): number => connections;
  if (used.some((row) => weightOf(row) > 0))
    return make(
      used,
      { text: 'Widths are shares of all connections that were counted', isCounted: true },
      weightOf,
    );
  const isCounting = rows.some(({ connections }) => connections !== undefined);
  const why = isCounting ? 'no connection has been counted yet' : 'no connections are counted here';
  return make(used, { text: `Widths are probabilities: ${why}`, isCounted: false }, () => 1);
}

function make(
  used: readonly EndpointRow[],
  what: Pick<Weights, 'text' | 'isCounted'>,
  weightOf: (row: EndpointRow) => number,
): Weights {
  const sum = (rows: readonly EndpointRow[]): number =>
    rows.reduce((total, row) => total + (row.pools.length > 0 ? weightOf(row) : 0), 0);
  const inPool = (pool: PoolName): number => sum(used.filter(({ pools }) => pools.includes(pool)));
  const total = sum(used);
  return {
    ...what,
    weightOf,
    totalShare: (rows) => (total === 0 ? 0 : sum(rows) / total),
    poolTotals: { cluster: inPool('cluster'), local: inPool('local') },
  };
}

export function shareOf(weights: Weights, rows: readonly EndpointRow[], pool: PoolName): number {
  const total = weights.poolTotals[pool];
  if (total === 0) return 0;
  const weight = rows.reduce((sum, row) => sum + (row.pools.includes(pool) ? weights.weightOf(row) : 0), 0);
  return weight / total;
}
