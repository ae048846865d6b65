import { service, slice, slice6 } from '../objects.ts';
import { scenario } from '../scenario.ts';

export const SCTP = [
  scenario(
    'SCTP: cluster IP, beside TCP on the same port',
    [
      service('signal', { clusterIP: '10.96.1.1', ports: 'signal=80/SCTP web=80' }),
      slice('signal', 'signal=8080/SCTP', 'pod-a', 'pod-c'),
      slice('signal', 'web=8081', 'pod-b'),
    ],
    `
    pod-a   sctp 10.96.1.1:80   -> pod-a:8080* pod-c:8080
    pod-b   sctp 10.96.1.1:80   -> pod-a:8080 pod-c:8080
    node1   sctp 10.96.1.1:80   -> pod-a:8080* pod-c:8080*
    client  sctp 10.96.1.1:80   -> pod-a:8080* pod-c:8080*
    client  sctp 10.96.1.1:80 from 198.18.0.10 -> pod-a:8080* pod-c:8080*
    pod-a   tcp  10.96.1.1:80   -> pod-b:8081
    client  sctp 10.96.1.1:81   -> pass
    client  udp  10.96.1.1:80   -> pass
    `,
  ),
  scenario(
    'SCTP: hairpin, the only endpoint dials its own service',
    [
      service('signal', { clusterIP: '10.96.1.1', type: 'NodePort', ports: '80:30080/SCTP' }),
      slice('signal', '8080/SCTP', 'pod-a'),
    ],
    `
    pod-a   sctp 10.96.1.1:80          -> pod-a*
    pod-a   sctp 192.168.100.2:30080   -> pod-a*
    pod-b   sctp 10.96.1.1:80          -> pod-a
    `,
  ),
  scenario(
    'SCTP: node port, policy Cluster',
    [
      service('signal', { clusterIP: '10.96.1.1', type: 'NodePort', ports: '80:30080/SCTP' }),
      slice('signal', '8080/SCTP', 'pod-a', 'pod-c'),
    ],
    `
    client    sctp 192.168.100.2:30080  -> pod-a* pod-c*
    pod-b     sctp 192.168.100.2:30080  -> pod-a* pod-c*
    node1     sctp 192.168.100.2:30080  -> pod-a* pod-c*
    loopback  sctp 127.0.0.1:30080      -> pod-a* pod-c*
    client    tcp  192.168.100.2:30080  -> pass
    client    sctp 192.168.100.2:80     -> pass
    client    sctp 192.168.100.3:30080  -> pass
    `,
  ),
  scenario(
    'SCTP: load balancer and external IP, policy Local',
    [
      service('signal', {
        clusterIP: '10.96.1.1',
        type: 'LoadBalancer',
        ports: '80:30080/SCTP',
        loadBalancerIPs: ['203.0.113.50'],
        externalIPs: ['203.0.113.60'],
        sourceRanges: ['192.0.2.0/24', '10.244.0.0/16'],
        externalTrafficPolicy: 'Local',
      }),
      slice('signal', '8080/SCTP', 'pod-a', 'pod-c'),
    ],
    `
    client  sctp 203.0.113.50:80                    -> pod-a
    client  sctp 203.0.113.50:80 from 198.18.0.10   -> drop
    client  sctp 203.0.113.60:80 from 198.18.0.10   -> pod-a
    client  sctp 192.168.100.2:30080                -> pod-a
    pod-b   sctp 203.0.113.50:80                    -> pod-a pod-c
    `,
  ),
  scenario(
    'SCTP: policy Local, endpoints elsewhere only',
    [
      service('signal', {
        clusterIP: '10.96.1.1',
        type: 'LoadBalancer',
        ports: '80:30080/SCTP',
        loadBalancerIPs: ['203.0.113.50'],
        externalTrafficPolicy: 'Local',
      }),
      slice('signal', '8080/SCTP', 'pod-c'),
    ],
    `
    client  sctp 203.0.113.50:80       -> drop
    client  sctp 192.168.100.2:30080   -> drop
    client  sctp 10.96.1.1:80          -> pod-c*
    pod-a   sctp 203.0.113.50:80       -> pod-c
    `,
  ),
  scenario(
    'SCTP: a client stays with its endpoint',
    [
      service('signal', {
        clusterIP: '10.96.1.1',
        type: 'NodePort',
        ports: '80:30080/SCTP',
        affinitySeconds: 60,
      }),
      slice('signal', '8080/SCTP', 'pod-a', 'pod-b', 'pod-c'),
    ],
    `
    pod-b   sctp 10.96.1.1:80          -> sticky pod-a pod-b* pod-c
    client  sctp 10.96.1.1:80          -> sticky pod-a* pod-b* pod-c*
    client  sctp 192.168.100.2:30080   -> sticky pod-a* pod-b* pod-c*
    `,
  ),
  scenario(
    'SCTP: without endpoints',
    [
      service('signal', {
        clusterIP: '10.96.1.1',
        type: 'LoadBalancer',
        ports: '80:30080/SCTP',
        loadBalancerIPs: ['203.0.113.50'],
      }),
    ],
    `
    pod-a   sctp 10.96.1.1:80          -> reject
    node1   sctp 10.96.1.1:80          -> reject
    client  sctp 10.96.1.1:80          -> reject
    client  sctp 203.0.113.50:80       -> reject
    client  sctp 192.168.100.2:30080   -> reject
    client  tcp  10.96.1.1:80          -> pass
    `,
  ),
  scenario(
    'SCTP: IPv6',
    [
      service('signal', {
        clusterIP: 'fd00:96::1',
        type: 'NodePort',
        ports: 'signal=80:30080/SCTP none=81/SCTP',
      }),
      slice6('signal', 'signal=8080/SCTP', 'pod-a', 'pod-c'),
    ],
    `
    pod-a   sctp [fd00:96::1]:80       -> pod-a* pod-c
    node1   sctp [fd00:96::1]:80       -> pod-a* pod-c*
    client  sctp [fd00:96::1]:80       -> pod-a* pod-c*
    client  sctp [fd00:100::2]:30080   -> pod-a* pod-c*
    client  sctp [fd00:96::1]:81       -> reject
    client  sctp [fd00:96::1]:82       -> pass
    `,
  ),
];
