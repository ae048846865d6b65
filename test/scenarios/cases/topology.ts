/** Hints: whether a node keeps to the endpoints that are near. node1 is in zone east. */
import { service, slice } from '../objects.ts';
import { scenario } from '../scenario.ts';

const web = service('web', { clusterIP: '10.96.1.1' });
const east = { zone: 'east' };

export const TOPOLOGY = [
  scenario(
    'every endpoint has a zone: those of our zone',
    [
      web,
      slice(
        'web',
        '8080',
        'pod-a zone=east',
        'pod-b zone=west',
        'pod-c zone=east zone=west',
        'pod-d zone=west',
      ),
    ],
    `
    client  tcp 10.96.1.1:80  -> pod-a* pod-c*
    pod-b   tcp 10.96.1.1:80  -> pod-a pod-c
    `,
    east,
  ),
  scenario(
    'one endpoint without a zone: all of them',
    [web, slice('web', '8080', 'pod-a zone=east', 'pod-c zone=west', 'pod-d')],
    `
    client  tcp 10.96.1.1:80  -> pod-a* pod-c* pod-d*
    `,
    east,
  ),
  scenario(
    'no endpoint for our zone: all of them',
    [web, slice('web', '8080', 'pod-a zone=west', 'pod-c zone=north')],
    `
    client  tcp 10.96.1.1:80  -> pod-a* pod-c*
    `,
    east,
  ),
  scenario(
    'a node without a zone: all of them',
    [web, slice('web', '8080', 'pod-a zone=east', 'pod-c zone=west')],
    `
    client  tcp 10.96.1.1:80  -> pod-a* pod-c*
    `,
  ),
  scenario(
    'hints of endpoints that are not ready do not count',
    [web, slice('web', '8080', 'pod-a zone=east', 'pod-b not-ready', 'pod-c zone=west')],
    `
    client  tcp 10.96.1.1:80  -> pod-a*
    `,
    east,
  ),
  scenario(
    'nobody in our zone is ready: the other zones',
    [web, slice('web', '8080', 'pod-a zone=east not-ready', 'pod-c zone=west', 'pod-d zone=north')],
    `
    client  tcp 10.96.1.1:80  -> pod-c* pod-d*
    `,
    east,
  ),
  scenario(
    'among terminating endpoints nobody asks for zones',
    [web, slice('web', '8080', 'pod-a zone=west terminating', 'pod-c zone=east terminating')],
    `
    client  tcp 10.96.1.1:80  -> pod-a* pod-c*
    `,
    east,
  ),
  scenario(
    'zones do not narrow what policy Local gives to clients outside',
    [
      service('web', {
        clusterIP: '10.96.1.1',
        type: 'NodePort',
        ports: '80:30080',
        externalTrafficPolicy: 'Local',
      }),
      slice('web', '8080', 'pod-a zone=west', 'pod-b zone=east', 'pod-c zone=east', 'pod-d zone=west'),
    ],
    `
    client  tcp 192.168.100.2:30080  -> pod-a pod-b
    pod-a   tcp 192.168.100.2:30080  -> pod-b pod-c
    node1   tcp 192.168.100.2:30080  -> pod-b* pod-c*
    client  tcp 10.96.1.1:80         -> pod-b* pod-c*
    `,
    east,
  ),
  scenario(
    'every endpoint has a node: those for our node, whatever their zones',
    [
      web,
      slice(
        'web',
        '8080',
        'pod-a node=node1 zone=west',
        'pod-b node=node2 zone=east',
        'pod-c node=node2 zone=east',
      ),
    ],
    `
    client  tcp 10.96.1.1:80  -> pod-a*
    `,
    east,
  ),
  scenario(
    'no endpoint for our node: those for our zone',
    [web, slice('web', '8080', 'pod-a node=node2 zone=east', 'pod-c node=node2 zone=west')],
    `
    client  tcp 10.96.1.1:80  -> pod-a*
    `,
    east,
  ),
  scenario(
    'one endpoint without a node: zones decide',
    [web, slice('web', '8080', 'pod-a node=node1 zone=west', 'pod-c zone=east')],
    `
    client  tcp 10.96.1.1:80  -> pod-c*
    `,
    east,
  ),
  scenario(
    'one endpoint without any hint: all of them',
    [web, slice('web', '8080', 'pod-a node=node1 zone=east', 'pod-c')],
    `
    client  tcp 10.96.1.1:80  -> pod-a* pod-c*
    `,
    east,
  ),
];
