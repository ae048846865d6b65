/** What a panel of the dashboard is, and queries that many of them have. */
export interface PanelQuery {
  readonly query: string;
  /** `{{label}}`, or plain words. */
  readonly legend: string;
}

export interface Panel {
  readonly title: string;
  /** What it shows, and what to make of it. */
  readonly description: string;
  readonly kind?: 'timeseries' | 'stat' | 'table';
  /** As Grafana calls it. */
  readonly unit: string;
  /** Of 24 columns; 8 unless said. */
  readonly width?: number;
  readonly queries: readonly PanelQuery[];
}

export interface Row {
  readonly title: string;
  readonly panels: readonly Panel[];
}

export const RATE = '[$__rate_interval]';

export function rate(metric: string, by: string): string {
  return `sum by (${by}) (rate(${metric}${RATE}))`;
}

/** Of a histogram: one in two, and one in a hundred. */
export function quantiles(metric: string, by: string, legend: string): readonly PanelQuery[] {
  return [
    [0.5, 'p50'],
    [0.99, 'p99'],
  ].map(([quantile, name]) => ({
    query: `histogram_quantile(${quantile}, sum by (${by}, le) (rate(${metric}${RATE})))`,
    legend: `${name} ${legend}`,
  }));
}

/** Where a cluster has many nodes, those that matter. */
export function highest(query: string): string {
  return `topk(10, ${query})`;
}
