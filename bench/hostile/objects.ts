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
  /** Dual-stack: the external IPs, load-balancer IPs, source ranges and endpoints are IPv6. */
  readonly ipv6?: boolean;
  /** The ports have node ports. */
  readonly nodePorts?: boolean;
  /** Services beside it, each with a health-check node port of its own. */
  readonly healthChecks?: number;
}

const CREATED = '2026-01-01T00:00:00Z';
/** The API server gives out node ports from 30000 to 32767. */
const FIRST_NODE_PORT = 30_000;

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
  hostile('ipv6-external-ips', 'dual-stack, 60,000 IPv6 external IPs', { externalIPs: 60_000, ipv6: true }),
  hostile('ipv6-source-ranges', 'dual-stack, 40,000 IPv6 source ranges × 10 load-balancer IPs', {
    balancers: 10,
    sourceRanges: 40_000,
    ipv6: true,
  }),
  hostile('ipv6-endpoints', 'dual-stack, 100 slices of 1,000 IPv6 endpoints, 10 external IPs', {
    slices: 100,
    endpointsPerSlice: 1000,
    externalIPs: 10,
    ipv6: true,
  }),
  hostile('node-ports', '2,700 node ports, a slice of 1,000 endpoints with all of them', {
    ports: 2700,
    nodePorts: true,
    slices: 1,
    endpointsPerSlice: 1000,
    allPorts: true,
  }),
  hostile('health-checks', '2,700 services with a health-check node port each', { healthChecks: 2700 }),
];

function hostile(name: string, title: string, shape: Shape): Hostile {
  return {
    name,
    title,
    objects: () => [
      service('large', LARGE.address, shape),
      ...rivals(shape),
      ...healthChecked(shape),
      probeSlice(0),
      ...manySlices(shape, 0),
    ],
    change: (times) => [probeSlice(times), ...manySlices({ ...shape, slices: 1 }, times)],
  };
}

function service(name: string, clusterIP: string, shape: Shape): RawObject {
  const {
    ports = 1,
    protocol = 'TCP',
    externalIPs = 0,
    balancers = 0,
    sourceRanges = 0,
    ipv6 = false,
  } = shape;
  const family = ipv6 ? IPV6 : IPV4;
  return {
    kind: 'Service',
    metadata: { name, namespace: 'default', uid: name, creationTimestamp: CREATED },
    spec: {
      type: balancers > 0 ? 'LoadBalancer' : shape.nodePorts ? 'NodePort' : 'ClusterIP',
      clusterIP,
      clusterIPs: ipv6 ? [clusterIP, 'fd00:96::1'] : [clusterIP],
      ipFamilies: ipv6 ? ['IPv4', 'IPv6'] : ['IPv4'],
      ipFamilyPolicy: ipv6 ? 'RequireDualStack' : 'SingleStack',
      internalTrafficPolicy: 'Cluster',
      sessionAffinity: shape.affinity ? 'ClientIP' : 'None',
      ...(shape.affinity && { sessionAffinityConfig: { clientIP: { timeoutSeconds: 10_800 } } }),
      ports: [
        { name: 'probe', protocol: 'TCP', port: LARGE.port, targetPort: ENDPOINT_PORT },
        ...Array.from({ length: ports }, (_, index) => portOf(index, protocol, shape.nodePorts)),
      ],
      externalIPs: family.addresses(family.external, externalIPs),
      loadBalancerSourceRanges: Array.from({ length: sourceRanges }, (_, index) => family.range(index)),
    },
    status: {
      loadBalancer: {
        ingress: family.addresses(family.balancer, balancers).map((ip) => ({ ip })),
      },
    },
  };
}

function portOf(index: number, protocol: string, hasNodePort = false): Record<string, unknown> {
  const nodePort = hasNodePort ? { nodePort: FIRST_NODE_PORT + index } : {};
  return { name: `p${index}`, protocol, port: 1000 + index, targetPort: ENDPOINT_PORT, ...nodePort };
}

/** Others of the same tenant. */
function rivals({ rivals: count = 0, externalIPs = 0 }: Shape): readonly RawObject[] {
  return Array.from({ length: count }, (_, index) =>
    service(`rival-${index}`, address('10.113.0.1', index), { externalIPs }),
  );
}

