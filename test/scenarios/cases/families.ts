/** IPv6, and both families at once. */
import { service, slice, slice6 } from '../objects.ts';
import { scenario } from '../scenario.ts';

export const FAMILY_SCENARIOS = [
  scenario(
    'IPv6: cluster IP',
    [
      service('web', { clusterIP: 'fd00:96::1', ports: 'http=80 dns=53/UDP' }),
      slice6('web', 'http=8080 dns=53/UDP', 'pod-a', 'pod-b', 'pod-c'),
      service('empty', { clusterIP: 'fd00:96::2', ports: '80 dns=53/UDP' }),
    ],
    `
    pod-a   tcp [fd00:96::1]:80  -> pod-a* pod-b pod-c
    node1   tcp [fd00:96::1]:80  -> pod-a* pod-b* pod-c*
    client  tcp [fd00:96::1]:80  -> pod-a* pod-b* pod-c*
    pod-a   udp [fd00:96::1]:53  -> pod-a* pod-b pod-c
    client  udp [fd00:96::1]:53  -> pod-a* pod-b* pod-c*
    client  tcp [fd00:96::1]:53  -> pass
    pod-a   tcp [fd00:96::2]:80  -> reject
    node1   tcp [fd00:96::2]:80  -> reject
    client  tcp [fd00:96::2]:80  -> reject
    client  udp [fd00:96::2]:53  -> reject
    client  tcp [fd00:96::9]:80  -> pass
    `,
  ),
  scenario(
    'IPv6: node port, policies Cluster and Local, not on loopback',
    [
      service('web', { clusterIP: 'fd00:96::1', type: 'NodePort', ports: '80:30080' }),
      slice6('web', '8080', 'pod-a', 'pod-c'),
      service('local', {
        clusterIP: 'fd00:96::2',
        type: 'NodePort',
        ports: '80:30081',
        externalTrafficPolicy: 'Local',
      }),
      slice6('local', '8080', 'pod-a', 'pod-c'),
      service('remote', {
        clusterIP: 'fd00:96::3',
        type: 'NodePort',
        ports: '80:30082',
        externalTrafficPolicy: 'Local',
      }),
      slice6('remote', '8080', 'pod-c'),
      service('empty', { clusterIP: 'fd00:96::4', type: 'NodePort', ports: '80:30083' }),
    ],
    `
    client    tcp [fd00:100::2]:30080    -> pod-a* pod-c*
    client    tcp [2001:db8:1::1]:30080  -> pod-a* pod-c*
    pod-b     tcp [fd00:100::2]:30080    -> pod-a* pod-c*
    node1     tcp [fd00:100::2]:30080    -> pod-a* pod-c*
    loopback  tcp [::1]:30080            -> pass
    client    tcp [fd00:100::2]:30081    -> pod-a
    pod-a     tcp [fd00:100::2]:30081    -> pod-a* pod-c
    node1     tcp [fd00:100::2]:30081    -> pod-a* pod-c*
    client    tcp [fd00:100::2]:30082    -> drop
    pod-a     tcp [fd00:100::2]:30082    -> pod-c
    node1     tcp [fd00:100::2]:30082    -> pod-c*
    loopback  tcp [::1]:30082            -> pass
    client    tcp [fd00:100::2]:30083    -> reject
    node1     tcp [fd00:100::2]:30083    -> reject
    loopback  tcp [::1]:30083            -> pass
    `,
  ),
  scenario(
    'IPv6: external IP and load balancer with source ranges',
    [
      service('web', {
        clusterIP: 'fd00:96::1',
        type: 'LoadBalancer',
        externalIPs: ['2001:db8:113::1'],
        loadBalancerIPs: ['2001:db8:113::50'],
        sourceRanges: ['2001:db8:2::/64', 'fd00:100::/64'],
        ports: '80:30080',
      }),
      slice6('web', '8080', 'pod-a', 'pod-c'),
      service('local', {
        clusterIP: 'fd00:96::2',
        type: 'LoadBalancer',
        loadBalancerIPs: ['2001:db8:113::51'],
        externalTrafficPolicy: 'Local',
      }),
      slice6('local', '8080', 'pod-a', 'pod-c'),
      service('empty', { clusterIP: 'fd00:96::3', externalIPs: ['2001:db8:113::3'] }),
    ],
    `
    client  tcp [2001:db8:113::1]:80                         -> pod-a* pod-c*
    client  tcp [2001:db8:113::50]:80 from 2001:db8:2::10    -> pod-a* pod-c*
    client  tcp [2001:db8:113::50]:80                        -> drop
    pod-b   tcp [2001:db8:113::50]:80                        -> drop
    node1   tcp [2001:db8:113::50]:80                        -> pod-a* pod-c*
    client  tcp [fd00:100::2]:30080                          -> pod-a* pod-c*
    client  tcp [2001:db8:113::51]:80                        -> pod-a
    pod-b   tcp [2001:db8:113::51]:80                        -> pod-a pod-c
    client  tcp [2001:db8:113::3]:80                         -> reject
    node1   tcp [2001:db8:113::3]:80                         -> reject
    `,
  ),
  scenario(
    'IPv6: internal policy Local, affinity, terminating',
    [
      service('local', { clusterIP: 'fd00:96::1', internalTrafficPolicy: 'Local' }),
      slice6('local', '8080', 'pod-a', 'pod-c'),
      service('remote', { clusterIP: 'fd00:96::2', internalTrafficPolicy: 'Local' }),
      slice6('remote', '8080', 'pod-c'),
      service('sticky', { clusterIP: 'fd00:96::3', affinitySeconds: 60 }),
      slice6('sticky', '8080', 'pod-a', 'pod-b', 'pod-c'),
      service('ending', { clusterIP: 'fd00:96::4' }),
      slice6('ending', '8080', 'pod-a terminating', 'pod-c terminating'),
    ],
    `
    pod-b   tcp [fd00:96::1]:80                      -> pod-a
    client  tcp [fd00:96::1]:80                      -> pod-a*
    pod-b   tcp [fd00:96::2]:80                      -> drop
    client  tcp [fd00:96::2]:80                      -> drop
    client  tcp [fd00:96::3]:80                      -> sticky pod-a* pod-b* pod-c*
    client  tcp [fd00:96::3]:80 from 2001:db8:2::10  -> sticky pod-a* pod-b* pod-c*
    pod-a   tcp [fd00:96::3]:80                      -> sticky pod-a* pod-b pod-c
    client  tcp [fd00:96::4]:80                      -> pod-a* pod-c*
    `,
  ),
  scenario(
    'both families: each has its own addresses and endpoints',
    [
      service('web', {
        clusterIP: '10.96.1.1 fd00:96::1',
        type: 'LoadBalancer',
        ports: '80:30080',
        externalIPs: ['203.0.113.1', '2001:db8:113::1'],
        loadBalancerIPs: ['203.0.113.50', '2001:db8:113::50'],
        sourceRanges: ['198.18.0.0/24', ' 2001:db8:1::/64'],
      }),
      slice('web', '8080', 'pod-a', 'pod-c'),
      slice6('web', '8080', 'pod-b', 'pod-c'),
    ],
    `
    pod-a   tcp 10.96.1.1:80                         -> pod-a* pod-c
    pod-a   tcp [fd00:96::1]:80                      -> pod-b pod-c
    client  tcp 203.0.113.1:80                       -> pod-a* pod-c*
    client  tcp [2001:db8:113::1]:80                 -> pod-b* pod-c*
    client  tcp 192.168.100.2:30080                  -> pod-a* pod-c*
    client  tcp [fd00:100::2]:30080                  -> pod-b* pod-c*
    client  tcp 203.0.113.50:80 from 198.18.0.10     -> pod-a* pod-c*
    client  tcp 203.0.113.50:80                      -> drop
    client  tcp [2001:db8:113::50]:80                -> pod-b* pod-c*
    client  tcp [2001:db8:113::50]:80 from 2001:db8:2::10 -> drop
    `,
  ),
  scenario(
    'both families: endpoints in one of them only',
    [
      service('web', { clusterIP: 'fd00:96::1 10.96.1.1', type: 'NodePort', ports: '80:30080' }),
      slice6('web', '8080', 'pod-a', 'pod-c'),
    ],
    `
    pod-b   tcp [fd00:96::1]:80      -> pod-a pod-c
    client  tcp [fd00:100::2]:30080  -> pod-a* pod-c*
    pod-b   tcp 10.96.1.1:80         -> reject
    client  tcp 192.168.100.2:30080  -> reject
    `,
  ),
  scenario(
    'a service of one family has nothing in the other, load-balancer addresses or not',
    [
      service('web', {
        clusterIP: 'fd00:96::1',
        type: 'LoadBalancer',
        ports: '80:30080',
        loadBalancerIPs: ['203.0.113.50', '2001:db8:113::50'],
      }),
      slice('web', '8080', 'pod-a'),
      slice6('web', '8080', 'pod-c'),
    ],
    `
    client  tcp [2001:db8:113::50]:80  -> pod-c*
    client  tcp 203.0.113.50:80        -> pass
    client  tcp 192.168.100.2:30080    -> pass
    `,
  ),
];
