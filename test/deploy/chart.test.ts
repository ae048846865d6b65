import { describe, expect, test } from 'vitest';
import {
  at,
  configOf,
  type Data,
  defaultValues,
  listAt,
  merge,
  objectOf,
  podOf,
  readText,
  readYaml,
  renderHooks,
  renderObjects,
  renderTexts,
} from './chart.ts';
import { complaints } from './kubernetes.ts';
import { kubeProxyConfiguration } from './kubeProxyConfiguration.ts';
import { violations } from './jsonSchema.ts';
import { TemplateFailure } from './template/functions.ts';
import { VALUE_SETS } from './valueSets.ts';

const { version } = JSON.parse(readText('package.json')) as { readonly version: string };
const schema = JSON.parse(readText('deploy/chart/junction/values.schema.json')) as unknown;

describe.each(Object.entries(VALUE_SETS))('the chart with %s', (_, values) => {
  const objects = renderObjects(values);
  const pod = podOf(objects);
  const container = at(pod, 'containers', 0);

  test('has values that the schema allows', () => {
    expect(violations(schema, merge(defaultValues(), values))).toEqual([]);
  });

  test('makes objects that the API server knows', () => {
    expect([...objects, ...renderHooks(values)].flatMap(complaints)).toEqual([]);
  });

  test('keeps names, selectors and references together', () => {
    const daemonSet = objectOf(objects, 'DaemonSet');
    const selector = at(daemonSet, 'spec', 'selector', 'matchLabels') as Data;
    expect(at(daemonSet, 'spec', 'template', 'metadata', 'labels')).toMatchObject(selector);
    const account = at(objectOf(objects, 'ServiceAccount'), 'metadata', 'name');
    expect(at(pod, 'serviceAccountName')).toBe(account);
    const binding = objectOf(objects, 'ClusterRoleBinding');
    expect(at(binding, 'subjects')).toEqual([
      { kind: 'ServiceAccount', name: account, namespace: at(daemonSet, 'metadata', 'namespace') },
    ]);
    expect(at(binding, 'roleRef', 'name')).toBe(at(objectOf(objects, 'ClusterRole'), 'metadata', 'name'));
  });

  test('mounts every volume that it has, and no other', () => {
    const all = [...('initContainers' in (pod as Data) ? listAt(pod, 'initContainers') : []), container];
    const mounted = all.flatMap((each) => listAt(each, 'volumeMounts').map((mount) => at(mount, 'name')));
    expect([...new Set(mounted)].sort()).toEqual(
      listAt(pod, 'volumes')
        .map((volume) => at(volume, 'name'))
        .sort(),
    );
  });

  test('configures nothing that kube-proxy does not know', () => {
    const { existingConfigMap } = values;
    if (existingConfigMap !== undefined) {
      expect(objects.map(({ kind }) => kind)).not.toContain('ConfigMap');
      expect(JSON.stringify(at(pod, 'volumes'))).toContain(
        `"configMap":{"name":${JSON.stringify(existingConfigMap)}}`,
      );
    } else {
      expect(kubeProxyConfiguration(configOf(objects), 'config')).toEqual([]);
    }
  });

  test('asks where Junction listens', () => {
    const ports = new Map(
      listAt(container, 'ports').map((port) => [at(port, 'name'), at(port, 'containerPort')]),
    );
    const { healthz, metrics } = merge(defaultValues(), values);
    expect(ports).toEqual(
      new Map([
        ['healthz', at(healthz, 'port')],
        ['metrics', at(metrics, 'port')],
      ]),
    );
    for (const probe of ['startupProbe', 'livenessProbe', 'readinessProbe']) {
      expect(at(container, probe, 'httpGet', 'port')).toBe('healthz');
    }
    if ('existingConfigMap' in values) return;
    const config = configOf(objects);
    expect(portOf(config['healthzBindAddress'])).toBe(ports.get('healthz'));
    expect(portOf(config['metricsBindAddress'])).toBe(ports.get('metrics'));
  });

  test('runs a release, never a moving tag', () => {
    const images = [...JSON.stringify(pod).matchAll(/"image":"([^"]+)"/g)].map(([, image]) => image ?? '');
    expect(new Set(images).size).toBe(1);
    expect(images[0]).toMatch(/(:\d+\.\d+\.\d+|@sha256:[0-9a-f]{64})$/);
    expect(images[0]).not.toContain('latest');
  });
});

