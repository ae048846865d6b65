/** Rules that hold with every set of values: what golden files cannot say by themselves. */
import { describe, expect, test } from 'vitest';
import { parseCommandLine } from '../../src/config/commandLine.ts';
import { loadConfig } from '../../src/config/load.ts';
import { validate } from '../../src/config/validate.ts';
import { PAGES } from '../support/checkout.ts';
import {
  at,
  configText,
  type Data,
  defaultValues,
  isData,
  listAt,
  merge,
  podOf,
  REQUIRED,
  readText,
  readYaml,
  renderHooks,
  renderObjects,
  renderTexts,
} from './chart.ts';
import { violations } from './jsonSchema.ts';
import { VALUE_SETS } from './valueSets.ts';

const schema = JSON.parse(readText('deploy/chart/junction/values.schema.json')) as unknown;
const NFTABLES = { config: { mode: 'nftables' } };

const podWith = (values: Data): unknown => podOf(renderObjects(merge(REQUIRED, values)));

describe.each([['the defaults', REQUIRED] as const, ...Object.entries(VALUE_SETS)])(
  'with %s',
  (_, values) => {
    const objects = renderObjects(values);
    const pod = podOf(objects);
    const main = at(pod, 'containers', 0);
    const containers = [main, ...('initContainers' in (pod as Data) ? listAt(pod, 'initContainers') : [])];

    test('the schema allows the values', () => {
      expect(violations(schema, merge(defaultValues(), values))).toEqual([]);
    });

    test('the pod may do what the network needs, and no more', () => {
      expect(JSON.stringify(pod)).not.toMatch(
        /"privileged"|hostPID|hostIPC|SYS_ADMIN|SYS_MODULE|"procMount"/,
      );
      expect(at(pod, 'securityContext', 'seccompProfile', 'type')).toBe('RuntimeDefault');
      for (const container of containers) {
        expect(at(container, 'securityContext')).toMatchObject({
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        });
        expect(at(container, 'securityContext')).toEqual(at(main, 'securityContext'));
      }
    });

    test('the pod writes to three places of the node at most, and mounts all that it has', () => {
      const paths = new Map(listAt(pod, 'volumes').map((each) => [at(each, 'name'), hostPathOf(each)]));
      const mounts = containers.flatMap((each) => listAt(each, 'volumeMounts')).filter(isData);
      expect(new Set(mounts.map(({ name }) => name))).toEqual(new Set(paths.keys()));
      const writable = mounts.filter(({ readOnly }) => readOnly !== true).map(({ name }) => paths.get(name));
      expect(['/proc/sys/net', '/run/junction', '/run/xtables.lock', undefined]).toEqual(
        expect.arrayContaining(writable),
      );
    });

    test('the image is a release, never a moving tag', () => {
      const images = new Set(
        [...JSON.stringify(pod).matchAll(/"image":"([^"]+)"/g)].map(([, image]) => image),
      );
      expect([...images]).toEqual([expect.stringMatching(/(:\d+\.\d+\.\d+|@sha256:[0-9a-f]{64})$/)]);
    });
  },
);

test.each(Object.entries(VALUE_SETS).filter(([, values]) => values['existingConfigMap'] === undefined))(
  'the program understands its arguments and its configuration with %s',
  (_, values) => {
    const objects = renderObjects(values);
    const args = listAt(podOf(objects), 'containers', 0, 'args').map((arg) =>
      String(arg).replace('$(NODE_NAME)', 'node1'),
    );
    const parsed = parseCommandLine(args.slice(1));
    if (!parsed.ok) throw new Error(parsed.problems.join('\n'));
    const loaded = loadConfig(parsed.value, () => configText(objects));
    if (!loaded.ok) throw new Error(loaded.problems.join('\n'));
    expect(validate(loaded.value.config)).toEqual([]);
    expect(loaded.value.notes.filter(({ severity }) => severity === 'warning')).toEqual([]);
  },
);

function hostPathOf(volume: unknown): string | undefined {
  return isData(volume) && 'hostPath' in volume ? String(at(volume, 'hostPath', 'path')) : undefined;
}

