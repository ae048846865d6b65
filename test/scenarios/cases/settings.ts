/** What the node's own settings change. */
import { service, slice, slice6 } from '../objects.ts';
import { scenario } from '../scenario.ts';

const web = service('web', { clusterIP: '10.96.1.1', type: 'NodePort', ports: '80:30080' });
const local = service('local', {
  clusterIP: '10.96.1.2',
  type: 'NodePort',
  ports: '80:30081',
  externalTrafficPolicy: 'Local',
});
const both = [web, local, slice('web', '8080', 'pod-a', 'pod-c'), slice('local', '8080', 'pod-a', 'pod-c')];
const empty = service('empty', { clusterIP: '10.96.1.3', type: 'NodePort', ports: '80:30082' });
const remote = service('remote', {
  clusterIP: '10.96.1.4',
  type: 'NodePort',
  ports: '80:30083',
  externalTrafficPolicy: 'Local',
});

export const SETTINGS = [
  scenario(
    'pods are told by their bridge',
    both,
    `
    pod-b     tcp 10.96.1.1:80         -> pod-a pod-c
    pod-d     tcp 10.96.1.1:80         -> pod-a* pod-c*
    node1     tcp 10.96.1.1:80         -> pod-a* pod-c*
    client    tcp 10.96.1.1:80         -> pod-a* pod-c*
    pod-b     tcp 192.168.100.2:30081  -> pod-a pod-c
    pod-d     tcp 192.168.100.2:30081  -> pod-a
    node1     tcp 192.168.100.2:30081  -> pod-a* pod-c*
    loopback  tcp 127.0.0.1:30081      -> pod-a* pod-c*
    client    tcp 192.168.100.2:30081  -> pod-a
    `,
    { detectLocal: { mode: 'BridgeInterface', name: 'cni0' } },
  ),
  scenario(
    'pods are told by the beginning of their interface',
    both,
    `
    pod-b     tcp 10.96.1.1:80         -> pod-a pod-c
    pod-d     tcp 10.96.1.1:80         -> pod-a* pod-c*
    client    tcp 10.96.1.1:80         -> pod-a* pod-c*
    pod-b     tcp 192.168.100.2:30081  -> pod-a pod-c
    client    tcp 192.168.100.2:30081  -> pod-a
    `,
    { detectLocal: { mode: 'InterfaceNamePrefix', prefix: 'cn' } },
  ),
  scenario(
    "pods are told by the node's own range",
    both,
    `
    pod-b     tcp 10.96.1.1:80         -> pod-a pod-c
    pod-d     tcp 10.96.1.1:80         -> pod-a* pod-c*
    client    tcp 10.96.1.1:80         -> pod-a* pod-c*
    pod-b     tcp 192.168.100.2:30081  -> pod-a pod-c
    pod-d     tcp 192.168.100.2:30081  -> pod-a
    `,
    { detectLocal: { mode: 'NodeCIDR' } },
  ),
  scenario(
    'node ports on some addresses only',
    [...both, empty, remote, slice('remote', '8080', 'pod-c')],
    `
    client    tcp 192.168.100.2:30080  -> pod-a* pod-c*
    client    tcp 192.0.2.1:30080      -> pass
    pod-b     tcp 10.244.1.1:30080     -> pass
    node1     tcp 192.168.100.2:30080  -> pod-a* pod-c*
    node1     tcp 192.0.2.1:30080      -> pass
    loopback  tcp 127.0.0.1:30080      -> pass
    client    tcp 192.168.100.2:30081  -> pod-a
    client    tcp 192.0.2.1:30081      -> pass
    client    tcp 10.96.1.1:80         -> pod-a* pod-c*
    client    tcp 192.168.100.2:30082  -> reject
    client    tcp 192.0.2.1:30082      -> pass
    node1     tcp 192.0.2.1:30082      -> pass
    loopback  tcp 127.0.0.1:30082      -> pass
    client    tcp 192.168.100.2:30083  -> drop
    client    tcp 192.0.2.1:30083      -> pass
    pod-b     tcp 10.244.1.1:30083     -> pass
    node1     tcp 192.168.100.2:30083  -> pod-c*
    loopback  tcp 127.0.0.1:30083      -> pass
    `,
    { nodePortAddresses: ['192.168.100.0/24'] },
  ),
  scenario(
    'node ports on some addresses of one family: the other answers everywhere',
    [
      service('web', { clusterIP: '10.96.1.1 fd00:96::1', type: 'NodePort', ports: '80:30080' }),
      slice('web', '8080', 'pod-a'),
      slice6('web', '8080', 'pod-a'),
    ],
    `
    client    tcp 192.0.2.1:30080          -> pod-a*
    client    tcp 192.168.100.2:30080      -> pod-a*
    client    tcp [2001:db8:1::1]:30080    -> pod-a*
    client    tcp [fd00:100::2]:30080      -> pass
    `,
    { nodePortAddresses: ['2001:db8:1::/64'] },
  ),
  scenario(
    'node ports on some addresses and on loopback',
    both,
    `
    client    tcp 192.168.100.2:30080  -> pod-a* pod-c*
    client    tcp 192.0.2.1:30080      -> pass
    loopback  tcp 127.0.0.1:30080      -> pod-a* pod-c*
    loopback  tcp 127.0.0.1:30081      -> pod-a* pod-c*
    `,
    { nodePortAddresses: ['192.168.100.0/24', '127.0.0.0/8'] },
  ),
  scenario(
    'loopback among the addresses, but switched off',
    both,
    `
    client    tcp 192.168.100.2:30080  -> pod-a* pod-c*
    loopback  tcp 127.0.0.1:30080      -> pass
    `,
    { nodePortAddresses: ['192.168.100.0/24', '127.0.0.1/32'], localhostNodePorts: false },
  ),
  scenario(
    'node ports everywhere but on loopback',
    [...both, empty],
    `
    client    tcp 192.168.100.2:30080  -> pod-a* pod-c*
    client    tcp 192.0.2.1:30080      -> pod-a* pod-c*
    node1     tcp 192.168.100.2:30080  -> pod-a* pod-c*
    loopback  tcp 127.0.0.1:30080      -> pass
    loopback  tcp 127.0.0.1:30081      -> pass
    loopback  tcp 127.0.0.1:30082      -> pass
    `,
    { localhostNodePorts: false },
  ),
];
