import { service, slice } from '../objects.ts';
import { scenario } from '../scenario.ts';

export const AFFINITY = [
  scenario(
    'a client stays with its endpoint',
    [
      service('web', {
        clusterIP: '10.96.1.1',
        type: 'NodePort',
        ports: '80:30080',
        affinitySeconds: 10_800,
      }),
      service('dns', { clusterIP: '10.96.1.2', ports: '53/UDP', affinitySeconds: 60 }),
      slice('web', '8080', 'pod-a', 'pod-b', 'pod-c'),
      slice('dns', '53/UDP', 'pod-a', 'pod-c', 'pod-d'),
    ],
    `
    pod-a     tcp 10.96.1.1:80                        -> sticky pod-a* pod-b pod-c
    node1     tcp 10.96.1.1:80                        -> sticky pod-a* pod-b* pod-c*
    client    tcp 10.96.1.1:80                        -> sticky pod-a* pod-b* pod-c*
    client    tcp 10.96.1.1:80 from 198.18.0.10       -> sticky pod-a* pod-b* pod-c*
    client    tcp 192.168.100.2:30080                 -> sticky pod-a* pod-b* pod-c*
    loopback  tcp 127.0.0.1:30080                     -> sticky pod-a* pod-b* pod-c*
    client    udp 10.96.1.2:53                        -> sticky pod-a* pod-c* pod-d*
    pod-b     udp 10.96.1.2:53                        -> sticky pod-a pod-c pod-d
    `,
  ),
  scenario(
    'a client stays with its endpoint, policy Local',
    [
      service('web', {
        clusterIP: '10.96.1.1',
        type: 'LoadBalancer',
        ports: '80:30080',
        loadBalancerIPs: ['203.0.113.50'],
        externalTrafficPolicy: 'Local',
        affinitySeconds: 60,
      }),
      slice('web', '8080', 'pod-a', 'pod-b', 'pod-c'),
    ],
    `
    client    tcp 203.0.113.50:80       -> sticky pod-a pod-b
    client    tcp 192.168.100.2:30080   -> sticky pod-a pod-b
    pod-b     tcp 203.0.113.50:80       -> sticky pod-a pod-b* pod-c
    node1     tcp 203.0.113.50:80       -> sticky pod-a* pod-b* pod-c*
    `,
  ),
];
