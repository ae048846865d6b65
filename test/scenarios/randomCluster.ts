/** Random clusters: six services that get in each other's way, with endpoints in every condition. */
import * as fc from 'fast-check';
import { addressOf, HOST_NAMES } from '../../lab/topology.ts';
import { FAMILIES, type Family } from '../../src/model/ip.ts';
import type {
  EndpointSlice,
  Node,
  Service,
  ServicePortSpec,
  SliceEndpoint,
  SlicePort,
  TrafficPolicy,
} from '../../src/model/objects.ts';
import type { DetectLocal, ViewSettings } from '../../src/plan/view.ts';
import { cidr, ip, POD_NETWORK } from './scenario.ts';

/** One service's place in the cluster. */
export interface Slot {
  readonly name: string;
  readonly service: Service | undefined;
  readonly slices: readonly EndpointSlice[];
}

export interface RandomCluster {
  readonly slots: readonly Slot[];
  readonly zone: string | undefined;
}

export const SLOTS = 6;
/** Two of these are other services' cluster IPs, and two are node1's own. */
const EXTERNAL_IPS = [
  '203.0.113.1',
  '203.0.113.2',
  '192.168.100.2',
  '10.96.0.1',
  '2001:db8:113::1',
  'fd00:100::2',
  'fd00:96::1',
].map(ip);
const LOAD_BALANCER_IPS = ['203.0.113.1', '203.0.113.50', '2001:db8:113::1', '2001:db8:113::50'].map(ip);
const RANGES = [
  '198.18.0.0/24',
  '192.168.100.2/32',
  '10.244.0.0/16',
  '0.0.0.0/0',
  '2001:db8:2::/64',
  'fd00:100::/64',
].map(cidr);
const STRANGERS: Readonly<Record<Family, readonly string[]>> = {
  IPv4: ['10.244.3.1', '10.244.3.10', '172.16.0.1'],
  IPv6: ['fd00:244:3::1', 'fd00:244:3::10', 'fd00:172::1'],
};

const policy = fc.constantFrom<TrafficPolicy>('Cluster', 'Local');
const sometimes = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
  fc.option(arbitrary, { nil: undefined, freq: 2 });
const someOf = <T>(values: readonly T[], maxLength = 2): fc.Arbitrary<readonly T[]> =>
  fc.subarray([...values], { maxLength: Math.min(maxLength, values.length) });

const PORTS: readonly Omit<ServicePortSpec, 'nodePort'>[] = [
  { name: '', protocol: 'TCP', port: 80 },
  { name: 'alt', protocol: 'TCP', port: 81 },
  { name: 'dns', protocol: 'UDP', port: 53 },
  { name: 'sig', protocol: 'SCTP', port: 80 },
];

const servicePorts: fc.Arbitrary<readonly ServicePortSpec[]> = fc
  .subarray([...PORTS], { minLength: 1, maxLength: 3 })
  .chain((ports) =>
    fc
      .array(fc.constantFrom(0, 0, 30_001, 30_002, 30_003), {
        minLength: ports.length,
        maxLength: ports.length,
      })
      .map((nodePorts) => ports.map((port, index) => ({ ...port, nodePort: nodePorts[index] ?? 0 }))),
  );

function service(number: number): fc.Arbitrary<Service> {
  return fc.record<Service>({
    namespace: fc.constant('default'),
    name: fc.constant(`svc${number}`),
    type: fc.constantFrom('ClusterIP', 'NodePort', 'LoadBalancer'),
    createdAt: fc.constantFrom(undefined, 1, 2),
    clusterIPs: fc.constantFrom(
      { IPv4: ip(`10.96.0.${number}`), IPv6: ip(`fd00:96::${number}`) },
      { IPv4: ip(`10.96.0.${number}`) },
      { IPv6: ip(`fd00:96::${number}`) },
    ),
    ports: servicePorts,
    externalIPs: someOf(EXTERNAL_IPS),
    loadBalancerIPs: someOf(LOAD_BALANCER_IPS),
    loadBalancerSourceRanges: someOf(RANGES),
    affinitySeconds: fc.constantFrom(undefined, undefined, 60),
    externalTrafficPolicy: policy,
    internalTrafficPolicy: policy,
    healthCheckNodePort: fc.constantFrom(0, 32_000),
  });
}