function portOf(address: unknown): number {
  return Number(/:(\d+)$/.exec(String(address))?.[1]);
}

describe('the chart', () => {
  test('is of the same version as the program', () => {
    const chart = readYaml('deploy/chart/junction/Chart.yaml');
    expect([at(chart, 'version'), at(chart, 'appVersion')]).toEqual([version, version]);
    expect(at(podOf(renderObjects()), 'containers', 0, 'image')).toBe(`localhost/junction:${version}`);
  });

  test('refuses to guess where the API server is', () => {
    expect(() => renderObjects({})).toThrow(TemplateFailure);
    expect(() => renderObjects({})).toThrow('set apiServer.host');
  });

  test('refuses a PodMonitor for metrics that only the node can read', () => {
    const values = merge(VALUE_SETS['the defaults'] ?? {}, { metrics: { podMonitor: { enabled: true } } });
    expect(() => renderObjects(values)).toThrow('metrics.podMonitor needs');
  });

  test('replaces pods when their configuration changes', () => {
    const checksum = (values: Data): unknown =>
      at(
        objectOf(renderObjects(merge(VALUE_SETS['the defaults'] ?? {}, values)), 'DaemonSet'),
        'spec',
        'template',
        'metadata',
        'annotations',
        'checksum/config',
      );
    expect(checksum({})).toMatch(/^[0-9a-f]{64}$/);
    expect(checksum({})).not.toBe(checksum({ config: { clusterCIDR: '10.0.0.0/8' } }));
    expect(checksum({})).toBe(checksum({ nodeSelector: { a: 'b' } }));
  });

  test('goes to every Linux node, before most, ten in a hundred at a time', () => {
    const daemonSet = objectOf(renderObjects(), 'DaemonSet');
    const pod = podOf(renderObjects());
    expect(at(daemonSet, 'spec', 'updateStrategy')).toEqual({
      type: 'RollingUpdate',
      rollingUpdate: { maxUnavailable: '10%' },
    });
    expect(at(pod, 'tolerations')).toEqual([{ operator: 'Exists' }]);
    expect(at(pod, 'priorityClassName')).toBe('system-node-critical');
    expect(JSON.stringify(at(pod, 'affinity'))).toContain(
      '{"key":"kubernetes.io/os","operator":"In","values":["linux"]}',
    );
  });

  test('does not depend on what it brings: the API server by its own address, names by the node’s resolver', () => {
    const pod = podOf(renderObjects());
    expect(at(pod, 'dnsPolicy')).toBe('Default');
    expect(at(pod, 'containers', 0, 'env')).toEqual([
      { name: 'NODE_NAME', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } },
      { name: 'KUBERNETES_SERVICE_HOST', value: 'api-server.example' },
      { name: 'KUBERNETES_SERVICE_PORT', value: '6443' },
    ]);
  });

  test('restarts by /livez; /healthz, which also speaks of the node, only says whether it is ready', () => {
    const container = at(podOf(renderObjects()), 'containers', 0);
    expect(at(container, 'startupProbe', 'httpGet', 'path')).toBe('/livez');
    expect(at(container, 'livenessProbe', 'httpGet', 'path')).toBe('/livez');
    expect(at(container, 'readinessProbe', 'httpGet', 'path')).toBe('/healthz');
    const local = renderObjects(VALUE_SETS['everything else']);
    expect(at(podOf(local), 'containers', 0, 'livenessProbe', 'httpGet', 'host')).toBe('127.0.0.1');
  });

  test('prints large numbers whole', () => {
    expect(renderTexts(VALUE_SETS['everything else']).get('configmap.yaml')).toContain('min: 2097152\n');
  });

  test('has notes that name what it made', () => {
    const notes = renderTexts().get('NOTES.txt');
    expect(notes).toContain('kubectl -n kube-system rollout status daemonset/junction');
    expect(notes).toContain('config.clusterCIDR is empty');
  });
});

