/** What operators bring themselves: affinity, a kubeconfig, volumes, variables; and what helm uninstall makes. */
import { describe, expect, test } from 'vitest';
import {
  at,
  configOf,
  type Data,
  defaultValues,
  isData,
  listAt,
  merge,
  objectOf,
  podOf,
  REQUIRED,
  readText,
  renderHooks,
  renderObjects,
  renderTexts,
} from './chart.ts';
import { violations } from './jsonSchema.ts';
import { TemplateFailure } from './template/functions.ts';
import { VALUE_SETS } from './valueSets.ts';

const schema = JSON.parse(readText('deploy/chart/junction/values.schema.json')) as unknown;
const LINUX = { key: 'kubernetes.io/os', operator: 'In', values: ['linux'] };
const REQUIRED_TERMS = 'requiredDuringSchedulingIgnoredDuringExecution';
const OWN = 'own affinity, environment and volumes';

function pod(values: Data): unknown {
  return podOf(renderObjects(values));
}

function valueSet(name: string): Data {
  const values = VALUE_SETS[name];
  if (!values) throw new Error(`there is no set ${name}`);
  return values;
}

describe('affinity', () => {
  test('requires Linux in each alternative, and keeps the rest', () => {
    const values = valueSet(OWN);
    const wanted = at(values, 'affinity');
    const affinity = at(pod(values), 'affinity');
    const terms = [...listAt(affinity, 'nodeAffinity', REQUIRED_TERMS, 'nodeSelectorTerms')];
    expect(terms).toEqual([
      { matchExpressions: [LINUX, { key: 'pool', operator: 'In', values: ['a', 'b'] }] },
      {
        matchExpressions: [LINUX],
        matchFields: [{ key: 'metadata.name', operator: 'In', values: ['node1'] }],
      },
    ]);
    expect(at(affinity, 'podAntiAffinity')).toEqual(at(wanted, 'podAntiAffinity'));
    const preferred = 'preferredDuringSchedulingIgnoredDuringExecution';
    expect(at(affinity, 'nodeAffinity', preferred)).toEqual(at(wanted, 'nodeAffinity', preferred));
  });

  test.each([
    [{}],
    [{ affinity: null }],
    [{ affinity: { nodeAffinity: null } }],
    [{ affinity: { nodeAffinity: { [REQUIRED_TERMS]: null } } }],
  ])('is Linux alone with %j', (values) => {
    expect(at(pod(merge(REQUIRED, values)), 'affinity')).toEqual({
      nodeAffinity: { [REQUIRED_TERMS]: { nodeSelectorTerms: [{ matchExpressions: [LINUX] }] } },
    });
  });
});

test.each([
  'affinity',
  'capabilities',
  'existingConfigMapKey',
  'existingKubeconfig',
  'extraArgs',
  'extraEnv',
  'extraVolumeMounts',
  'extraVolumes',
  'imagePullSecrets',
  'junction',
  'nameOverride',
  'nodeSelector',
  'podAnnotations',
  'podLabels',
  'resources',
  'seLinuxOptions',
  'tolerations',
])('%s may be unset with null', (name) => {
  const values = merge(REQUIRED, { [name]: null });
  expect(renderTexts(values).get('daemonset.yaml')).not.toMatch(/<no value>|nil/);
  // Helm takes such values out before it checks the rest.
  const { [name]: _, ...rest } = merge(defaultValues(), REQUIRED);
  expect(violations(schema, rest)).toEqual([]);
});

test('an upgrade with --reuse-values from 0.1.0, which had fewer values, renders', () => {
  const before = { capabilities: ['NET_ADMIN', 'NET_RAW'], config: { mode: 'nftables' } };
  const names =
    'affinity cleanup existingConfigMapKey existingKubeconfig extraEnv extraVolumeMounts extraVolumes modules';
  const values = merge(merge(REQUIRED, before), {
    ...Object.fromEntries(names.split(' ').map((name) => [name, null])),
    metrics: { dashboard: null, prometheusRule: null },
  });
  expect(JSON.stringify(pod(values))).toContain('"path":"/lib/modules"');
  expect(renderHooks(values)).toEqual(renderHooks(merge(REQUIRED, { config: { mode: 'nftables' } })));
});

describe('volumes and variables', () => {
  test.each(['initContainers', 'containers'])('are there in %s', (kind) => {
    const container = at(pod(valueSet(OWN)), kind, 0);
    expect(listAt(container, 'env').slice(-2)).toEqual(at(valueSet(OWN), 'extraEnv'));
    expect(listAt(container, 'volumeMounts')).toContainEqual({
      name: 'certificates',
      mountPath: '/etc/certificates',
      readOnly: true,
    });
  });

  test('of modules can be left out', () => {
    expect(JSON.stringify(pod(merge(REQUIRED, { modules: { mount: false } })))).not.toContain('/lib/modules');
    // No type: with Directory, kubelet would not start the pod where there is none.
    expect(listAt(pod(REQUIRED), 'volumes')).toContainEqual({
      name: 'modules',
      hostPath: { path: '/lib/modules' },
    });
  });
});