const CONDITIONS = [
  { ready: true, serving: true, terminating: false },
  { ready: true, serving: true, terminating: false },
  { ready: true, serving: true, terminating: true },
  { ready: false, serving: true, terminating: true },
  { ready: false, serving: true, terminating: false },
  { ready: false, serving: false, terminating: true },
] as const;

function endpoint(family: Family): fc.Arbitrary<SliceEndpoint> {
  const known = HOST_NAMES.filter((name) => name !== 'client').map((name) => addressOf(name, family));
  const hints = fc.constantFrom<readonly string[]>([], [], ['east'], ['west'], ['east', 'west']);
  return fc
    .record({
      ip: fc.constantFrom(...known, ...STRANGERS[family].map(ip)),
      nodeName: fc.constantFrom('node1', 'node2', undefined),
      conditions: fc.constantFrom(...CONDITIONS),
      zoneHints: hints,
      nodeHints: fc.constantFrom<readonly string[]>([], [], [], ['node1'], ['node2']),
    })
    .map(({ conditions, ...rest }) => ({ ...rest, ...conditions }));
}

/** By chance alone, hints would hardly ever be complete. */
const hinting = fc.constantFrom<(endpoint: SliceEndpoint) => SliceEndpoint>(
  (each) => each,
  (each) => ({ ...each, zoneHints: [], nodeHints: [] }),
  (each) => ({ ...each, zoneHints: each.zoneHints.length > 0 ? each.zoneHints : ['west'] }),
  (each) => ({ ...each, nodeHints: each.nodeHints.length > 0 ? each.nodeHints : ['node1'] }),
);

function slice(number: number, family: Family, index: number): fc.Arbitrary<EndpointSlice> {
  const ports: fc.Arbitrary<readonly SlicePort[]> = fc
    .tuple(fc.subarray([...PORTS], { minLength: 1 }), fc.constantFrom(8080, 8080, 8081))
    .map(([named, port]) => named.map(({ name, protocol }) => ({ name, protocol, port })));
  return fc.record({
    namespace: fc.constant('default'),
    name: fc.constant(`svc${number}-${family.toLowerCase()}-${index}`),
    service: fc.constant(`svc${number}`),
    family: fc.constant(family),
    ports,
    endpoints: fc
      .tuple(fc.array(endpoint(family), { maxLength: 5 }), hinting)
      .map(([endpoints, hint]) => endpoints.map(hint)),
    triggerTime: fc.constant(undefined),
  });
}

export function slot(number: number): fc.Arbitrary<Slot> {
  const slices = FAMILIES.flatMap((family) => [0, 1].map((index) => sometimes(slice(number, family, index))));
  return fc.record({
    name: fc.constant(`svc${number}`),
    service: sometimes(service(number)),
    slices: fc.tuple(...slices).map((all) => all.filter((each) => each !== undefined)),
  });
}

export const zone: fc.Arbitrary<string | undefined> = fc.constantFrom(undefined, 'east');

export const cluster: fc.Arbitrary<RandomCluster> = fc.record({
  slots: fc.tuple(...Array.from({ length: SLOTS }, (_, number) => slot(number))),
  zone,
});

export const settings: fc.Arbitrary<ViewSettings> = fc.record({
  nodeName: fc.constant('node1'),
  bindAddress: fc.constant(undefined),
  detectLocal: fc.constantFrom<DetectLocal>(
    POD_NETWORK,
    { mode: 'ClusterCIDR', cidrs: [] },
    { mode: 'NodeCIDR' },
    { mode: 'BridgeInterface', name: 'cni0' },
    { mode: 'InterfaceNamePrefix', prefix: 'cn' },
  ),
  masqueradeAll: fc.boolean(),
  nodePortAddresses: fc.constantFrom<ViewSettings['nodePortAddresses']>(
    [],
    'primary',
    [cidr('192.168.100.0/24')],
    [cidr('192.168.100.0/24'), cidr('127.0.0.0/8')],
    [cidr('fd00:100::/64')],
  ),
  localhostNodePorts: fc.boolean(),
});

export function nodeIn(zoneName: string | undefined): Node {
  return {
    name: 'node1',
    ips: FAMILIES.map((family) => addressOf('node1', family)),
    podCIDRs: [cidr('10.244.1.0/24'), cidr('fd00:244:1::/64')],
    eligible: true,
    zone: zoneName,
  };
}
