/**
 * The acceptance matrix of the specification's appendix C. S1 has policy Cluster, S2 external policy Local, S3 internal
 * policy Local; each has one endpoint here (pod-a) and one elsewhere (pod-c). `=`: as in the first column.
 */
import { service, slice } from '../objects.ts';
import { scenario, type ScenarioSettings } from '../scenario.ts';

const objects = [
  service('s1', {
    clusterIP: '10.96.3.41',
    type: 'LoadBalancer',
    ports: '80:30001',
    loadBalancerIPs: ['203.0.113.41'],
  }),
  service('s2', {
    clusterIP: '10.96.3.42',
    type: 'LoadBalancer',
    ports: '80:30002',
    loadBalancerIPs: ['203.0.113.42'],
    externalTrafficPolicy: 'Local',
  }),
  service('s3', {
    clusterIP: '10.96.3.43',
    type: 'LoadBalancer',
    ports: '80:30003',
    loadBalancerIPs: ['203.0.113.43'],
    internalTrafficPolicy: 'Local',
  }),
  ...['s1', 's2', 's3'].map((name) => slice(name, '8080', 'pod-a', 'pod-c')),
];

const COLUMNS: readonly (readonly [name: string, settings: ScenarioSettings])[] = [
  ['base', {}],
  ['no detector', { detectLocal: 'none' }],
  ['masquerade all', { masqueradeAll: true }],
  ['masquerade all, no detector', { masqueradeAll: true, detectLocal: 'none' }],
];

const MATRIX = `
  pod-b     tcp 10.96.3.41:80        -> pod-a pod-c   | =           | pod-a* pod-c* | pod-a* pod-c*
  pod-b     tcp 192.168.100.2:30001  -> pod-a* pod-c* | =           | =             | =
  pod-b     tcp 203.0.113.41:80      -> pod-a* pod-c* | =           | =             | =
  node1     tcp 10.96.3.41:80        -> pod-a* pod-c* | pod-a pod-c | =             | =
  node1     tcp 192.168.100.2:30001  -> pod-a* pod-c* | =           | =             | =
  loopback  tcp 127.0.0.1:30001      -> pod-a* pod-c* | =           | =             | =
  node1     tcp 203.0.113.41:80      -> pod-a* pod-c* | =           | =             | =
  client    tcp 10.96.3.41:80        -> pod-a* pod-c* | pod-a pod-c | =             | =
  client    tcp 192.168.100.2:30001  -> pod-a* pod-c* | =           | =             | =
  client    tcp 203.0.113.41:80      -> pod-a* pod-c* | =           | =             | =
  pod-b     tcp 10.96.3.42:80        -> pod-a pod-c   | =           | pod-a* pod-c* | pod-a* pod-c*
  pod-b     tcp 192.168.100.2:30002  -> pod-a pod-c   | pod-a       | =             | pod-a
  pod-b     tcp 203.0.113.42:80      -> pod-a pod-c   | pod-a       | =             | pod-a
  node1     tcp 10.96.3.42:80        -> pod-a* pod-c* | pod-a pod-c | =             | =
  node1     tcp 192.168.100.2:30002  -> pod-a* pod-c* | =           | =             | =
  loopback  tcp 127.0.0.1:30002      -> pod-a* pod-c* | =           | =             | =
  node1     tcp 203.0.113.42:80      -> pod-a* pod-c* | =           | =             | =
  client    tcp 10.96.3.42:80        -> pod-a* pod-c* | pod-a pod-c | =             | =
  client    tcp 192.168.100.2:30002  -> pod-a         | =           | =             | =
  client    tcp 203.0.113.42:80      -> pod-a         | =           | =             | =
  pod-b     tcp 10.96.3.43:80        -> pod-a         | =           | pod-a*        | pod-a*
  pod-b     tcp 192.168.100.2:30003  -> pod-a* pod-c* | =           | =             | =
  pod-b     tcp 203.0.113.43:80      -> pod-a* pod-c* | =           | =             | =
  node1     tcp 10.96.3.43:80        -> pod-a*        | pod-a       | =             | =
  node1     tcp 192.168.100.2:30003  -> pod-a* pod-c* | =           | =             | =
  loopback  tcp 127.0.0.1:30003      -> pod-a* pod-c* | =           | =             | =
  node1     tcp 203.0.113.43:80      -> pod-a* pod-c* | =           | =             | =
  client    tcp 10.96.3.43:80        -> pod-a*        | pod-a       | =             | =
  client    tcp 192.168.100.2:30003  -> pod-a* pod-c* | =           | =             | =
  client    tcp 203.0.113.43:80      -> pod-a* pod-c* | =           | =             | =
  pod-a     tcp 10.96.3.41:80        -> pod-a* pod-c  | =           | pod-a* pod-c* | pod-a* pod-c*
  pod-a     tcp 203.0.113.42:80      -> pod-a* pod-c  | pod-a*      | =             | pod-a*
`;

export const APPENDIX_C = COLUMNS.map(([name, settings], column) =>
  scenario(`appendix C, ${name}`, objects, columnOf(column), settings),
);

function columnOf(column: number): string {
  return MATRIX.trim()
    .split('\n')
    .map((line) => {
      const [packet = '', fates = ''] = line.split('->');
      const cells = fates.split('|').map((cell) => cell.trim());
      const cell = cells[column];
      return `${packet} -> ${(cell === '=' ? cells[0] : cell) ?? ''}`;
    })
    .join('\n');
}
