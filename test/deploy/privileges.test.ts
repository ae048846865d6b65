import { describe, expect, test } from 'vitest';
import { at, listAt, podOf, readObjects, readText, renderObjects } from './chart.ts';
import { VALUE_SETS } from './valueSets.ts';

const PODS: readonly (readonly [string, unknown])[] = [
  ...Object.entries(VALUE_SETS).map(([name, values]) => [name, podOf(renderObjects(values))] as const),
  ['the plain manifests', podOf(readObjects(readText('deploy/manifests/junction.yaml')))],
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

  test('takes three things from the node at most, and writes to two', () => {
    const hostPaths = new Map(
      listAt(pod, 'volumes').flatMap((volume) =>
        JSON.stringify(volume).includes('hostPath')
          ? [[at(volume, 'name'), String(at(volume, 'hostPath', 'path'))] as const]
          : [],
      ),
    );
    const writable = containers.flatMap((container) =>
      listAt(container, 'volumeMounts').flatMap((mount) => {
        const path = hostPaths.get(at(mount, 'name'));
        return path === undefined || JSON.stringify(mount).includes('"readOnly":true')
          ? []
          : [`${String(at(container, 'name'))} ${path}`];
      }),
    );
    expect(['/lib/modules', '/proc/sys/net', '/run/xtables.lock']).toEqual(
      expect.arrayContaining([...hostPaths.values()]),
    );
    expect(['junction /run/xtables.lock', 'set-sysctls /proc/sys/net']).toEqual(
      expect.arrayContaining(writable),
    );
  });
});

test('the container that sets sysctls has no capability whatever', () => {
  const container = at(podOf(renderObjects()), 'initContainers', 0);
  expect(at(container, 'securityContext', 'capabilities')).toEqual({ drop: ['ALL'] });
});