const REQUIRED_NOTHING = {
  requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{}] },
};

describe('the schema of the values', () => {
  test.each([
    ['a value that there is not', { replicas: 3 }, 'values.replicas: no such value'],
    ['a moving tag', { image: { tag: 'latest' } }, 'values.image.tag: "latest" is not allowed'],
    ['a port of 0', { healthz: { port: 0 } }, 'values.healthz.port: below 1'],
    [
      'an address of its own in config',
      { config: { healthzBindAddress: '' } },
      'healthzBindAddress: no such value',
    ],
    [
      'a misspelt field of config',
      { config: { clusterCidr: '' } },
      'values.config.clusterCidr: no such value',
    ],
    ['a mode that there is not', { config: { mode: 'userspace' } }, 'values.config.mode'],
    ['a setting that is in the configuration now', { sysctls: { conntrackMin: 1 } }, 'conntrackMin'],
    ['a URL for a host', { apiServer: { host: 'https://a:6443' } }, 'values.apiServer.host'],
    ['a capability with its prefix', { capabilities: ['CAP_NET_ADMIN'] }, 'values.capabilities[0]'],
    ['two pods on a node', { updateStrategy: { rollingUpdate: { maxSurge: 1 } } }, 'maxSurge: no such value'],
    ['no pod to be replaced', { updateStrategy: { rollingUpdate: { maxUnavailable: 0 } } }, 'below 1'],
    [
      'a volume with the name of our own',
      { extraVolumes: [{ name: 'tmp', emptyDir: {} }] },
      '"tmp" is not allowed',
    ],
    ['a volume of nothing', { extraVolumes: [{ name: 'mine' }] }, 'values.extraVolumes[0]: too few fields'],
    ['a mount that is nowhere', { extraVolumeMounts: [{ name: 'mine' }] }, 'mountPath is missing'],
    [
      'a variable of our own',
      { extraEnv: [{ name: 'NODE_NAME', value: 'x' }] },
      '"NODE_NAME" is not allowed',
    ],
    [
      'a number for a variable',
      { extraEnv: [{ name: 'A', value: 1 }] },
      'values.extraEnv[0].value: 1 is no string',
    ],
    ['a map of variables', { extraEnv: { A: 'b' } }, 'values.extraEnv: {"A":"b"} is no array'],
    ['a term that matches nothing', { affinity: { nodeAffinity: REQUIRED_NOTHING } }, 'too few fields'],
    ['a misspelt affinity', { affinity: { nodeSelectorTerms: [] } }, 'nodeSelectorTerms: no such value'],
    ['a kubeconfig in a relative path', { existingKubeconfig: { hostPath: 'kubeconfig' } }, 'hostPath'],
    ['a kubeconfig as text', { existingKubeconfig: 'kube-proxy' }, 'is no object'],
    ['a switch in place of a word', { cleanup: { onUninstall: true } }, 'values.cleanup.onUninstall'],
    ['an address without a port', { cleanup: { proxyHealthAddress: '127.0.0.1' } }, 'proxyHealthAddress'],
    ['a period that is no duration', { config: { iptables: { syncPeriod: '30' } } }, 'syncPeriod'],
  ])('refuses %s', (_, values, message) => {
    expect(violations(schema, merge(defaultValues(), values)).join('\n')).toContain(message);
  });

  test('knows every value that has a default', () => {
    expect(violations(schema, defaultValues())).toEqual([]);
  });
});
