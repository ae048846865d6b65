/**
 * Objects as large as an API server takes (1.5 MB as stored, about 3 MB as a JSON request), each large in another field.
 * Every one of them has a first port that is dialled, with one endpoint that changes.
 */
import type { RawObject } from '../../test/support/apiServer/index.ts';
import { ENDPOINT_PORT, LARGE, probeEndpoint } from './messages.ts';

export interface Hostile {
  readonly name: string;
  /** What is in it, for the report. */
  readonly title: string;
  readonly objects: () => readonly RawObject[];
  /** One endpoint of it more or less, at each call. */
  readonly change: (times: number) => readonly RawObject[];
}

interface Shape {
  readonly ports?: number;
  readonly protocol?: 'TCP' | 'UDP';
  readonly externalIPs?: number;
  readonly balancers?: number;
  readonly sourceRanges?: number;
  readonly affinity?: boolean;
  readonly slices?: number;
  readonly endpointsPerSlice?: number;
  /** Each slice has all of the service's ports. */
  readonly allPorts?: boolean;
  /** Services beside it that name the same external IPs. */
  readonly rivals?: number;
}

const CREATED = '2026-01-01T00:00:00Z';

export const HOSTILE: readonly Hostile[] = [
  hostile('external-ips', '60,000 external IPs', { externalIPs: 60_000 }),
  hostile('external-ips-udp', '60,000 external IPs, UDP, affinity', {
    externalIPs: 60_000,
    protocol: 'UDP',
    affinity: true,
  }),
  hostile('ports-and-ips', '20,000 ports × 20,000 external IPs', { ports: 20_000, externalIPs: 20_000 }),
  hostile('ports', '30,000 ports', { ports: 30_000 }),
  hostile('source-ranges', '40,000 source ranges × 10 load-balancer IPs', {
    balancers: 10,
    sourceRanges: 40_000,
  }),
  hostile('source-ranges-ports', '30,000 source ranges × 10 load-balancer IPs × 500 ports', {
    balancers: 10,
    sourceRanges: 30_000,
    ports: 500,
  }),
  hostile('endpoints', '100 slices of 1,000 endpoints, 10 external IPs', {
    slices: 100,
    endpointsPerSlice: 1000,
    externalIPs: 10,
  }),
  hostile('slices', '5,000 slices of one endpoint', { slices: 5000, endpointsPerSlice: 1 }),
  hostile('slice-ports', '5,000 ports, a slice of 1,000 endpoints with all of them', {
    ports: 5000,
    slices: 1,
    endpointsPerSlice: 1000,
    allPorts: true,
  }),
  hostile('rivals', '2,000 services that name the same 50 external IPs', { externalIPs: 50, rivals: 2000 }),
];

function hostile(name: string, title: string, shape: Shape): Hostile {
  return {
    name,
    title,
    objects: () => [
      service('large', LARGE.address, shape),
      ...rivals(shape),
      probeSlice(0),
      ...manySlices(shape, 0),
    ],
    change: (times) => [probeSlice(times), ...manySlices({ ...shape, slices: 1 }, times)],
  };
}

function service(name: string, clusterIP: string, shape: Shape): RawObject {
  const { ports = 1, protocol = 'TCP', externalIPs = 0, balancers = 0, sourceRanges = 0 } = shape;
  return {
    kind: 'Service',
    metadata: { name, namespace: 'default', uid: name, creationTimestamp: CREATED },
    spec: {
      type: balancers > 0 ? 'LoadBalancer' : 'ClusterIP',
      clusterIP,
      clusterIPs: [clusterIP],
      ipFamilies: ['IPv4'],
      ipFamilyPolicy: 'SingleStack',
      internalTrafficPolicy: 'Cluster',
      sessionAffinity: shape.affinity ? 'ClientIP' : 'None',
      ...(shape.affinity && { sessionAffinityConfig: { clientIP: { timeoutSeconds: 10_800 } } }),
      ports: [
        { name: 'probe', protocol: 'TCP', port: LARGE.port, targetPort: ENDPOINT_PORT },
        ...Array.from({ length: ports }, (_, index) => portOf(index, protocol)),
      ],
      externalIPs: Array.from({ length: externalIPs }, (_, index) => address('172.20.0.0', index)),
      loadBalancerSourceRanges: Array.from(
        { length: sourceRanges },
        (_, index) => `${address('32.0.0.0', index * 4)}/${30 + (index % 3)}`,
      ),
    },
    status: {
      loadBalancer: {
        ingress: Array.from({ length: balancers }, (_, index) => ({ ip: address('192.0.2.1', index) })),
      },
    },
  };
}

function portOf(index: number, protocol: string): Record<string, unknown> {
  return { name: `p${index}`, protocol, port: 1000 + index, targetPort: ENDPOINT_PORT };
}

/** Others of the same tenant. */
function rivals({ rivals: count = 0, externalIPs = 0 }: Shape): readonly RawObject[] {
  return Array.from({ length: count }, (_, index) =>
    service(`rival-${index}`, address('10.113.0.1', index), { externalIPs }),
  );
}

function probeSlice(times: number): RawObject {
  return slice(
    'large-probe',
    [{ name: 'probe', protocol: 'TCP', port: ENDPOINT_PORT }],
    [probeEndpoint('large', times)],
  );
}

/** After so many changes: the first slice has another endpoint. */
function manySlices(shape: Shape, times: number): readonly RawObject[] {
  const { slices = 1, endpointsPerSlice = 2, protocol = 'TCP', allPorts = false, ports = 1 } = shape;
  const slicePorts = Array.from({ length: allPorts ? ports : Math.min(ports, 1) }, (_, index) => ({
    name: `p${index}`,
    protocol,
    port: ENDPOINT_PORT,
  }));
  return Array.from({ length: slices }, (_, number) => {
    const first = number * endpointsPerSlice;
    const addresses = Array.from({ length: endpointsPerSlice }, (_each, index) =>
      address('10.160.0.1', first + index),
    );
    if (number === 0) addresses[0] = address('10.200.0.1', times);
    return slice(`large-${number}`, slicePorts, addresses);
  });
}

function slice(name: string, ports: readonly unknown[], addresses: readonly string[]): RawObject {
  return {
    kind: 'EndpointSlice',
    metadata: {
      name,
      namespace: 'default',
      uid: name,
      creationTimestamp: CREATED,
      labels: { 'kubernetes.io/service-name': 'large' },
    },
    addressType: 'IPv4',
    ports: [...ports],
    endpoints: addresses.map((each) => ({
      addresses: [each],
      conditions: { ready: true, serving: true, terminating: false },
    })),
  };
}

/** So many addresses after the first. */
function address(first: string, index: number): string {
  const bytes = first.split('.').map(Number);
  let number = bytes.reduce((sum, byte) => sum * 256 + byte, 0) + index;
  const parts: number[] = [];
  for (let byte = 0; byte < 4; byte++) {
    parts.unshift(number % 256);
    number = Math.floor(number / 256);
  }
  return parts.join('.');
}
