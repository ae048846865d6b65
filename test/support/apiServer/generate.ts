/** Objects of a large cluster, as large as real ones are: most of each is managed fields and annotations. */
import type { RawObject } from './store.ts';

export interface ClusterSize {
  readonly services: number;
  readonly endpointsPerService: number;
  readonly nodes?: number;
  /** Bytes of managed fields in each object; about 1,500 when not given, which is what real ones have. */
  readonly managedFieldsBytes?: number;
}

const ZONES = ['zone-a', 'zone-b', 'zone-c'];

/** One at a time, so that nobody has to hold them all. */
export function* generateCluster(size: ClusterSize): Generator<RawObject> {
  const padding = managedFields(size.managedFieldsBytes ?? 1500);
  for (let index = 0; index < size.services; index++) {
    yield service(index, padding);
    yield slice(index, size, padding);
  }
}

function service(index: number, managedFields: unknown): RawObject {
  const name = `service-${index}`;
  return {
    kind: 'Service',
    metadata: { ...metadata(name, index), labels: { app: name, team: `team-${index % 40}` }, managedFields },
    spec: {
      type: 'ClusterIP',
      clusterIP: address(10, 96, index),
      clusterIPs: [address(10, 96, index)],
      ipFamilies: ['IPv4'],
      ipFamilyPolicy: 'SingleStack',
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
  { endpointsPerService, nodes = 100 }: ClusterSize,
  managedFields: unknown,
): RawObject {
  const name = `service-${index}`;
  return {
    kind: 'EndpointSlice',
    metadata: {
      ...metadata(`${name}-x7k2p`, index),
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
    addressType: 'IPv4',
    ports: [{ name: 'http', protocol: 'TCP', port: 8080 }],
    endpoints: Array.from({ length: endpointsPerService }, (_, at) => {
      const number = index * endpointsPerService + at;
      return {
        addresses: [address(10, 128, number)],
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

/** Counts on from `first.second.0.1`. */
function address(first: number, second: number, index: number): string {
  const number = index + 1;
  return `${first}.${second + (number >> 16)}.${(number >> 8) & 255}.${number & 255}`;
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
