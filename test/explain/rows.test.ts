/** `services` and `endpoints`, row by row. */
import { expect, test } from 'vitest';
import { endpointRows, serviceRows } from '../../src/explain/rows.ts';
import { UNBOUNDED } from '../../src/plan/capacity.ts';
import { service, slice, slice6 } from '../scenarios/objects.ts';
import { clusterOf } from './given.ts';

const subject = clusterOf([
  service('web', {
    clusterIP: '10.96.1.1 fd00:96::1',
    type: 'LoadBalancer',
    ports: 'http=80:30080 dns=53/UDP',
    externalIPs: ['203.0.113.5', '2001:db8:113::5'],
    loadBalancerIPs: ['203.0.113.10'],
    externalTrafficPolicy: 'Local',
    affinitySeconds: 60,
  }),
  slice('web', 'http=8080 dns=53/UDP', 'pod-a', 'pod-b not-ready', 'pod-c'),
  slice('web', 'metrics=9090', 'pod-a', 'pod-d'),
  slice6('web', 'http=8080 dns=53/UDP', 'pod-a'),
  service('idle', { clusterIP: '10.96.1.2' }),
  service('six', { clusterIP: 'fd00:96::6' }),
  slice6('six', '80', 'pod-c'),
  service('old', { clusterIP: '10.96.1.3', externalIPs: ['203.0.113.9'], created: '2025-01-01T00:00:00Z' }),
  slice('old', '80', 'pod-a'),
  service('new', { clusterIP: '10.96.1.4', externalIPs: ['203.0.113.9'], created: '2026-01-01T00:00:00Z' }),
  slice('new', '80', 'pod-a'),
]);

test('services', () => {
  const rows = [...serviceRows(subject)];
  expect(rows.map(({ service: name, state, detail }) => [name, state, detail])).toEqual([
    ['default/web', 'ok', undefined],
    ['default/idle', 'no endpoints', 'default/idle has no usable endpoint'],
    ['default/old', 'ok', undefined],
    ['default/new', 'partly served', 'not served: 203.0.113.9:80/TCP belongs to default/old/TCP'],
    ['default/six', 'ok', undefined],
  ]);
  expect(rows[0]).toEqual({
    service: 'default/web',
    type: 'LoadBalancer',
    clusterIPs: ['10.96.1.1', 'fd00:96::1'],
    externalIPs: ['203.0.113.5', '2001:db8:113::5'],
    loadBalancerIPs: ['203.0.113.10'],
    ports: ['80:30080/TCP', '53/UDP'],
    endpoints: { ready: 3, local: 1, all: 4 },
    externalTrafficPolicy: 'Local',
    internalTrafficPolicy: 'Cluster',
    affinitySeconds: 60,
    state: 'ok',
  });
  expect(rows.at(-1)).toMatchObject({
    clusterIPs: ['fd00:96::6'],
    endpoints: { ready: 1, local: 0, all: 1 },
  });
});

test('of one namespace', () => {
  expect([...serviceRows(subject, { namespace: 'default' })]).toHaveLength(5);
  expect([...serviceRows(subject, { namespace: 'defaul' })]).toEqual([]);
});

test('refused, beyond capacity, not served', () => {
  const objects = [
    service('web', { clusterIP: '10.96.1.1', ports: 'a=80 b=81' }),
    slice('web', 'a=80 b=81', 'pod-a', 'pod-b', 'pod-c'),
  ];
  const stateIn = (given: typeof subject): unknown => {
    const [row] = serviceRows(given);
    return [row?.state, row?.detail];
  };
  const bounded = clusterOf(objects, { capacity: { ...UNBOUNDED, endpoints: 4 } });
  expect(stateIn(bounded)).toEqual([
    'partly served',
    '3 endpoints are in its slices, of which 2 for each port are used: a Service may have 4 endpoint entries (endpoints × ports)',
  ]);
  const fewPorts = clusterOf(objects, { capacity: { ...UNBOUNDED, ports: 1 } });
  expect(stateIn(fewPorts)).toEqual(['not served', 'default/web:b is beyond what one Service may have']);
  const families = clusterOf(objects).families.map((family) => ({
    ...family,
    refused: new Map([['default/web:b/TCP', 'ENOSPC']]),
  }));
  expect(stateIn({ ...clusterOf(objects), families })).toEqual(['refused', 'ENOSPC']);
});

test('endpoints', async () => {
  const rows = await endpointRows(subject, 'default/web');
  expect(
    rows.map(({ servicePort, family, address, pod, pools, leftOut }) => [
      servicePort,
      family,
      address,
      pod,
      pools.join(' '),
      leftOut?.reason,
    ]),
  ).toEqual([
    ['default/web:http/TCP', 'IPv4', '10.244.1.11:8080', 'pod-a', 'cluster local', undefined],
    ['default/web:http/TCP', 'IPv4', '10.244.1.12:8080', 'pod-b', '', 'not-ready'],
    ['default/web:http/TCP', 'IPv4', '10.244.2.11:8080', 'pod-c', 'cluster', undefined],
    ['default/web:http/TCP', 'IPv4', '10.244.2.12', 'pod-d', '', 'no-such-port'],
    ['default/web:dns/UDP', 'IPv4', '10.244.1.11:53', 'pod-a', 'cluster local', undefined],
    ['default/web:dns/UDP', 'IPv4', '10.244.1.12:53', 'pod-b', '', 'not-ready'],
    ['default/web:dns/UDP', 'IPv4', '10.244.2.11:53', 'pod-c', 'cluster', undefined],
    ['default/web:dns/UDP', 'IPv4', '10.244.2.12', 'pod-d', '', 'no-such-port'],
    ['default/web:http/TCP', 'IPv6', '[fd00:244:1::11]:8080', 'pod-a', 'cluster local', undefined],
    ['default/web:dns/UDP', 'IPv6', '[fd00:244:1::11]:53', 'pod-a', 'cluster local', undefined],
  ]);
});
