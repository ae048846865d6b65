/** Manifests of a cluster of any size: some services of each type, some without endpoints. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const SERVICES_PER_FILE = 5000;

export interface LargeSizes {
  readonly services: number;
  readonly endpoints: number;
}

export function writeLargeCluster(folder: string, { services, endpoints }: LargeSizes): void {
  mkdirSync(folder, { recursive: true });
  for (let first = 0; first < services; first += SERVICES_PER_FILE) {
    const count = Math.min(SERVICES_PER_FILE, services - first);
    const items = Array.from({ length: count }, (_, index) => objectsOf(first + index, endpoints)).flat();
    const list = { apiVersion: 'v1', kind: 'List', items };
    writeFileSync(join(folder, `services-${first}.json`), JSON.stringify(list));
  }
}

/** `team-7/service-107` */
export function largeName(index: number): string {
  return `team-${index % 100}/service-${index}`;
}

/** Every hundredth has none. */
export function isEmpty(index: number): boolean {
  return index % 100 === 99;
}

function objectsOf(index: number, endpoints: number): readonly object[] {
  const [namespace, name] = largeName(index).split('/');
  const isNodePort = index % 50 === 1;
  return [
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name, namespace },
      spec: {
        type: isNodePort ? 'NodePort' : 'ClusterIP',
        clusterIP: `10.${96 + (index >> 16)}.${(index >> 8) & 255}.${index & 255}`,
        ...(isNodePort && { externalTrafficPolicy: 'Local' }),
        ports: [{ name: 'http', port: 80, ...(isNodePort && { nodePort: 30_000 + Math.floor(index / 50) }) }],
      },
    },
    {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { name: `${name}-1`, namespace, labels: { 'kubernetes.io/service-name': name } },
      addressType: 'IPv4',
      ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
      endpoints: isEmpty(index)
        ? []
        : Array.from({ length: endpoints }, (_, number) => ({
            addresses: [`10.${128 + number}.${(index >> 8) & 255}.${index & 255}`],
            nodeName: number === 0 ? 'node1' : `node${number + 1}`,
            conditions: { ready: true },
          })),
    },
  ];
}
