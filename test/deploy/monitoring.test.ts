/** Alerts and dashboard: what they name exists, and every way to install them brings the same. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { ALERTS } from '../../scripts/monitoring/alerts.ts';
import { type Catalogue, readCatalogue } from '../../scripts/monitoring/catalogue.ts';
import { dashboardOf } from '../../scripts/monitoring/dashboard.ts';
import { ROWS } from '../../scripts/monitoring/panels.ts';
import { parseQuery, problemsOf, withMatchers } from '../../scripts/monitoring/promql.ts';
import { ruleOf } from '../../scripts/monitoring/rules.ts';
import { everythingOf, MODES } from '../telemetry/metrics/everything.ts';
import {
  at,
  listAt,
  merge,
  objectOf,
  readObjects,
  readText,
  readYaml,
  renderObjects,
  REQUIRED,
  ROOT,
} from './chart.ts';
import { complaints } from './kubernetes.ts';
import { PLAIN_MONITORING } from './plainMonitoring.ts';

if (process.env['JUNCTION_WRITE_MANIFESTS'] === '1')
  for (const { path, text } of PLAIN_MONITORING) writeFileSync(join(ROOT, path), text());

const RULES = 'deploy/monitoring/junction-rules.yaml';
const DASHBOARD = 'deploy/monitoring/junction-dashboard.json';

let catalogue: Catalogue;
beforeAll(async () => {
  catalogue = await readCatalogue();
});

describe('the catalogue of metrics', () => {
  test('has every metric that a daemon shows, with its type and labels', async () => {
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
});

describe('a query', () => {
  test.each([
    ['sum by (code) (rate(rest_client_requests_total{code=~"5.."}[5m]))', []],
    ['time() - process_start_time_seconds > 60 and on (instance) junction_build_info', []],
    ['junction_refused', ['there is no metric junction_refused']],
    ['rate(junction_change_duration_seconds[5m])', ['there is no metric junction_change_duration_seconds']],
    ['rate(junction_syncs_total_bucket[5m])', ['there is no metric junction_syncs_total_bucket']],
    ['junction_endpoints{family="IPv4"}', ['junction_endpoints has no label family']],
    ['sum by (program) (junction_endpoints)', ['no metric of the query has a label program']],
    ['rate(junction_endpoints[5m])', ['rate of junction_endpoints, which is a gauge']],
    ['summe(junction_endpoints)', ['there is no function summe']],
    ['1 + 1', ['no metric is named']],
    [
      'histogram_quantile(0.9, rate(junction_change_duration_seconds_sum[5m]))',
      ['histogram_quantile of junction_change_duration_seconds_sum needs buckets, and by (le)'],
    ],
  ])('%s', (query, problems) => {
    expect(problemsOf(catalogue, query)).toEqual(problems);
  });

  test.each([
    ['junction_endpoints{', 'there is no }'],
    ['junction_endpoints & up', 'cannot be read from here: & up'],
    ['sum by (a up', 'there is no )'],
  ])('that cannot be read: %s', (query, message) => {
    expect(() => parseQuery(query)).toThrow(message);
  });

  test("gets matchers in each selector of ours, and in none of another program's", () => {
    expect(
      withMatchers(
        catalogue,
        'rate(junction_syncs_total{ kind="failed" }[5m]) / up unless ALERTS{alertname="A"}',
        'job="x"',
      ),
    ).toBe(
      'rate(junction_syncs_total{job="x", kind="failed"}[5m]) / up{job="x"} unless ALERTS{alertname="A"}',
    );
  });
});

describe('what names something that does not exist is not generated', () => {
  test('an alert', () => {
    const [alert] = ALERTS;
    if (!alert) throw new Error('no alerts');
    expect(() => ruleOf(catalogue, { ...alert, value: 'junction_nothing' })).toThrow(
      `alert ${alert.name}: there is no metric junction_nothing`,
    );
  });

  test('a panel', () => {
    const panel = {
      title: 'P',
      description: '',
      unit: 's',
      queries: [{ query: 'up{mode="x"}', legend: '' }],
    };
    expect(() => dashboardOf(catalogue, [{ title: 'R', panels: [panel] }])).toThrow(
      'panel P: up has no label mode',
    );
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

describe('the chart', () => {
  const metrics = (values: object) => renderObjects(merge(REQUIRED, { metrics: values }));

  test('brings neither unless asked', () => {
    expect(JSON.stringify(renderObjects())).not.toMatch(/PrometheusRule|grafana/);
  });

  test('brings the rules of the file', () => {
    const rule = objectOf(metrics({ prometheusRule: { enabled: true } }), 'PrometheusRule');
    expect(at(rule, 'spec')).toEqual(readYaml(RULES));
  });

  test('selects another job, and leads to another page, where asked', () => {
    const values = { prometheusRule: { enabled: true, job: 'junction', runbooks: 'https://docs.example/r' } };
    const text = JSON.stringify(objectOf(metrics(values), 'PrometheusRule'));
    expect(text).not.toContain('kube-proxy\\"');
    expect(text).toContain('up{job=\\"junction\\"}');
    expect(text).toContain('"https://docs.example/r#junctiondown"');
  });

  test('brings the dashboard of the file, with the label that the sidecar looks for', () => {
    const maps = metrics({ dashboard: { enabled: true, namespace: 'monitoring' } }).filter(
      ({ metadata }) => at(metadata, 'name') === 'junction-dashboard',
    );
    const map = objectOf(maps, 'ConfigMap');
    expect(at(map, 'metadata', 'labels', 'grafana_dashboard')).toBe('1');
    expect(at(map, 'metadata', 'namespace')).toBe('monitoring');
    expect(JSON.parse(String(at(map, 'data', 'junction-dashboard.json')))).toEqual(
      JSON.parse(readText(DASHBOARD)),
    );
  });
});

describe.each(PLAIN_MONITORING)('$path', ({ path, kind, text }) => {
  test('is what the chart makes, without a trace of Helm', () => {
    expect(readText(path)).toBe(text());
    const objects = readObjects(readText(path));
    expect(objects.map((object) => object['kind'])).toEqual([kind]);
    expect(objects.flatMap(complaints)).toEqual([]);
    expect(JSON.stringify(objects)).not.toMatch(/helm|managed-by/i);
  });

  test('fits into the annotation in which kubectl apply keeps it', () => {
    expect(Buffer.byteLength(JSON.stringify(readObjects(readText(path))))).toBeLessThan(262_144);
  });
});
