/** The part of Prometheus and its operator that comes between a scrape and a query. */
import { at, isData } from '../../deploy/chart.ts';
import type { ParsedFamily } from './parse.ts';

export type Labels = ReadonlyMap<string, string>;

export interface Series {
  readonly name: string;
  readonly labels: Labels;
}

/** What the operator gives a pod's target before a PodMonitor's own relabelings. */
export function discovered(target: {
  readonly monitor: string;
  readonly namespace: string;
  readonly pod: string;
  readonly node: string;
  readonly address: string;
}): Labels {
  return new Map([
    ['__meta_kubernetes_pod_node_name', target.node],
    ['__meta_kubernetes_pod_name', target.pod],
    ['namespace', target.namespace],
    ['pod', target.pod],
    ['job', `${target.namespace}/${target.monitor}`],
    ['instance', target.address],
    ['container', 'junction'],
    ['endpoint', 'metrics'],
  ]);
}

/** Only what the PodMonitor of the chart uses: the action `replace`. */
export function relabel(labels: Labels, podMonitor: unknown): Labels {
  const relabelings = at(podMonitor, 'spec', 'podMetricsEndpoints', 0, 'relabelings');
  if (!Array.isArray(relabelings)) throw new Error('a PodMonitor without relabelings');
  const result = new Map(labels);
  for (const each of relabelings as readonly unknown[]) {
    if (!isData(each)) throw new Error('a relabeling that is no map');
    const { action = 'replace', sourceLabels = [], targetLabel, replacement = '$1', ...others } = each;
    if (action !== 'replace' || Object.keys(others).length > 0) throw new Error('an unknown relabeling');
    const source = (sourceLabels as readonly string[]).map((label) => result.get(label) ?? '').join(';');
    result.set(String(targetLabel), String(replacement).replace('$1', source));
  }
  return new Map([...result].filter(([label]) => !label.startsWith('__')));
}

/** With `honorLabels` the labels of the scrape count before the target's; `up` is Prometheus' own. */
export function series(families: readonly ParsedFamily[], target: Labels): readonly Series[] {
  const scraped = families.flatMap(({ samples }) => samples);
  return [
    { name: 'up', labels: target },
    ...scraped.map(({ name, labels }) => ({ name, labels: new Map([...target, ...labels]) })),
  ];
}