/** Load balancers with an endpoint each. None has a node port: the range has room for the health checks only. */
function healthChecked({ healthChecks: count = 0 }: Shape): readonly RawObject[] {
  return Array.from({ length: count }, (_, index) => {
    const name = `checked-${index}`;
    const raw = service(name, address('10.113.0.1', index), {});
    const spec = {
      ...(raw.spec as Record<string, unknown>),
      type: 'LoadBalancer',
      allocateLoadBalancerNodePorts: false,
      externalTrafficPolicy: 'Local',
      healthCheckNodePort: FIRST_NODE_PORT + index,
    };
    const status = { loadBalancer: { ingress: [{ ip: address('172.20.0.0', index) }] } };
    const ports = [{ name: 'p0', protocol: 'TCP', port: ENDPOINT_PORT }];
    return [{ ...raw, spec, status }, slice(name, `${name}-1`, ports, [address('10.160.0.1', index)])];
  }).flat();
}

function probeSlice(times: number): RawObject {
  return slice(
    'large',
    'large-probe',
    [{ name: 'probe', protocol: 'TCP', port: ENDPOINT_PORT }],
    [probeEndpoint('large', times)],
  );
}

/** After so many changes: the first slice has another endpoint. */
function manySlices(shape: Shape, times: number): readonly RawObject[] {
  const { slices = 1, endpointsPerSlice = 2, protocol = 'TCP', allPorts = false, ports = 1 } = shape;
  const family = shape.ipv6 ? IPV6 : IPV4;
  const slicePorts = Array.from({ length: allPorts ? ports : Math.min(ports, 1) }, (_, index) => ({
    name: `p${index}`,
    protocol,
    port: ENDPOINT_PORT,
  }));
  return Array.from({ length: slices }, (_, number) => {
    const first = number * endpointsPerSlice;
    const addresses = [...family.addresses(family.endpoint, endpointsPerSlice, first)];
    if (number === 0) addresses.splice(0, 1, ...family.addresses(family.changed, 1, times));
    return slice('large', `large-${number}`, slicePorts, addresses);
  });
}

function slice(
  ofService: string,
  name: string,
  ports: readonly unknown[],
  addresses: readonly string[],
): RawObject {
  return {
    kind: 'EndpointSlice',
    metadata: {
      name,
      namespace: 'default',
      uid: name,
      creationTimestamp: CREATED,
      labels: { 'kubernetes.io/service-name': ofService },
    },
    addressType: addresses.some((each) => each.includes(':')) ? 'IPv6' : 'IPv4',
    ports: [...ports],
    endpoints: addresses.map((each) => ({
      addresses: [each],
      conditions: { ready: true, serving: true, terminating: false },
    })),
  };
}

/** Where the large object's addresses begin, and how they go on. */
interface Addresses {
  readonly external: string;
  readonly balancer: string;
  readonly endpoint: string;
  /** The endpoint that changes. */
  readonly changed: string;
  addresses(first: string, count: number, from?: number): readonly string[];
  /** Source ranges of several lengths, none in another. */
  range(index: number): string;
}

const IPV4: Addresses = {
  external: '172.20.0.0',
  balancer: '192.0.2.1',
  endpoint: '10.160.0.1',
  changed: '10.200.0.1',
  addresses: (first, count, from = 0) =>
    Array.from({ length: count }, (_, index) => address(first, from + index)),
  range: (index) => `${address('32.0.0.0', index * 4)}/${30 + (index % 3)}`,
};

const IPV6: Addresses = {
  external: 'fd00:20::',
  balancer: 'fd00:30::',
  endpoint: 'fd00:40::',
  changed: 'fd00:50::',
  addresses: (first, count, from = 0) =>
    Array.from({ length: count }, (_, index) => first + groups(from + index + 1)),
  range: (index) => `fd00:32::${groups(index * 4)}/${126 + (index % 3)}`,
};

/** A number as the last two groups of an IPv6 address. */
function groups(number: number): string {
  return `${Math.floor(number / 65_536).toString(16)}:${(number % 65_536).toString(16)}`;
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
