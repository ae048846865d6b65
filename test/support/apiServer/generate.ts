/** Objects of a large cluster, as large as real ones are: most of each is managed fields and annotations. */
import type { Family } from '../../../src/model/ip.ts';
import type { RawObject } from './store.ts';

export interface ClusterSize {
  readonly services: number;
  readonly endpointsPerService: number;
  readonly nodes?: number;
  /** Bytes of managed fields in each object; about 1,500 when not given, which is what real ones have. */
  readonly managedFieldsBytes?: number;
  /** Each service has a cluster IP and an EndpointSlice of IPv6, too. */
  readonly isDualStack?: boolean;
}

const FAMILIES: readonly Family[] = ['IPv4', 'IPv6'];
const SUFFIXES: Readonly<Record<Family, string>> = { IPv4: 'x7k2p', IPv6: 'm4t9w' };
const ZONES = ['zone-a', 'zone-b', 'zone-c'];

/** One at a time, so that nobody has to hold them all. */
export function* generateCluster(size: ClusterSize): Generator<RawObject> {
  const padding = managedFields(size.managedFieldsBytes ?? 1500);
  for (let index = 0; index < size.services; index++) {
    const families = size.isDualStack ? FAMILIES : FAMILIES.slice(0, 1);
    yield service(index, families, padding);
    for (const family of families) yield slice(index, family, size, padding);
  }
}

function service(index: number, families: readonly Family[], managedFields: unknown): RawObject {
  const name = `service-${index}`;
  return {
    kind: 'Service',
    metadata: { ...metadata(name, index), labels: { app: name, team: `team-${index % 40}` }, managedFields },
    spec: {
      type: 'ClusterIP',
      clusterIP: address('IPv4', 96, index),
      clusterIPs: families.map((family) => address(family, 96, index)),
      ipFamilies: families,
      ipFamilyPolicy: families.length > 1 ? 'RequireDualStack' : 'SingleStack',
      internalTrafficPolicy: 'Cluster',
      sessionAffinity: 'None',
      ports: [{ name: 'http', protocol: 'TCP', port: 80, targetPort: 8080 }],
      selector: { app: name },
    },
    status: { loadBalancer: {} },
  };
}

function slice(
  index: number,
  family: Family,
  { endpointsPerService, nodes = 100 }: ClusterSize,
  managedFields: unknown,
): RawObject {
  const name = `service-${index}`;
  return {
    kind: 'EndpointSlice',
    metadata: {
      ...metadata(`${name}-${SUFFIXES[family]}`, index),
      generateName: `${name}-`,
      labels: {
        app: name,
        'endpointslice.kubernetes.io/managed-by': 'endpointslice-controller.k8s.io',
        'kubernetes.io/service-name': name,
      },
      annotations: { 'endpoints.kubernetes.io/last-change-trigger-time': '2026-05-01T12:00:00Z' },
      ownerReferences: [
        {
          apiVersion: 'v1',
          kind: 'Service',
          name,
          uid: uid(index),
          controller: true,
          blockOwnerDeletion: true,
        },
      ],
      managedFields,
    },
    addressType: family,
    ports: [{ name: 'http', protocol: 'TCP', port: 8080 }],
    endpoints: Array.from({ length: endpointsPerService }, (_, at) => {
      const number = index * endpointsPerService + at;
      return {
        addresses: [address(family, 128, number)],
        conditions: { ready: true, serving: true, terminating: false },
        nodeName: `node-${number % nodes}.cluster.example`,
        zone: ZONES[number % ZONES.length],
        hints: { forZones: [{ name: ZONES[number % ZONES.length] }] },
        targetRef: {
          kind: 'Pod',
          name: `${name}-${uid(number).slice(0, 8)}`,
          uid: uid(number),
          namespace: namespace(index),
        },
      };
    }),
  };
}

function metadata(name: string, index: number): RawObject['metadata'] {
  return { name, namespace: namespace(index), uid: uid(index), creationTimestamp: '2026-01-01T00:00:00Z' };
}

function namespace(index: number): string {
  return `team-${index % 40}`;
}

function uid(index: number): string {
  return `${(index * 2_654_435_761).toString(16).padStart(12, '0').slice(-8)}-4b1d-4c6e-9a53-${index.toString(16).padStart(12, '0')}`;
}

/** Counts on from `10.second.0.1`, or from the address of IPv6 that has this one's bytes at its end. */
function address(family: Family, second: number, index: number): string {
  const number = index + 1;
  const bytes = [10, second + (number >> 16), (number >> 8) & 255, number & 255];
  if (family === 'IPv4') return bytes.join('.');
  const [first = 0, next = 0, third = 0, last = 0] = bytes;
  return `fd00::${((first << 8) | next).toString(16)}:${((third << 8) | last).toString(16)}`;
}

function managedFields(bytes: number): unknown {
  const fields: Record<string, unknown> = {};
  for (let length = 0; length < bytes; length += 40)
    fields[`f:field-${String(length).padStart(8, '0')}`] = { '.': {}, 'f:x': {} };
  return [
    {
      manager: 'kube-controller-manager',
      operation: 'Update',
      apiVersion: 'v1',
      fieldsType: 'FieldsV1',
      fieldsV1: { 'f:metadata': fields },
    },
  ];
}