test.each<[string, Data, readonly string[]]>([
  ['iptables, either variant', {}, ['NET_ADMIN', 'NET_RAW']],
  ['iptables, the nft variant', { junction: { iptablesVariant: 'nft' } }, ['NET_ADMIN']],
  ['nftables', NFTABLES, ['NET_ADMIN']],
  ['ipvs', { config: { mode: 'ipvs' }, junction: { iptablesVariant: 'nft' } }, ['NET_ADMIN', 'NET_RAW']],
  ['a ConfigMap that may name any mode', { existingConfigMap: 'a', ...NFTABLES }, ['NET_ADMIN', 'NET_RAW']],
  ['a list', { capabilities: ['NET_ADMIN', 'SYS_RESOURCE'] }, ['NET_ADMIN', 'SYS_RESOURCE']],
])('capabilities of %s', (_, values, expected) => {
  expect(at(podWith(values), 'containers', 0, 'securityContext', 'capabilities', 'add')).toEqual(expected);
});

test.each<[string, Data, boolean]>([
  ['not in iptables mode, where none is essential', {}, false],
  ['in ipvs mode, which cannot do without', { config: { mode: 'ipvs' } }, true],
  ['with a ConfigMap that may ask for ipvs mode', { existingConfigMap: 'kube-proxy' }, true],
  ['never, where the node does it', { existingConfigMap: 'a', sysctls: { enabled: false } }, false],
])('Junction itself sets sysctls %s', (_, values, expected) => {
  const container = at(podWith(values), 'containers', 0);
  expect(listAt(container, 'args').includes('--sysctl-root=/host')).toBe(expected);
  expect(JSON.stringify(at(container, 'volumeMounts')).includes('"/host/net"')).toBe(expected);
});

describe('the chart', () => {
  test('is of the same version as the program', () => {
    const { version } = JSON.parse(readText('package.json')) as Data;
    const chart = readYaml('deploy/chart/junction/Chart.yaml');
    expect([at(chart, 'version'), at(chart, 'appVersion')]).toEqual([version, version]);
  });

  test('replaces pods when their configuration changes', () => {
    const checksum = (values: Data): unknown => {
      const [, sum] =
        /checksum\/config: (\w{64})/.exec(renderTexts(values).get('daemonset.yaml') ?? '') ?? [];
      return sum;
    };
    expect(checksum(REQUIRED)).toBe(checksum(merge(REQUIRED, { nodeSelector: { a: 'b' } })));
    expect(checksum(REQUIRED)).not.toBe(checksum(merge(REQUIRED, { config: { clusterCIDR: '10.0.0.0/8' } })));
  });

  test('takes null for what may be unset', () => {
    const names =
      'affinity capabilities existingConfigMapKey existingKubeconfig extraArgs extraEnv extraVolumeMounts extraVolumes imagePullSecrets junction nameOverride nodeSelector podAnnotations podLabels resources seLinuxOptions tolerations';
    for (const name of names.split(' '))
      expect(renderTexts(merge(REQUIRED, { [name]: null })).get('daemonset.yaml')).not.toMatch(
        /<no value>|nil/,
      );
    // As an upgrade with --reuse-values from 0.1.0 has it.
    const unset = { cleanup: null, modules: null, metrics: { dashboard: null, prometheusRule: null } };
    expect(renderHooks(merge(REQUIRED, { ...NFTABLES, ...unset }))).toHaveLength(1);
  });

  test.each<[string, Data]>([
    ['set apiServer.host', { apiServer: { host: '' } }],
    ['metrics.podMonitor needs', { metrics: { podMonitor: { enabled: true } } }],
    ['set one of secret', { existingKubeconfig: { secret: 'a', hostPath: '/b' } }],
    ['hostFiles', { existingKubeconfig: { hostFiles: ['/a'] } }],
    [
      'set one of them',
      { existingKubeconfig: { secret: 'a' }, config: { clientConnection: { kubeconfig: '/b' } } },
    ],
    ['name of the configuration file', { existingKubeconfig: { secret: 'a', key: 'config.conf' } }],
    ['without NET_ADMIN', { capabilities: ['NET_RAW'] }],
  ])('refuses: %s', (message, values) => {
    expect(() => renderObjects(merge(REQUIRED, values))).toThrow(message);
  });

  test.each<[string, Data, number]>([
    ['in nftables mode', NFTABLES, 1],
    ['not in iptables mode, whose rules kube-proxy takes over', {}, 0],
    ['not with a ConfigMap whose mode is not known', { existingConfigMap: 'a' }, 0],
    ['when asked to', { existingConfigMap: 'a', cleanup: { onUninstall: 'always' } }, 1],
  ])('cleans up after helm uninstall: %s', (_, values, hooks) => {
    expect(renderHooks(merge(REQUIRED, values))).toHaveLength(hooks);
  });
});

