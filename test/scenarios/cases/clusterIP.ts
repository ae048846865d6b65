import { service, slice } from '../objects.ts';
import { scenario } from '../scenario.ts';

export const CLUSTER_IP = [
  scenario(
    'cluster IP, TCP',
    [service('web', { clusterIP: '10.96.1.1' }), slice('web', '8080', 'pod-a', 'pod-b', 'pod-c')],
    `
    pod-a   tcp 10.96.1.1:80   -> pod-a* pod-b pod-c
    pod-b   tcp 10.96.1.1:80   -> pod-a pod-b* pod-c
    node1   tcp 10.96.1.1:80   -> pod-a* pod-b* pod-c*
    client  tcp 10.96.1.1:80   -> pod-a* pod-b* pod-c*
    client  tcp 10.96.1.1:81   -> pass
    client  udp 10.96.1.1:80   -> pass
    pod-a   tcp 10.96.1.9:80   -> pass
    `,
  ),
  scenario(
    'cluster IP without endpoints',
    [service('web', { clusterIP: '10.96.1.1' })],
    `
    pod-a   tcp 10.96.1.1:80   -> reject
    node1   tcp 10.96.1.1:80   -> reject
    client  tcp 10.96.1.1:80   -> reject
    client  udp 10.96.1.1:80   -> pass
    `,
  ),
];
