import { service, type ServiceFields, slice } from '../objects.ts';
import { scenario } from '../scenario.ts';

const inner = (fields: Partial<ServiceFields> = {}) =>
  service('web', { clusterIP: '10.96.1.1', internalTrafficPolicy: 'Local', ...fields });

export const INTERNAL_POLICY = [
  scenario(
    'internal policy Local, endpoints here and elsewhere',
    [inner(), slice('web', '8080', 'pod-a', 'pod-c')],
    `
    pod-a   tcp 10.96.1.1:80  -> pod-a*
    pod-b   tcp 10.96.1.1:80  -> pod-a
    node1   tcp 10.96.1.1:80  -> pod-a*
    client  tcp 10.96.1.1:80  -> pod-a*
    `,
  ),
  scenario(
    'internal policy Local, endpoints elsewhere only',
    [inner(), slice('web', '8080', 'pod-c', 'pod-d')],
    `
    pod-a   tcp 10.96.1.1:80  -> drop
    node1   tcp 10.96.1.1:80  -> drop
    client  tcp 10.96.1.1:80  -> drop
    `,
  ),
  scenario(
    'internal policy Local, no endpoints at all',
    [inner(), slice('web', '8080', 'pod-a not-ready', 'pod-c not-ready')],
    `
    pod-a   tcp 10.96.1.1:80  -> reject
    node1   tcp 10.96.1.1:80  -> reject
    client  tcp 10.96.1.1:80  -> reject
    `,
  ),
  scenario(
    'internal policy Local, the local endpoint is terminating',
    [inner(), slice('web', '8080', 'pod-a terminating', 'pod-c')],
    `
    pod-b   tcp 10.96.1.1:80  -> pod-a
    client  tcp 10.96.1.1:80  -> pod-a*
    `,
  ),
  scenario(
    'internal policy Local does not touch node ports, load balancers and external IPs',
    [
      inner({
        type: 'LoadBalancer',
        ports: '80:30080',
        loadBalancerIPs: ['203.0.113.50'],
        externalIPs: ['203.0.113.1'],
      }),
      slice('web', '8080', 'pod-a', 'pod-c'),
    ],
    `
    pod-b     tcp 10.96.1.1:80         -> pod-a
    client    tcp 192.168.100.2:30080  -> pod-a* pod-c*
    pod-b     tcp 192.168.100.2:30080  -> pod-a* pod-c*
    node1     tcp 192.168.100.2:30080  -> pod-a* pod-c*
    loopback  tcp 127.0.0.1:30080      -> pod-a* pod-c*
    client    tcp 203.0.113.50:80      -> pod-a* pod-c*
    client    tcp 203.0.113.1:80       -> pod-a* pod-c*
    `,
  ),
  scenario(
    'internal policy Local with a node port, endpoints elsewhere only',
    [inner({ type: 'NodePort', ports: '80:30080' }), slice('web', '8080', 'pod-c')],
    `
    pod-b     tcp 10.96.1.1:80         -> drop
    node1     tcp 10.96.1.1:80         -> drop
    client    tcp 10.96.1.1:80         -> drop
    client    tcp 192.168.100.2:30080  -> pod-c*
    pod-b     tcp 192.168.100.2:30080  -> pod-c*
    `,
  ),
  scenario(
    'both policies Local',
    [
      inner({ type: 'NodePort', ports: '80:30080', externalTrafficPolicy: 'Local' }),
      slice('web', '8080', 'pod-a', 'pod-c'),
    ],
    `
    pod-b     tcp 10.96.1.1:80         -> pod-a
    client    tcp 10.96.1.1:80         -> pod-a*
    client    tcp 192.168.100.2:30080  -> pod-a
    pod-b     tcp 192.168.100.2:30080  -> pod-a pod-c
    node1     tcp 192.168.100.2:30080  -> pod-a* pod-c*
    `,
  ),
  scenario(
    'both policies Local, endpoints elsewhere only',
    [
      inner({ type: 'NodePort', ports: '80:30080', externalTrafficPolicy: 'Local' }),
      slice('web', '8080', 'pod-c'),
    ],
    `
    pod-b     tcp 10.96.1.1:80         -> drop
    client    tcp 192.168.100.2:30080  -> drop
    pod-b     tcp 192.168.100.2:30080  -> pod-c
    node1     tcp 192.168.100.2:30080  -> pod-c*
    `,
  ),
];
