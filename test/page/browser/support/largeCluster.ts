/** A manifest of a large cluster: some services of each type, some without endpoints. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export function writeLargeCluster(folder: string, services: number): void {
  mkdirSync(folder);
  const items = Array.from({ length: services }, (_, index) => objectsOf(index)).flat();
  writeFileSync(join(folder, 'list.json'), JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
}

/** `team-7/service-107` */
export function largeName(index: number): string {
  return `team-${index % 100}/service-${index}`;
}

/** Every hundredth has none. */
export function isEmpty(index: number): boolean {
  return index % 100 === 99;
}

function objectsOf(index: number): readonly object[] {
  const [namespace, name] = largeName(index).split('/');
  const [high, low] = [index >> 8, index & 255];
  const isNodePort = index % 50 === 1;
  const port = { name: 'http', port: 80, ...(isNodePort && { nodePort: 30_000 + Math.floor(index / 50) }) };
  return [
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name, namespace },
      spec: {
        type: isNodePort ? 'NodePort' : 'ClusterIP',
        clusterIP: `10.96.${high}.${low}`,
        ports: [port],
      },
    },
    {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { name: `${name}-1`, namespace, labels: { 'kubernetes.io/service-name': name } },
      addressType: 'IPv4',
      ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
      endpoints: [1, 2, 3]
        .filter(() => !isEmpty(index))
        .map((number) => ({ addresses: [`10.${127 + number}.${high}.${low}`], nodeName: `node${number}` })),
    },
  ];
}
