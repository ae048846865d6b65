import { service, slice } from '../objects.ts';
import { scenario } from '../scenario.ts';

const web = service('web', { clusterIP: '10.96.1.1', type: 'NodePort', ports: '80:30080' });
const webLocal = service('web', {
  clusterIP: '10.96.1.1',
  type: 'NodePort',
  ports: '80:30080',
  externalTrafficPolicy: 'Local',
});

export const NODE_PORT = [
  scenario(
    'node port, policy Cluster',
    [web, slice('web', '8080', 'pod-a', 'pod-b', 'pod-c')],
    `
    client    tcp 192.168.100.2:30080  -> pod-a* pod-b* pod-c*
    client    tcp 192.0.2.1:30080      -> pod-a* pod-b* pod-c*
    client    tcp 10.244.1.1:30080     -> pod-a* pod-b* pod-c*
    pod-a     tcp 192.168.100.2:30080  -> pod-a* pod-b* pod-c*
    pod-c     tcp 192.168.100.2:30080  -> pod-a* pod-b* pod-c*
    node1     tcp 192.168.100.2:30080  -> pod-a* pod-b* pod-c*
    node1     tcp 192.0.2.1:30080      -> pod-a* pod-b* pod-c*
    loopback  tcp 127.0.0.1:30080      -> pod-a* pod-b* pod-c*
    loopback  tcp 127.1.2.3:30080      -> pod-a* pod-b* pod-c*
    client    tcp 10.96.1.1:80         -> pod-a* pod-b* pod-c*
    client    tcp 10.96.1.1:30080      -> pass
    client    tcp 192.168.100.2:80     -> pass
    client    udp 192.168.100.2:30080  -> pass
    client    tcp 192.168.100.3:30080  -> pass
    `,
  ),
  scenario(
    'node port, policy Cluster, all endpoints elsewhere',
    [web, slice('web', '8080', 'pod-c', 'pod-d')],
    `
    client    tcp 192.168.100.2:30080  -> pod-c* pod-d*
    pod-a     tcp 192.168.100.2:30080  -> pod-c* pod-d*
    node1     tcp 192.168.100.2:30080  -> pod-c* pod-d*
    loopback  tcp 127.0.0.1:30080      -> pod-c* pod-d*
    `,
  ),
  scenario(
    'node port, UDP',
    [
      service('dns', { clusterIP: '10.96.1.2', type: 'NodePort', ports: '53:30053/UDP' }),
      slice('dns', '53/UDP', 'pod-a', 'pod-c'),
    ],
    `
    client    udp 192.168.100.2:30053  -> pod-a* pod-c*
    pod-b     udp 192.168.100.2:30053  -> pod-a* pod-c*
    node1     udp 192.168.100.2:30053  -> pod-a* pod-c*
    loopback  udp 127.0.0.1:30053      -> pod-a* pod-c*
    client    tcp 192.168.100.2:30053  -> pass
    `,
  ),
  scenario(
    'node port, policy Local, endpoints here and elsewhere',
    [webLocal, slice('web', '8080', 'pod-a', 'pod-c')],
    `
    client    tcp 192.168.100.2:30080  -> pod-a
    client    tcp 192.168.100.2:30080 from 198.18.0.10 -> pod-a
    pod-a     tcp 192.168.100.2:30080  -> pod-a* pod-c
    pod-b     tcp 192.168.100.2:30080  -> pod-a pod-c
    pod-c     tcp 192.168.100.2:30080  -> pod-a pod-c*
    node1     tcp 192.168.100.2:30080  -> pod-a* pod-c*
    loopback  tcp 127.0.0.1:30080      -> pod-a* pod-c*
    pod-b     tcp 10.96.1.1:80         -> pod-a pod-c
    client    tcp 10.96.1.1:80         -> pod-a* pod-c*
    `,
  ),
  scenario(
    'node port, policy Local, endpoints elsewhere only',
    [webLocal, slice('web', '8080', 'pod-c', 'pod-d')],
    `
    client    tcp 192.168.100.2:30080  -> drop
    pod-a     tcp 192.168.100.2:30080  -> pod-c pod-d
    node1     tcp 192.168.100.2:30080  -> pod-c* pod-d*
    loopback  tcp 127.0.0.1:30080      -> pod-c* pod-d*
    client    tcp 10.96.1.1:80         -> pod-c* pod-d*
    `,
  ),
  scenario(
    'node port, policy Local, an endpoint whose node is unknown is not here',
    [webLocal, slice('web', '8080', 'pod-a no-node')],
    `
    client    tcp 192.168.100.2:30080  -> drop
    pod-b     tcp 192.168.100.2:30080  -> pod-a
    node1     tcp 192.168.100.2:30080  -> pod-a*
    `,
  ),
  scenario(
    'node port without endpoints',
    [web, service('dns', { clusterIP: '10.96.1.2', type: 'NodePort', ports: '53:30053/UDP' })],
    `
    client    tcp 192.168.100.2:30080  -> reject
    pod-a     tcp 192.168.100.2:30080  -> reject
    node1     tcp 192.168.100.2:30080  -> reject
    loopback  tcp 127.0.0.1:30080      -> reject
    client    tcp 10.96.1.1:80         -> reject
    client    udp 192.168.100.2:30053  -> reject
    node1     udp 192.168.100.2:30053  -> reject
    `,
  ),
  scenario(
    'node port, policy Local, without endpoints',
    [webLocal, slice('web', '8080')],
    `
    client    tcp 192.168.100.2:30080  -> reject
    pod-a     tcp 192.168.100.2:30080  -> reject
    node1     tcp 192.168.100.2:30080  -> reject
    `,
  ),
];