describe('a kubeconfig', () => {
  const config = (values: Data): unknown => at(configOf(renderObjects(values)), 'clientConnection');
  const argsOf = (values: Data): readonly unknown[] => listAt(pod(values), 'containers', 0, 'args');

  test('of a Secret is beside the configuration, which names it', () => {
    const values = valueSet('a kubeconfig in a Secret');
    expect(config(values)).toEqual({ kubeconfig: '/var/lib/kube-proxy/value.conf', qps: 20 });
    expect(at(listAt(pod(values), 'volumes')[0], 'projected', 'sources')).toEqual([
      { configMap: { name: 'junction' } },
      { secret: { name: 'proxy', items: [{ key: 'value.conf', path: 'value.conf' }] } },
    ]);
    expect(JSON.stringify(pod(values))).not.toContain('KUBERNETES_SERVICE_HOST');
  });

  test('of EKS is where its configuration looks for it', () => {
    const values = valueSet('EKS: a ConfigMap for the configuration, another for the kubeconfig');
    expect(argsOf(values)).toContain('--config=/var/lib/kube-proxy/config');
    expect(at(listAt(pod(values), 'volumes')[0], 'projected', 'sources')).toEqual([
      { configMap: { name: 'kube-proxy-config' } },
      { configMap: { name: 'kube-proxy', items: [{ key: 'kubeconfig', path: 'kubeconfig' }] } },
    ]);
  });

  test('of the node is mounted where it is, read-only, with the files that it names', () => {
    const values = valueSet("k3s: the node's own kubeconfig");
    const [kubeconfig, certificate] = ['kubeproxy.kubeconfig', 'client-kube-proxy.crt'].map(
      (name) => `/var/lib/rancher/k3s/agent/${name}`,
    );
    expect(config(values)).toEqual({ kubeconfig });
    const [first, second] = listAt(pod(values), 'volumes').slice(-2);
    expect(first).toEqual({ name: 'node-file-0', hostPath: { path: kubeconfig, type: 'File' } });
    expect(second).toEqual({ name: 'node-file-1', hostPath: { path: certificate, type: 'File' } });
    expect(listAt(pod(values), 'containers', 0, 'volumeMounts')).toContainEqual({
      name: 'node-file-1',
      mountPath: certificate,
      readOnly: true,
    });
  });

  test.each<[string, Data, string]>([
    ['of two places', { existingKubeconfig: { secret: 'a', configMap: 'b' } }, 'set one of secret'],
    [
      'of the node and a Secret',
      { existingKubeconfig: { secret: 'a', hostPath: '/b' } },
      'set one of secret',
    ],
    ['whose files alone are named', { existingKubeconfig: { hostFiles: ['/a'] } }, 'hostFiles'],
    [
      'that the configuration names already',
      { existingKubeconfig: { secret: 'a' }, config: { clientConnection: { kubeconfig: '/b' } } },
      'set one of them',
    ],
    [
      'that would hide the configuration',
      { existingKubeconfig: { secret: 'a', key: 'config.conf' } },
      'has the name of the configuration file',
    ],
    ['and no right to write rules', { capabilities: ['NET_RAW'] }, 'without NET_ADMIN'],
  ])('%s is refused', (_, values, message) => {
    expect(() => renderObjects(merge(REQUIRED, values))).toThrow(TemplateFailure);
    expect(() => renderObjects(merge(REQUIRED, values))).toThrow(message);
  });
});

describe('helm uninstall', () => {
  const hooks = (values: Data): readonly Data[] => renderHooks(merge(REQUIRED, values));

  test.each<[string, Data, number]>([
    ['in nftables mode', { config: { mode: 'nftables' } }, 1],
    ['in iptables mode, whose rules kube-proxy takes over', {}, 0],
    ['with a ConfigMap whose mode is not known', { existingConfigMap: 'kube-proxy' }, 0],
    ['with that, when asked to', { existingConfigMap: 'a', cleanup: { onUninstall: 'always' } }, 1],
    ['never', { config: { mode: 'nftables' }, cleanup: { onUninstall: 'never' } }, 0],
  ])('leaves a clean-up: %s', (_, values, expected) => {
    expect(hooks(values)).toHaveLength(expected);
  });

  test('makes it after Junction is deleted, for every Linux node, with nothing of the release', () => {
    const made = objectOf(hooks({ config: { mode: 'nftables' }, nodeSelector: { a: 'b' } }), 'DaemonSet');
    expect(at(made, 'metadata', 'annotations')).toEqual({
      'helm.sh/hook': 'post-delete',
      'helm.sh/hook-delete-policy': 'before-hook-creation',
    });
    const spec = at(made, 'spec', 'template', 'spec');
    expect(isData(spec) && 'nodeSelector' in spec).toBe(false);
    expect(JSON.stringify(spec)).not.toMatch(/serviceAccountName|"volumes"/);
    expect(at(made, 'spec', 'selector', 'matchLabels')).not.toEqual(
      at(objectOf(renderObjects(), 'DaemonSet'), 'spec', 'selector', 'matchLabels'),
    );
  });

  test('is said in the notes', () => {
    const notes = (values: Data): string => renderTexts(merge(REQUIRED, values)).get('NOTES.txt') ?? '';
    expect(notes({ config: { mode: 'nftables' } })).toContain('daemonset/junction-cleanup');
    expect(notes({})).not.toContain('junction-cleanup');
  });
});
