/** Alerts and dashboard: what they name exists, and every way to install them brings the same. */
import { beforeAll, describe, expect, test } from 'vitest';
import { ALERTS } from '../../scripts/monitoring/alerts.ts';
import { type Catalogue, readCatalogue } from '../../scripts/monitoring/catalogue.ts';
import { ROWS } from '../../scripts/monitoring/panels.ts';
import { parseQuery } from '../../scripts/monitoring/promql.ts';
import { everythingOf, MODES } from '../telemetry/metrics/everything.ts';
import {
  at,
  type Data,
  listAt,
  merge,
  objectOf,
  readText,
  readYaml,
  renderObjects,
  REQUIRED,
} from './chart.ts';

const RULES = 'deploy/monitoring/junction-rules.yaml';

let catalogue: Catalogue;
beforeAll(async () => {
  catalogue = await readCatalogue();
});

test('the catalogue of metrics has every metric that a daemon shows, with its type and labels', async () => {
  for (const mode of MODES) {
    for (const { name, type, samples } of await everythingOf(mode)) {
      const metric = catalogue.get(name);
      expect([name, metric?.type, metric?.modes?.has(mode)]).toEqual([name, type, true]);
      const labels = new Set(samples.flatMap((sample) => sample.labels.map(([label]) => label)));
      labels.delete('le');
      expect([name, [...(metric?.labels ?? [])].sort()]).toEqual([name, [...labels].sort()]);
    }
  }
});

test('every metric has a panel or an alert, or is known to need none', () => {
  const queries = [
    ...ROWS.flatMap(({ panels }) => panels.flatMap((panel) => panel.queries.map(({ query }) => query))),
    ...ALERTS.map(({ value }) => value),
  ];
  const shown = new Set(
    queries.flatMap((query) =>
      parseQuery(query).selectors.map(({ series }) => series.replace(/_(?:bucket|count|sum)$/, '')),
    ),
  );
  const unseen = [...catalogue.values()].filter(({ name, modes }) => modes && !shown.has(name));
  expect(unseen.map(({ name }) => name).sort()).toEqual([
    // Constants, and what only kube-proxy's own dashboard asks for.
    'kubernetes_build_info',
    'kubernetes_feature_enabled',
    'nodejs_version_info',
    'process_virtual_memory_bytes',
    'process_virtual_memory_max_bytes',
  ]);
});

describe('alerts', () => {
  const rules = listAt(readYaml(RULES), 'groups', 0, 'rules');

  test('have each a name, a severity, and a section of that name in docs/runbooks.md', () => {
    const page = readText('docs/runbooks.md');
    const headings = [...page.matchAll(/^## (\w+)$/gm)].map(([, title = '']) => title);
    expect(headings).toEqual(ALERTS.map(({ name }) => name));
    for (const rule of rules) {
      const name = String(at(rule, 'alert'));
      expect(at(rule, 'annotations', 'runbook_url')).toBe(`docs/runbooks.md#${name.toLowerCase()}`);
      expect(String(at(rule, 'annotations', 'summary'))).toMatch(/^[A-Z].*\.$/);
      expect(at(rule, 'annotations', 'description')).toMatch(/\.$/);
      expect(['critical', 'warning', 'info']).toContain(at(rule, 'labels', 'severity'));
      expect(String(at(rule, 'for'))).toMatch(/^\d+[mh]$/);
    }
    expect(rules).toHaveLength(ALERTS.length);
  });

  test('select the job everywhere, and none has the name of one of kubernetes-mixin', () => {
    for (const rule of rules) {
      for (const { series, text } of parseQuery(String(at(rule, 'expr'))).selectors)
        if (catalogue.get(series)?.modes !== undefined || series === 'up')
          expect(text).toContain('job="kube-proxy"');
      expect(String(at(rule, 'alert'))).toMatch(/^Junction/);
    }
  });

  test('have only labels of their expression in their texts', () => {
    for (const rule of rules) {
      const { groupings } = parseQuery(String(at(rule, 'expr')));
      const used = [...JSON.stringify(at(rule, 'annotations')).matchAll(/\$labels\.(\w+)/g)];
      for (const [, label = ''] of used)
        expect([at(rule, 'alert'), ['job', 'instance', ...groupings]]).toEqual([
          at(rule, 'alert'),
          expect.arrayContaining([label]),
        ]);
    }
  });
});

test('the chart brings the rules of the file, of another job and with another page where asked', () => {
  const ruleWith = (more: object): Data =>
    objectOf(
      renderObjects(merge(REQUIRED, { metrics: { prometheusRule: { enabled: true, ...more } } })),
      'PrometheusRule',
    );
  expect(at(ruleWith({}), 'spec')).toEqual(readYaml(RULES));
  const text = JSON.stringify(ruleWith({ job: 'junction', runbooks: 'https://docs.example/r' }));
  expect(text).not.toContain('kube-proxy\\"');
  expect(text).toContain('up{job=\\"junction\\"}');
  expect(text).toContain('"https://docs.example/r#junctiondown"');
});
