import { service, type ServiceFields, slice } from '../objects.ts';
import { scenario } from '../scenario.ts';

const balanced = (fields: Partial<ServiceFields> = {}) =>
  service('web', {
    clusterIP: '10.96.1.1',
    type: 'LoadBalancer',
    ports: '80:30080',
    loadBalancerIPs: ['203.0.113.50'],
    ...fields,
  });
const hereAndElsewhere = slice('web', '8080', 'pod-a', 'pod-c');

export const LOAD_BALANCER = [
  scenario(
    'load balancer, policy Cluster',
    [balanced({ loadBalancerIPs: ['203.0.113.50', '203.0.113.51'] }), hereAndElsewhere],
    `
    client    tcp 203.0.113.50:80      -> pod-a* pod-c*
    client    tcp 203.0.113.51:80      -> pod-a* pod-c*
    pod-b     tcp 203.0.113.50:80      -> pod-a* pod-c*
    node1     tcp 203.0.113.50:80      -> pod-a* pod-c*
    client    tcp 192.168.100.2:30080  -> pod-a* pod-c*
    client    tcp 203.0.113.50:30080   -> pass
    client    udp 203.0.113.50:80      -> pass
    `,
  ),
  scenario(
    'load balancer, policy Local, endpoints here and elsewhere',
    [balanced({ externalTrafficPolicy: 'Local' }), hereAndElsewhere],
    `
    client    tcp 203.0.113.50:80      -> pod-a
    pod-a     tcp 203.0.113.50:80      -> pod-a* pod-c
    pod-b     tcp 203.0.113.50:80      -> pod-a pod-c
    node1     tcp 203.0.113.50:80      -> pod-a* pod-c*
    client    tcp 192.168.100.2:30080  -> pod-a
    client    tcp 10.96.1.1:80         -> pod-a* pod-c*
    `,
  ),
  scenario(
    'load balancer, policy Local, endpoints elsewhere only',
    [balanced({ externalTrafficPolicy: 'Local' }), slice('web', '8080', 'pod-c', 'pod-d')],
    `
    client    tcp 203.0.113.50:80      -> drop
    pod-a     tcp 203.0.113.50:80      -> pod-c pod-d
    node1     tcp 203.0.113.50:80      -> pod-c* pod-d*
    client    tcp 192.168.100.2:30080  -> drop
    `,
  ),
  scenario(
    'load balancer without endpoints',
    [balanced()],
    `
    client    tcp 203.0.113.50:80      -> reject
    pod-a     tcp 203.0.113.50:80      -> reject
    node1     tcp 203.0.113.50:80      -> reject
    client    tcp 192.168.100.2:30080  -> reject
    `,
  ),
  scenario(
    'source ranges: a client within, one without, the node within, pods without',
    [
      balanced({ sourceRanges: [' 198.18.0.0/24 ', '192.168.100.2/32'], externalIPs: ['203.0.113.60'] }),
      hereAndElsewhere,
    ],
    `
    client    tcp 203.0.113.50:80 from 198.18.0.10   -> pod-a* pod-c*
    client    tcp 203.0.113.50:80                    -> drop
    pod-b     tcp 203.0.113.50:80                    -> drop
    node1     tcp 203.0.113.50:80                    -> pod-a* pod-c*
    node1     tcp 203.0.113.50:80 from 10.244.1.1    -> drop
    node1     tcp 203.0.113.50:80 from 203.0.113.50  -> pod-a* pod-c* (rules only)
    # only load-balancer addresses are guarded
    client    tcp 192.168.100.2:30080                -> pod-a* pod-c*
    client    tcp 203.0.113.60:80                    -> pod-a* pod-c*
    client    tcp 10.96.1.1:80                       -> pod-a* pod-c*
    pod-b     tcp 10.96.1.1:80                       -> pod-a pod-c
    `,
  ),
  scenario(
    'source ranges without the node',
    [balanced({ sourceRanges: ['198.18.0.0/24', '10.244.1.0/24'] }), hereAndElsewhere],
    `
    client    tcp 203.0.113.50:80 from 198.18.0.10   -> pod-a* pod-c*
    client    tcp 203.0.113.50:80                    -> drop
    pod-b     tcp 203.0.113.50:80                    -> pod-a* pod-c*
    pod-d     tcp 203.0.113.50:80                    -> drop
    node1     tcp 203.0.113.50:80                    -> drop
    node1     tcp 203.0.113.50:80 from 203.0.113.50  -> drop (rules only)
    `,
  ),
  scenario(
    'source ranges and policy Local',
    [
      balanced({ sourceRanges: ['198.18.0.0/24', '10.244.0.0/16'], externalTrafficPolicy: 'Local' }),
      hereAndElsewhere,
    ],
    `
    client    tcp 203.0.113.50:80 from 198.18.0.10   -> pod-a
    client    tcp 203.0.113.50:80                    -> drop
    pod-b     tcp 203.0.113.50:80                    -> pod-a pod-c
    node1     tcp 203.0.113.50:80                    -> drop
    client    tcp 192.168.100.2:30080                -> pod-a
    `,
  ),
  scenario(
    'source ranges, policy Local, endpoints elsewhere only',
    [
      balanced({ sourceRanges: ['198.18.0.0/24', '10.244.0.0/16'], externalTrafficPolicy: 'Local' }),
      slice('web', '8080', 'pod-c'),
    ],
    `
    client    tcp 203.0.113.50:80 from 198.18.0.10   -> drop
    client    tcp 203.0.113.50:80                    -> drop
    pod-b     tcp 203.0.113.50:80                    -> pod-c
    `,
  ),
  scenario(
    'source ranges without endpoints refuse everybody alike',
    [balanced({ sourceRanges: ['198.18.0.0/24'] })],
    `
    client    tcp 203.0.113.50:80 from 198.18.0.10   -> reject
    client    tcp 203.0.113.50:80                    -> reject
    pod-a     tcp 203.0.113.50:80                    -> reject
    `,
  ),
  scenario(
    'one range of everything makes all the others pointless',
    [balanced({ sourceRanges: ['198.18.0.0/24', '0.0.0.0/0'] }), hereAndElsewhere],
    `
    client    tcp 203.0.113.50:80  -> pod-a* pod-c*
    pod-b     tcp 203.0.113.50:80  -> pod-a* pod-c*
    `,
  ),
  scenario(
    'ranges of the other family alone restrict nobody',
    [balanced({ sourceRanges: ['2001:db8:2::/64'] }), hereAndElsewhere],
    `
    client    tcp 203.0.113.50:80  -> pod-a* pod-c*
    pod-b     tcp 203.0.113.50:80  -> pod-a* pod-c*
    `,
  ),
  scenario(
    'an ingress of mode Proxy belongs to the load balancer, not to us',
    [
      balanced({ loadBalancerIPs: ['203.0.113.50 ipMode=Proxy', '203.0.113.51 ipMode=VIP', '203.0.113.52'] }),
      hereAndElsewhere,
    ],
    `
    client    tcp 203.0.113.50:80      -> pass
    pod-a     tcp 203.0.113.50:80      -> pass
    node1     tcp 203.0.113.50:80      -> pass
    client    tcp 203.0.113.51:80      -> pod-a* pod-c*
    client    tcp 203.0.113.52:80      -> pod-a* pod-c*
    client    tcp 192.168.100.2:30080  -> pod-a* pod-c*
    `,
  ),
];
