import { describe, expect, test } from 'vitest';
import {
  at,
  type Data,
  listAt,
  merge,
  podOf,
  REQUIRED,
  readObjects,
  readText,
  renderObjects,
} from './chart.ts';
import { PLAIN_MANIFESTS } from './plainManifest.ts';
import { VALUE_SETS } from './valueSets.ts';

const PODS: readonly (readonly [string, unknown])[] = [
  ...Object.entries(VALUE_SETS).map(([name, values]) => [name, podOf(renderObjects(values))] as const),
  ...PLAIN_MANIFESTS.map(({ path }) => [path, podOf(readObjects(readText(path)))] as const),
];

describe.each(PODS)('what the pod may do, with %s', (_, pod) => {
  const containers = [
    ...listAt(pod, 'containers'),
    ...(JSON.stringify(pod).includes('"initContainers"') ? listAt(pod, 'initContainers') : []),
  ];

  test('is never everything', () => {
    expect(JSON.stringify(pod)).not.toMatch(/"privileged"|hostPID|hostIPC|SYS_ADMIN|SYS_MODULE|"procMount"/);
    expect(at(pod, 'securityContext', 'seccompProfile', 'type')).toBe('RuntimeDefault');
    for (const container of containers) {
      expect(at(container, 'securityContext')).toMatchObject({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      });
    }
  });

  test('is the network, and reaching old iptables', () => {
    const added = listAt(pod, 'containers', 0, 'securityContext', 'capabilities', 'add');
    expect(['NET_ADMIN', 'NET_RAW']).toEqual(expect.arrayContaining([...added]));
    expect(added).toContain('NET_ADMIN');
  });

  test('takes four things from the node at most, but for files that it is told, and writes to three', () => {
    const hostPaths = new Map(
      listAt(pod, 'volumes').flatMap((volume) =>
        JSON.stringify(volume).includes('hostPath') && !JSON.stringify(volume).includes('"type":"File"')
          ? [[at(volume, 'name'), String(at(volume, 'hostPath', 'path'))] as const]
          : [],
      ),
    );
    expect(['/lib/modules', '/proc/sys/net', '/run/junction', '/run/xtables.lock']).toEqual(
      expect.arrayContaining([...hostPaths.values()]),
    );
    const writable = containers.flatMap((container) =>
      listAt(container, 'volumeMounts').flatMap((mount) => {
        const path = hostPaths.get(at(mount, 'name'));
        return path === undefined || JSON.stringify(mount).includes('"readOnly":true') ? [] : [path];
      }),
    );
    expect(['/proc/sys/net', '/run/junction', '/run/xtables.lock']).toEqual(expect.arrayContaining(writable));
  });
});

describe('Junction itself sets sysctls', () => {
  const mount = { name: 'sysctl-net', mountPath: '/host/net' };
  const isSetBy = (values: Data): boolean => {
    const container = at(podOf(renderObjects(values)), 'containers', 0);
    const isTold = listAt(container, 'args').includes('--sysctl-root=/host');
    const isMounted = listAt(container, 'volumeMounts').some(
      (each) => JSON.stringify(each) === JSON.stringify(mount),
    );
    expect(isTold).toBe(isMounted);
    return isTold;
  };

  test.each<[string, Data, boolean]>([
    ['not in the iptables mode, where none is essential', {}, false],
    ['not in the default mode', { config: { mode: '' } }, false],
    ['not in the nftables mode, which needs none', { config: { mode: 'nftables' } }, false],
    ['in the ipvs mode, which cannot do without', { config: { mode: 'ipvs' } }, true],
    ['with a ConfigMap that may ask for the ipvs mode', { existingConfigMap: 'kube-proxy' }, true],
    [
      'never, where the node does it',
      { existingConfigMap: 'kube-proxy', config: { mode: 'ipvs' }, sysctls: { enabled: false } },
      false,
    ],
  ])('%s', (_, values, expected) => {
    expect(isSetBy(merge(REQUIRED, values))).toBe(expected);
  });
});

describe('the nftables mode needs less', () => {
  const pod = (values: Data): unknown =>
    podOf(renderObjects(merge(REQUIRED, { config: { mode: 'nftables' }, ...values })));
  const addedTo = (values: Data): readonly unknown[] =>
    listAt(pod(values), 'containers', 0, 'securityContext', 'capabilities', 'add');

  test('one capability, unless a list says otherwise', () => {
    expect(addedTo({})).toEqual(['NET_ADMIN']);
    expect(addedTo({ capabilities: ['NET_ADMIN', 'NET_RAW'] })).toEqual(['NET_ADMIN', 'NET_RAW']);
  });

  test('no lock of iptables', () => {
    expect(JSON.stringify(pod({}))).not.toContain('xtables');
  });

  test('as long as it is known: a ConfigMap of somebody else may ask for another mode', () => {
    expect(addedTo({ existingConfigMap: 'kube-proxy' })).toEqual(['NET_ADMIN', 'NET_RAW']);
    expect(JSON.stringify(pod({ existingConfigMap: 'kube-proxy' }))).toContain('/run/xtables.lock');
  });
});

test.each<[string, Data, readonly string[]]>([
  ['iptables, either variant', {}, ['NET_ADMIN', 'NET_RAW']],
  ['iptables, the nft variant', { junction: { iptablesVariant: 'nft' } }, ['NET_ADMIN']],
  ['iptables, the legacy variant', { junction: { iptablesVariant: 'legacy' } }, ['NET_ADMIN', 'NET_RAW']],
  ['ipvs', { config: { mode: 'ipvs' } }, ['NET_ADMIN', 'NET_RAW']],
  [
    'ipvs, whose match `set` opens a raw socket in the nft variant too',
    { config: { mode: 'ipvs' }, junction: { iptablesVariant: 'nft' } },
    ['NET_ADMIN', 'NET_RAW'],
  ],
  [
    'a ConfigMap that may say otherwise',
    { existingConfigMap: 'kube-proxy', junction: { iptablesVariant: 'nft' } },
    ['NET_ADMIN', 'NET_RAW'],
  ],
  ['a list', { capabilities: ['NET_ADMIN', 'SYS_RESOURCE'] }, ['NET_ADMIN', 'SYS_RESOURCE']],
])('capabilities of %s', (_, values, expected) => {
  const pod = podOf(renderObjects(merge(REQUIRED, values)));
  for (const kind of ['containers', 'initContainers'])
    expect(listAt(pod, kind, 0, 'securityContext', 'capabilities', 'add')).toEqual(expected);
});

test('the container that sets sysctls may do what Junction may, and is Junction', () => {
  const pod = podOf(renderObjects());
  const [init, main] = [at(pod, 'initContainers', 0), at(pod, 'containers', 0)];
  expect(at(init, 'securityContext')).toEqual(at(main, 'securityContext'));
  expect(at(init, 'image')).toEqual(at(main, 'image'));
  expect(listAt(init, 'args')).toEqual([
    'run',
    '--init-only',
    ...listAt(main, 'args').slice(1),
    '--sysctl-root=/host',
  ]);
});
