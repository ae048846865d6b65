/** The decision table: one row for each situation, one column for each way in. */
import { describe, expect, test } from 'vitest';
import { planServicePort } from '../../src/plan/servicePortPlan.ts';
import type { NodeView, Route, ServicePortPlan } from '../../src/plan/types.ts';
import { cidr, endpoints, ip, known, servicePort, VIEW } from './given.ts';

function plan(port: string, list: string, view: NodeView = VIEW): ServicePortPlan {
  const text = list.replaceAll(/(^|, )(\d+)/g, '$110.0.0.$2:80');
  return planServicePort(servicePort(`a/b 10.96.0.1 ${port}`), endpoints(text), view);
}

function print(route: Route, { pools }: ServicePortPlan): string {
  if (route.verdict !== 'forward') return route.verdict;
  const ends = (pools[route.pool] ?? []).map((each) => each.ip.split('.').at(-1)).join(' ');
  return route.masquerade ? `${ends} masq` : ends;
}

function decisions(list: string): Readonly<Record<string, string>> {
  const open = plan('80@30080', list);
  const internal = plan('80 itp=Local', list);
  const external = plan('80@30080 etp=Local', list);
  return {
    'cluster IP': print(open.internal.pod, open),
    'cluster IP, ITP Local': print(internal.internal.pod, internal),
    external: print(open.external.outside, open),
    'external, ETP Local, from outside': print(external.external.outside, external),
    'external, ETP Local, from a pod': print(external.external.pod, external),
    'external, ETP Local, from the node': print(external.external.node, external),
  };
}

describe('what happens to a packet', () => {
  const table: readonly (readonly [string, string, readonly string[]])[] = [
    ['ready, some here', '1 local, 2', ['1 2', '1', '1 2 masq', '1', '1 2', '1 2 masq']],
    ['ready, none here', '1, 2', ['1 2', 'drop', '1 2 masq', 'drop', '1 2', '1 2 masq']],
    ['ready elsewhere, draining here', '1 local draining, 2', ['2', '1', '2 masq', '1', '2', '2 masq']],
    [
      'draining only, some here',
      '1 local draining, 2 draining',
      ['1 2', '1', '1 2 masq', '1', '1 2', '1 2 masq'],
    ],
    ['draining only, none here', '2 draining', ['2', 'drop', '2 masq', 'drop', '2', '2 masq']],
    [
      'nothing usable',
      '1 local unready, 2 dead',
      ['reject', 'reject', 'reject', 'reject', 'reject', 'reject'],
    ],
    ['no endpoints', '', ['reject', 'reject', 'reject', 'reject', 'reject', 'reject']],
  ];
  test.each(table)('%s', (_, list, expected) => expect(Object.values(decisions(list))).toEqual(expected));
});

describe('who is masqueraded on the way to a cluster IP', () => {
  const none: NodeView = { ...VIEW, localDetector: { kind: 'none' } };
  const all: NodeView = { ...VIEW, masqueradeAll: true };
  const table: readonly (readonly [string, NodeView, readonly string[]])[] = [
    ['who is no pod', VIEW, ['1', '1 masq', '1 masq']],
    ['nobody, where pods cannot be told apart', none, ['1', '1', '1']],
    ['everybody', all, ['1 masq', '1 masq', '1 masq']],
    ['everybody, even so', { ...all, localDetector: none.localDetector }, ['1 masq', '1 masq', '1 masq']],
  ];
  test.each(table)('%s', (_, view, expected) => {
    const made = plan('80', '1', view);
    const { pod, node, outside } = made.internal;
    expect([pod, node, outside].map((route) => print(route, made))).toEqual(expected);
  });
  test.each(table)('%s: the way in from outside does not change', (_, view) => {
    const made = plan('80@30080', '1', view);
    const { pod, node, outside } = made.external;
    expect([pod, node, outside].map((route) => print(route, made))).toEqual(['1 masq', '1 masq', '1 masq']);
  });
});

describe('frontends', () => {
  test('cluster IP, external IPs, load-balancer IPs, node port, in this order, each once', () => {
    const made = plan('80@30080 lb=2.2.2.2,3.3.3.3,2.2.2.2 ext=4.4.4.4,4.4.4.4', '1');
    expect(made.frontends.map(({ kind, address, port }) => `${kind} ${address ?? '*'} ${port}`)).toEqual([
      'clusterIP 10.96.0.1 80',
      'externalIP 4.4.4.4 80',
      'loadBalancerIP 2.2.2.2 80',
      'loadBalancerIP 3.3.3.3 80',
      'nodePort * 30080',
    ]);
  });

  const table: readonly (readonly [string, string | undefined, readonly string[], readonly string[]])[] = [
    ['9.9.9.0/24', '192.0.2.10', ['9.9.9.0/24'], []],
    ['9.9.9.0/24,192.0.2.0/24', '192.0.2.10', ['9.9.9.0/24', '192.0.2.0/24'], ['2.2.2.2']],
    ['192.0.2.0/24', undefined, ['192.0.2.0/24'], []],
  ];
  test.each(table)('source ranges %s on a node with %s', (ranges, nodeIp, expected, hosts) => {
    const view = { ...VIEW, nodeIp: nodeIp === undefined ? undefined : ip(nodeIp) };
    const made = plan(`80@30080 lb=2.2.2.2 ext=4.4.4.4 ranges=${ranges}`, '1', view);
    const allowed = made.frontends.map((each) => each.allowedSources);
    expect(allowed[2]).toEqual({ ranges: expected.map(cidr), hosts: hosts.map(ip) });
    expect([allowed[0], allowed[1], allowed[3]]).toEqual([undefined, undefined, undefined]);
  });

  test.each([
    ['', ['externalIP 4.4.4.4', 'externalIP 2.2.2.2', 'loadBalancerIP 3.3.3.3']],
    [
      ' ranges=9.9.9.0/24',
      [
        'externalIP 4.4.4.4',
        'loadBalancerIP 2.2.2.2 from 9.9.9.0/24',
        'loadBalancerIP 3.3.3.3 from 9.9.9.0/24',
      ],
    ],
  ])('an external IP that is the load balancer too, source ranges "%s"', (ranges, expected) => {
    const { frontends } = plan(`80 lb=2.2.2.2,3.3.3.3 ext=4.4.4.4,2.2.2.2${ranges}`, '1');
    const printed = frontends.map(({ kind, address, allowedSources }) =>
      [kind, address, ...(allowedSources ? ['from', ...allowedSources.ranges] : [])].join(' '),
    );
    expect(printed.slice(1)).toEqual(expected);
  });

  test('a pool that nobody may use, or that is empty, is absent', () => {
    expect(plan('80', '1 local').pools).not.toHaveProperty('local');
    expect(plan('80 itp=Local', '1').pools).toEqual({});
    expect(plan('80', '1 unready').pools).toEqual({});
  });

  test('all endpoints are counted, usable or not', () => {
    expect(plan('80', '1, 2 unready, 3 dead').endpointCount).toBe(3);
  });

  test('affinity and health check go along', () => {
    const made = plan('80@30080 lb=2.2.2.2 affinity=10800 etp=Local hc=345', '1');
    expect(made).toMatchObject({ affinitySeconds: 10800, healthCheckNodePort: 345 });
    expect(known(made.frontends[0], 'a frontend').kind).toBe('clusterIP');
  });
});
