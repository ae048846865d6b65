/** Which endpoints count: slices, duplicates, conditions. */
import { service, type ServiceFields, slice } from '../objects.ts';
import { scenario } from '../scenario.ts';

const web = service('web', { clusterIP: '10.96.1.1' });
const webLocal = (fields: Partial<ServiceFields> = {}) =>
  service('web', {
    clusterIP: '10.96.1.1',
    type: 'LoadBalancer',
    ports: '80:30080',
    loadBalancerIPs: ['203.0.113.50'],
    externalTrafficPolicy: 'Local',
    ...fields,
  });

export const ENDPOINTS = [
  scenario(
    'several slices add up, and an endpoint in two of them counts once',
    [web, slice('web', '8080', 'pod-a', 'pod-b'), slice('web', '8080', 'pod-b', 'pod-c')],
    `
    client  tcp 10.96.1.1:80  -> pod-a* pod-b* pod-c*
    `,
  ),
  scenario(
    'slices with different target ports',
    [web, slice('web', '8080', 'pod-a', 'pod-b'), slice('web', '8081', 'pod-a', 'pod-c')],
    `
    client  tcp 10.96.1.1:80  -> pod-a:8080* pod-a:8081* pod-b:8080* pod-c:8081*
    pod-a   tcp 10.96.1.1:80  -> pod-a:8080* pod-a:8081* pod-b:8080 pod-c:8081
    `,
  ),
  scenario(
    'a running pod beats a terminating one that had its address',
    [
      web,
      slice('web', '8080', 'pod-a terminating'),
      slice('web', '8080', 'pod-a', 'pod-c'),
      slice('web', '8080', 'pod-a terminated', 'pod-c terminating'),
    ],
    `
    client  tcp 10.96.1.1:80  -> pod-a* pod-c*
    `,
  ),
  scenario(
    'ready by default',
    [web, slice('web', '8080', 'pod-a unknown', 'pod-c')],
    `
    client  tcp 10.96.1.1:80  -> pod-a* pod-c*
    `,
  ),
  scenario(
    'who is not ready is left out',
    [
      web,
      slice('web', '8080', 'pod-a', 'pod-b not-ready', 'pod-c serving-only', 'pod-d ready-while-terminating'),
    ],
    `
    client  tcp 10.96.1.1:80  -> pod-a* pod-d*
    `,
  ),
  scenario(
    'nobody is ready',
    [web, slice('web', '8080', 'pod-a not-ready', 'pod-b serving-only', 'pod-c terminated')],
    `
    client  tcp 10.96.1.1:80  -> reject
    pod-a   tcp 10.96.1.1:80  -> reject
    `,
  ),
  scenario(
    'some are terminating: the others serve',
    [web, slice('web', '8080', 'pod-a terminating', 'pod-b', 'pod-c terminating', 'pod-d')],
    `
    client  tcp 10.96.1.1:80  -> pod-b* pod-d*
    `,
  ),
  scenario(
    'all are terminating: those that can still serve do',
    [
      web,
      slice('web', '8080', 'pod-a terminating', 'pod-b terminated', 'pod-c terminating', 'pod-d not-ready'),
    ],
    `
    client  tcp 10.96.1.1:80  -> pod-a* pod-c*
    pod-a   tcp 10.96.1.1:80  -> pod-a* pod-c
    `,
  ),
  scenario(
    'policy Local, the endpoints here are terminating, those elsewhere are not',
    [webLocal(), slice('web', '8080', 'pod-a terminating', 'pod-c')],
    `
    client  tcp 203.0.113.50:80      -> pod-a
    client  tcp 192.168.100.2:30080  -> pod-a
    pod-b   tcp 203.0.113.50:80      -> pod-c
    node1   tcp 203.0.113.50:80      -> pod-c*
    client  tcp 10.96.1.1:80         -> pod-c*
    `,
  ),
  scenario(
    'policy Local, all endpoints are terminating',
    [webLocal(), slice('web', '8080', 'pod-a terminating', 'pod-b terminated', 'pod-c terminating')],
    `
    client  tcp 203.0.113.50:80      -> pod-a
    pod-b   tcp 203.0.113.50:80      -> pod-a pod-c
    node1   tcp 203.0.113.50:80      -> pod-a* pod-c*
    client  tcp 10.96.1.1:80         -> pod-a* pod-c*
    `,
  ),
  scenario(
    'policy Local, the only endpoint is terminating elsewhere',
    [webLocal(), slice('web', '8080', 'pod-a not-ready', 'pod-c terminating')],
    `
    client  tcp 203.0.113.50:80      -> drop
    client  tcp 192.168.100.2:30080  -> drop
    pod-b   tcp 203.0.113.50:80      -> pod-c
    client  tcp 10.96.1.1:80         -> pod-c*
    `,
  ),
  scenario(
    'policy Local, ready and terminating endpoints here: the ready ones',
    [webLocal(), slice('web', '8080', 'pod-a', 'pod-b terminating', 'pod-c')],
    `
    client  tcp 203.0.113.50:80      -> pod-a
    pod-b   tcp 203.0.113.50:80      -> pod-a pod-c
    `,
  ),
];
