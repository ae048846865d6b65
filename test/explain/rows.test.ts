/** `services` and `endpoints`, row by row, and as the cells of a table. */
import { expect, test } from 'vitest';
import { endpointRows, serviceRows } from '../../src/explain/rows.ts';
import { serviceLine } from '../../src/explain/serviceTable.ts';
import type { Subject } from '../../src/explain/subject.ts';
import { UNBOUNDED } from '../../src/plan/capacity.ts';
import { service, slice, slice6 } from '../scenarios/objects.ts';
import { clusterOf, refusing } from './given.ts';

const subject = clusterOf([
  service('web', {
    clusterIP: '10.96.1.1 fd00:96::1',
    type: 'LoadBalancer',
    ports: 'http=80:30080 dns=53/UDP',
    externalIPs: ['203.0.113.5', '2001:db8:113::5'],
    loadBalancerIPs: ['203.0.113.10'],
    externalTrafficPolicy: 'Local',
    internalTrafficPolicy: 'Local',
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

const cellsOf = (given: Subject) =>
  [...serviceRows(given)].map((row) => serviceLine(row).split('\t').join('|'));

test('services', () => {
  expect(cellsOf(subject)).toEqual([
    'default/web|LoadBalancer|10.96.1.1,fd00:96::1|203.0.113.10,203.0.113.5,2001:db8:113::5|80:30080/TCP,53/UDP|3/4 (1 here)|external Local, internal Local|60s|ok',
    'default/idle|ClusterIP|10.96.1.2||80/TCP|0/0|||no endpoints: default/idle has no usable endpoint',
    'default/old|ClusterIP|10.96.1.3|203.0.113.9|80/TCP|1/1 (1 here)|||ok',
    'default/new|ClusterIP|10.96.1.4|203.0.113.9|80/TCP|1/1 (1 here)|||partly served: not served: 203.0.113.9:80/TCP belongs to default/old/TCP',
    'default/six|ClusterIP|fd00:96::6||80/TCP|1/1|||ok',
  ]);
  expect([...serviceRows(subject, { namespace: 'default' })]).toHaveLength(5);
  expect([...serviceRows(subject, { namespace: 'defaul' })]).toEqual([]);
});

test('refused, beyond capacity, not served', () => {
  const objects = [
    service('web', { clusterIP: '10.96.1.1', ports: 'a=80 b=81' }),
    slice('web', 'a=80 b=81', 'pod-a', 'pod-b', 'pod-c'),
  ];
  const stateOf = (given: Subject): string | undefined => cellsOf(given)[0]?.split('|').at(-1);
  expect(stateOf(clusterOf(objects, { capacity: { ...UNBOUNDED, endpoints: 4 } }))).toBe(
    'partly served: 3 endpoints are in its slices, of which 2 for each port are used: a Service may have 4 endpoint entries (endpoints × ports)',
  );
  expect(stateOf(clusterOf(objects, { capacity: { ...UNBOUNDED, ports: 1 } }))).toBe(
    'not served: default/web:b is beyond what one Service may have',
  );
  expect(stateOf(refusing(clusterOf(objects), 'default/web:b/TCP', 'No space\tleft\non device'))).toBe(
    'refused: No space left on device',
  );
});

test('endpoints', async () => {
  const rows = await endpointRows(subject, 'default/web');
  expect(
    rows
      .filter(({ servicePort }) => servicePort === 'default/web:http/TCP')
      .map(({ family, address, pod, pools, leftOut }) =>
        [family, address, pod, pools.join('+') || leftOut?.reason].join(' '),
      ),
  ).toEqual([
    'IPv4 10.244.1.11:8080 pod-a cluster+local',
    'IPv4 10.244.1.12:8080 pod-b not-ready',
    'IPv4 10.244.2.11:8080 pod-c cluster',
    'IPv4 10.244.2.12 pod-d no-such-port',
    'IPv6 [fd00:244:1::11]:8080 pod-a cluster+local',
  ]);
  expect(rows).toHaveLength(10);
});
