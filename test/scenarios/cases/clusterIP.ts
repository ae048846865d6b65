import { service, slice } from '../objects.ts';
import { scenario } from '../scenario.ts';

export const CLUSTER_IP = [
  scenario(
    'cluster IP, TCP',
    [service('web', { clusterIP: '10.96.1.1' }), slice('web', '8080', 'pod-a', 'pod-b', 'pod-c')],
    `
    pod-a   tcp 10.96.1.1:80   -> pod-a* pod-b pod-c
    pod-b   tcp 10.96.1.1:80   -> pod-a pod-b* pod-c
    pod-c   tcp 10.96.1.1:80   -> pod-a pod-b pod-c*
    node1   tcp 10.96.1.1:80   -> pod-a* pod-b* pod-c*
    node2   tcp 10.96.1.1:80   -> pod-a* pod-b* pod-c*
    client  tcp 10.96.1.1:80   -> pod-a* pod-b* pod-c*
    client  tcp 10.96.1.1:80 from 198.18.0.10 -> pod-a* pod-b* pod-c*
    client  tcp 10.96.1.1:81   -> pass
    client  udp 10.96.1.1:80   -> pass
    pod-a   tcp 10.96.1.9:80   -> pass
    node1   tcp 10.96.1.9:80   -> pass
    `,
  ),
  scenario(
    'cluster IP, UDP',
    [
      service('dns', { clusterIP: '10.96.1.2', ports: '53/UDP' }),
      slice('dns', '53/UDP', 'pod-a', 'pod-b', 'pod-d'),
    ],
    `
    pod-a   udp 10.96.1.2:53   -> pod-a* pod-b pod-d
    node1   udp 10.96.1.2:53   -> pod-a* pod-b* pod-d*
    client  udp 10.96.1.2:53   -> pod-a* pod-b* pod-d*
    client  tcp 10.96.1.2:53   -> pass
    `,
  ),
  scenario(
    'cluster IP without endpoints',
    [
      service('web', { clusterIP: '10.96.1.1' }),
      service('dns', { clusterIP: '10.96.1.2', ports: '53/UDP' }),
      slice('dns', '53/UDP'),
    ],
    `
    pod-a   tcp 10.96.1.1:80   -> reject
    node1   tcp 10.96.1.1:80   -> reject
    client  tcp 10.96.1.1:80   -> reject
    client  udp 10.96.1.1:80   -> pass
    pod-a   udp 10.96.1.2:53   -> reject
    node1   udp 10.96.1.2:53   -> reject
    client  udp 10.96.1.2:53   -> reject
    `,
  ),
  scenario(
    'several ports and protocols on one address',
    [
      service('all', { clusterIP: '10.96.1.3', ports: 'http=80 admin=81 dns=53/UDP dns-tcp=53 quic=80/UDP' }),
      slice('all', 'http=8080 admin=8081 dns=53/UDP', 'pod-a', 'pod-c'),
      slice('all', 'dns-tcp=9090', 'pod-b'),
    ],
    `
    pod-b   tcp 10.96.1.3:80   -> pod-a:8080 pod-c:8080
    pod-b   tcp 10.96.1.3:81   -> pod-a:8081 pod-c:8081
    pod-b   udp 10.96.1.3:53   -> pod-a:53 pod-c:53
    pod-b   tcp 10.96.1.3:53   -> pod-b:9090*
    pod-b   udp 10.96.1.3:80   -> reject
    pod-b   udp 10.96.1.3:81   -> pass
    `,
  ),
  scenario(
    'hairpin: the only endpoint dials its own service',
    [
      service('web', { clusterIP: '10.96.1.1', type: 'NodePort', ports: '80:30080' }),
      slice('web', '8080', 'pod-a'),
    ],
    `
    pod-a   tcp 10.96.1.1:80          -> pod-a*
    pod-a   tcp 192.168.100.2:30080   -> pod-a*
    pod-b   tcp 10.96.1.1:80          -> pod-a
    `,
  ),
  scenario(
    'an endpoint in the network of its node',
    [
      service('web', { clusterIP: '10.96.1.1', type: 'NodePort', ports: '80:30080' }),
      slice('web', '9999', 'node1', 'node2'),
    ],
    // What is delivered on node1 itself never leaves it, so there is nothing to masquerade.
    `
    pod-a   tcp 10.96.1.1:80          -> node1 node2
    node1   tcp 10.96.1.1:80          -> node1* node2*
    client  tcp 10.96.1.1:80          -> node1 node2*
    client  tcp 192.168.100.2:30080   -> node1 node2*
    node2   tcp 10.96.1.1:80          -> node1 node2*
    `,
  ),
  scenario(
    'addresses with leading zeros are decimal',
    [
      service('web', {
        clusterIP: '10.96.01.011',
        externalIPs: ['203.000.113.007'],
        loadBalancerIPs: ['203.0.113.008'],
        sourceRanges: ['198.018.000.000/024'],
      }),
      slice('web', '8080', 'pod-a'),
    ],
    `
    pod-b   tcp 10.96.1.11:80                      -> pod-a
    client  tcp 203.0.113.7:80                     -> pod-a*
    client  tcp 203.0.113.8:80 from 198.18.0.10    -> pod-a*
    client  tcp 203.0.113.8:80                     -> drop
    `,
  ),
];
