/** Services that somebody else serves, or nobody. */
import { service, slice } from '../objects.ts';
import { scenario } from '../scenario.ts';

const ours = service('ours', { clusterIP: '10.96.1.9' });
const oursWithEndpoints = [ours, slice('ours', '8080', 'pod-a')];

export const NOT_OURS = [
  scenario(
    "another proxy's service",
    [
      ...oursWithEndpoints,
      service('web', {
        clusterIP: '10.96.1.1',
        type: 'NodePort',
        ports: '80:30080',
        externalIPs: ['203.0.113.1'],
        labels: { 'service.kubernetes.io/service-proxy-name': 'mesh' },
      }),
      slice('web', '8080', 'pod-a', 'pod-c'),
    ],
    `
    pod-b   tcp 10.96.1.9:80          -> pod-a
    pod-b   tcp 10.96.1.1:80          -> pass
    client  tcp 192.168.100.2:30080   -> pass
    client  tcp 203.0.113.1:80        -> pass
    `,
  ),
  scenario(
    'a headless service',
    [
      ...oursWithEndpoints,
      service('web', { clusterIP: 'None', externalIPs: ['203.0.113.1'] }),
      slice('web', '8080', 'pod-a', 'pod-c'),
    ],
    `
    pod-b   tcp 10.96.1.9:80          -> pod-a
    client  tcp 203.0.113.1:80        -> pass
    `,
  ),
  scenario(
    'an ExternalName, even with an address',
    [
      ...oursWithEndpoints,
      service('web', { clusterIP: '10.96.1.1', type: 'ExternalName', externalIPs: ['203.0.113.1'] }),
      slice('web', '8080', 'pod-a', 'pod-c'),
    ],
    `
    pod-b   tcp 10.96.1.9:80          -> pod-a
    pod-b   tcp 10.96.1.1:80          -> pass
    client  tcp 203.0.113.1:80        -> pass
    `,
  ),
  scenario(
    'slices for ports that the service does not have, and of no service at all',
    [ours, slice('ours', 'other=8080', 'pod-a'), slice('nobody', '8080', 'pod-a')],
    `
    pod-b   tcp 10.96.1.9:80          -> reject
    `,
  ),
];