describe('the schema of the values', () => {
  test.each<[string, Data]>([
    ['image.tag: "latest" is not allowed', { image: { tag: 'latest' } }],
    ['config.clusterCidr: no such value', { config: { clusterCidr: '' } }],
    ['config.mode', { config: { mode: 'userspace' } }],
    ['capabilities[0]', { capabilities: ['CAP_NET_ADMIN'] }],
    ['maxSurge: no such value', { updateStrategy: { rollingUpdate: { maxSurge: 1 } } }],
    ['below 1', { updateStrategy: { rollingUpdate: { maxUnavailable: 0 } } }],
    ['"tmp" is not allowed', { extraVolumes: [{ name: 'tmp', emptyDir: {} }] }],
    ['extraVolumes[0]: too few fields', { extraVolumes: [{ name: 'mine' }] }],
    ['mountPath is missing', { extraVolumeMounts: [{ name: 'mine' }] }],
    ['extraEnv[0].value: 1 is no string', { extraEnv: [{ name: 'A', value: 1 }] }],
  ])('refuses: %s', (message, values) => {
    expect(violations(schema, merge(defaultValues(), values)).join('\n')).toContain(message);
  });

  /** Described as a whole: what is inside belongs to somebody else, or is up to the operator. */
  const WHOLE = /^(?:config|junction|resources|updateStrategy|affinity|metrics\.dashboard\.labels)$/;

  function paths(values: Data, prefix = ''): readonly string[] {
    return Object.entries(values).flatMap(([key, value]) => {
      const path = prefix + key;
      const isOpen = isData(value) && Object.keys(value).length > 0 && !WHOLE.test(path);
      return isOpen ? paths(value, `${path}.`) : [path];
    });
  }

  function schemaPaths(inner: unknown, prefix = ''): readonly string[] {
    const properties = isData(inner) ? inner['properties'] : undefined;
    if (!isData(properties)) return [];
    return Object.entries(properties).flatMap(([key, value]) => {
      const inside = WHOLE.test(prefix + key) ? [] : schemaPaths(value, `${prefix}${key}.`);
      return inside.length > 0 ? inside : [prefix + key];
    });
  }

  const known = [...paths(defaultValues())].sort();

  test('knows the values that have a default, and no other; so does the table in docs/deployment.md', () => {
    expect(
      schemaPaths(schema)
        .filter((path) => path !== 'global')
        .sort(),
    ).toEqual(known);
    const [, table = ''] = readText('docs/deployment.md').split('## Values');
    const cells = table
      .split('\n')
      .flatMap((line) => (line.startsWith('| `') ? [line.split('|')[1] ?? ''] : []));
    expect(cells.flatMap((cell) => [...cell.matchAll(/`([^`]+)`/g)].map(([, name]) => name)).sort()).toEqual(
      known,
    );
  });

  test('knows every value that a page sets', () => {
    const set = PAGES.flatMap(({ text }) =>
      [...text.matchAll(/--set '?([\w.-]+)=/g)].map(([, name = '']) => name),
    );
    expect(set.length).toBeGreaterThan(20);
    const isKnown = (name: string): boolean =>
      known.some((path) => `${name}.`.startsWith(`${path}.`) || path.startsWith(`${name}.`));
    expect(set.filter((name) => !isKnown(name))).toEqual([]);
  });
});
