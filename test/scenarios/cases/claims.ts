/** Two services want the same address. One after the other, these are also one story: the owner leaves, the next comes. */
import { service, slice } from '../objects.ts';
import { scenario } from '../scenario.ts';

const young = service('a-young', {
  clusterIP: '10.96.1.1',
  externalIPs: ['203.0.113.1', '203.0.113.2'],
  created: '2025-06-01T00:00:00Z',
});
const old = service('z-old', {
  clusterIP: '10.96.1.2',
  externalIPs: ['203.0.113.1'],
  created: '2024-06-01T00:00:00Z',
});
const slices = [slice('a-young', '8080', 'pod-a'), slice('z-old', '8080', 'pod-c')];

export const CLAIMS = [
  scenario(
    'two services claim one external IP: the older has it',
    [young, old, ...slices],
    `
    client  tcp 203.0.113.1:80  -> pod-c*
    pod-b   tcp 203.0.113.1:80  -> pod-c*
    node1   tcp 203.0.113.1:80  -> pod-c*
    client  tcp 203.0.113.2:80  -> pod-a*
    pod-b   tcp 10.96.1.1:80    -> pod-a
    pod-b   tcp 10.96.1.2:80    -> pod-c
    `,
  ),
  scenario(
    'the older has it even without endpoints',
    [young, old, slice('a-young', '8080', 'pod-a')],
    `
    client  tcp 203.0.113.1:80  -> reject
    client  tcp 203.0.113.2:80  -> pod-a*
    `,
  ),
  scenario(
    'the older is gone: the younger has it',
    [young, ...slices],
    `
    client  tcp 203.0.113.1:80  -> pod-a*
    client  tcp 203.0.113.2:80  -> pod-a*
    pod-b   tcp 10.96.1.2:80    -> pass
    `,
  ),
  scenario(
    'equally old: the first by name',
    [
      service('b-web', {
        clusterIP: '10.96.1.2',
        externalIPs: ['203.0.113.1'],
        created: '2024-06-01T00:00:00Z',
      }),
      service('a-web', {
        clusterIP: '10.96.1.1',
        externalIPs: ['203.0.113.1'],
        created: '2024-06-01T00:00:00Z',
      }),
      slice('a-web', '8080', 'pod-a'),
      slice('b-web', '8080', 'pod-c'),
    ],
    `
    client  tcp 203.0.113.1:80  -> pod-a*
    `,
  ),
  scenario(
    'different ports and protocols of one address go to different services',
    [
      service('web', { clusterIP: '10.96.1.1', externalIPs: ['203.0.113.1'] }),
      service('api', { clusterIP: '10.96.1.2', ports: '81', loadBalancerIPs: ['203.0.113.1'] }),
      service('dns', { clusterIP: '10.96.1.3', ports: '80/UDP', externalIPs: ['203.0.113.1'] }),
      slice('web', '8080', 'pod-a'),
      slice('api', '8081', 'pod-b'),
      slice('dns', '53/UDP', 'pod-c'),
    ],
    `
    client  tcp 203.0.113.1:80  -> pod-a:8080*
    client  tcp 203.0.113.1:81  -> pod-b:8081*
    client  udp 203.0.113.1:80  -> pod-c:53*
    `,
  ),
];
