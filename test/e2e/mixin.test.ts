/** kubernetes-mixin's alerts and dashboard for kube-proxy find their series in a scrape of Junction. */
import { describe, expect, test } from 'vitest';
import { at, merge, objectOf, REQUIRED, readObjects, readText, renderObjects } from '../deploy/chart.ts';
import { useLab } from '../lab/requireLab.ts';
import { QUERIES } from '../telemetry/metrics/mixin.ts';
import { type ParsedFamily, parseExposition } from '../telemetry/metrics/parse.ts';
import { discovered, relabel, type Series, series } from '../telemetry/metrics/prometheus.ts';
import type { RawObject } from '../support/apiServer/index.ts';
import { ApiNode } from './support/api/apiNode.ts';
import { eventually } from './support/eventually.ts';
import { fetchFrom } from './support/fetch.ts';
import { expectAnswers } from './support/traffic.ts';
import { useInLab } from './support/use.ts';
import { nodeObject, objects } from './cluster.ts';

const API = { name: 'api', ip: '10.96.1.1', ip6: 'fd00:96::1' };
const TARGET = {
  monitor: 'junction',
  namespace: 'kube-system',
  pod: 'junction-x7k2p',
  node: 'node1',
  address: '192.168.100.2:10249',
};
const MONITORS = [
  [
    'of the chart',
    renderObjects(merge(REQUIRED, { metrics: { bindAddress: '0.0.0.0', podMonitor: { enabled: true } } })),
  ],
  ['without Helm', readObjects(readText('deploy/manifests/junction-podmonitor.yaml'))],
] as const;

/** The EndpointSlice controller says when the change that it writes about happened. */
function changedNow(object: RawObject): RawObject {
  if (object.kind !== 'EndpointSlice') return object;
  const annotations = { 'endpoints.kubernetes.io/last-change-trigger-time': new Date().toISOString() };
  return { ...object, metadata: { ...object.metadata, annotations } };
}

describe('kubernetes-mixin', () => {
  const lab = useLab();
  const node = useInLab(() =>
    ApiNode.create(lab().host('node1'), [nodeObject(), ...objects([{ ...API, pods: 'ac' }])]),
  );

  async function scrape(): Promise<readonly ParsedFamily[]> {
    const { body } = await fetchFrom(lab().host('node1'), 'http://127.0.0.1:10249/metrics');
    return parseExposition(body);
  }

  test('a daemon of an API server starts, changes something and is scraped', async () => {
    await node().serve('token');
    await node().put(...objects([{ ...API, pods: 'ad' }]).map(changedNow));
    await expectAnswers(lab().host('client'), API.ip, 'pod-a pod-d');
    await eventually('the event and the change are measured', async () => {
      const names = (await scrape()).flatMap(({ samples }) =>
        samples.map(({ name, labels }) => `${name} ${labels.join()}`),
      );
      return (
        names.some((name) => name.startsWith('kubeproxy_network_programming_duration_seconds_count')) &&
        names.some((name) => /^rest_client_request_duration_seconds_count .*verb,POST/.test(name))
      );
    });
  });

  describe.each(MONITORS)('with the PodMonitor %s', (_, monitors) => {
    const target = relabel(discovered(TARGET), objectOf(monitors, 'PodMonitor'));

    test('the target is kube-proxy on this node', () => {
      expect(at(objectOf(monitors, 'PodMonitor'), 'spec', 'podMetricsEndpoints', 0, 'honorLabels')).toBe(
        true,
      );
      expect(Object.fromEntries(target)).toEqual({
        namespace: 'kube-system',
        pod: 'junction-x7k2p',
        job: 'kube-proxy',
        instance: 'node1',
        node: 'node1',
        container: 'junction',
        endpoint: 'metrics',
      });
    });

    test.each(QUERIES)('$of finds $metric', async ({ metric, select, by }) => {
      const found = series(await scrape(), target).filter(
        ({ name, labels }: Series) =>
          name === metric &&
          Object.entries(select).every(([label, pattern]) => pattern.test(labels.get(label) ?? '')),
      );
      expect(found).not.toEqual([]);
      for (const { labels } of found) expect([...labels.keys()]).toEqual(expect.arrayContaining([...by]));
    });
  });
});
