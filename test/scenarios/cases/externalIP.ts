import { service, slice } from '../objects.ts';
import { scenario } from '../scenario.ts';

const web = service('web', { clusterIP: '10.96.1.1', externalIPs: ['203.0.113.1', '203.0.113.2'] });
const webLocal = service('web', {
  clusterIP: '10.96.1.1',
  externalIPs: ['203.0.113.1'],
  externalTrafficPolicy: 'Local',
});

export const EXTERNAL_IP = [
  scenario(
    'external IP, policy Cluster',
    [web, slice('web', '8080', 'pod-a', 'pod-c')],
    `
    client  tcp 203.0.113.1:80  -> pod-a* pod-c*
    client  tcp 203.0.113.2:80  -> pod-a* pod-c*
    pod-a   tcp 203.0.113.1:80  -> pod-a* pod-c*
    pod-b   tcp 203.0.113.1:80  -> pod-a* pod-c*
    node1   tcp 203.0.113.1:80  -> pod-a* pod-c*
    pod-b   tcp 10.96.1.1:80    -> pod-a pod-c
    client  tcp 203.0.113.1:81  -> pass
    client  udp 203.0.113.1:80  -> pass
    `,
  ),
  scenario(
    'external IP, policy Local, endpoints here and elsewhere',
    [webLocal, slice('web', '8080', 'pod-a', 'pod-b', 'pod-c')],
    `
    client  tcp 203.0.113.1:80  -> pod-a pod-b
    pod-a   tcp 203.0.113.1:80  -> pod-a* pod-b pod-c
    pod-c   tcp 203.0.113.1:80  -> pod-a pod-b pod-c*
    node1   tcp 203.0.113.1:80  -> pod-a* pod-b* pod-c*
    client  tcp 10.96.1.1:80    -> pod-a* pod-b* pod-c*
    `,
  ),
  scenario(
    'external IP, policy Local, endpoints elsewhere only',
    [webLocal, slice('web', '8080', 'pod-c')],
    `
    client  tcp 203.0.113.1:80  -> drop
    pod-a   tcp 203.0.113.1:80  -> pod-c
    node1   tcp 203.0.113.1:80  -> pod-c*
    client  tcp 10.96.1.1:80    -> pod-c*
    `,
  ),
  scenario(
    'external IP without endpoints',
    [web],
    `
    client  tcp 203.0.113.1:80  -> reject
    pod-a   tcp 203.0.113.2:80  -> reject
    node1   tcp 203.0.113.1:80  -> reject
    client  udp 203.0.113.1:80  -> pass
    `,
  ),
  scenario(
    "an external IP that is the node's own address",
    [
      service('web', { clusterIP: '10.96.1.1', ports: '85', externalIPs: ['192.168.100.2'] }),
      service('api', { clusterIP: '10.96.1.4', ports: '86', externalIPs: ['192.168.100.2'] }),
      slice('web', '8080', 'pod-a', 'pod-c'),
    ],
    `
    client  tcp 192.168.100.2:85  -> pod-a* pod-c*
    node1   tcp 192.168.100.2:85  -> pod-a* pod-c*
    client  tcp 192.168.100.2:86  -> reject
    node1   tcp 192.168.100.2:86  -> reject
    client  tcp 192.0.2.1:85      -> pass
    `,
  ),
  scenario(
    'policy Local means nothing where nothing is external',
    [
      service('web', { clusterIP: '10.96.1.1', externalTrafficPolicy: 'Local' }),
      slice('web', '8080', 'pod-c', 'pod-d'),
    ],
    `
    pod-a   tcp 10.96.1.1:80  -> pod-c pod-d
    client  tcp 10.96.1.1:80  -> pod-c* pod-d*
    `,
  ),
  scenario(
    'policy Local means nothing for a service of type ClusterIP without external IPs, node port or not',
    [
      service('web', { clusterIP: '10.96.1.1', ports: '80:30080', externalTrafficPolicy: 'Local' }),
      slice('web', '8080', 'pod-a', 'pod-c'),
    ],
    `
    client  tcp 192.168.100.2:30080  -> pod-a* pod-c*
    pod-b   tcp 192.168.100.2:30080  -> pod-a* pod-c*
    node1   tcp 192.168.100.2:30080  -> pod-a* pod-c*
    `,
  ),
  scenario(
    'an address that a service names twice is what it was named first',
    [
      service('web', {
        clusterIP: '10.96.1.1',
        externalIPs: ['10.96.1.1', '203.0.113.1'],
        loadBalancerIPs: ['203.0.113.1', '203.0.113.2'],
      }),
      slice('web', '8080', 'pod-a', 'pod-c'),
    ],
    `
    pod-b   tcp 10.96.1.1:80     -> pod-a pod-c
    client  tcp 203.0.113.1:80   -> pod-a* pod-c*
    client  tcp 203.0.113.2:80   -> pod-a* pod-c*
    `,
  ),
  scenario(
    'source ranges hold where an address of the load balancer is an external IP too',
    [
      service('web', {
        clusterIP: '10.96.1.1',
        type: 'LoadBalancer',
        ports: '80:30080',
        externalIPs: ['203.0.113.40', '203.0.113.41'],
        loadBalancerIPs: ['203.0.113.40'],
        sourceRanges: ['198.18.0.0/24'],
      }),
      slice('web', '8080', 'pod-a', 'pod-c'),
    ],
    `
    client  tcp 203.0.113.40:80                   -> drop
    client  tcp 203.0.113.40:80 from 198.18.0.10  -> pod-a* pod-c*
    pod-b   tcp 203.0.113.40:80                   -> drop
    node1   tcp 203.0.113.40:80                   -> drop
    client  tcp 203.0.113.41:80                   -> pod-a* pod-c*
    client  tcp 192.168.100.2:30080               -> pod-a* pod-c*
    `,
  ),
];
