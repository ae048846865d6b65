/** Random objects that an API server could hold: types as in Go, values as they come. As JSON and as protobuf. */
import fc from 'fast-check';
import { encodeObject } from '../../../support/apiServer/protobuf/encode.ts';
import { Interner } from '../../../../src/sources/api/interner.ts';
import {
  endpointSlices,
  oneNode,
  type Resource,
  SERVICE_CIDRS,
  services,
} from '../../../../src/sources/api/resources.ts';

/** One in sixteen is odd, so that whole objects of dozens of fields are in order now and then. */
const mostly = <T>(good: fc.Arbitrary<T>, odd: fc.Arbitrary<T>): fc.Arbitrary<T> =>
  fc.oneof({ weight: 15, arbitrary: good }, { weight: 1, arbitrary: odd });
const name = mostly(
  fc.constantFrom('web', 'db-1'),
  fc.constantFrom('a.b', 'Not_A_Name', '-', 'x'.repeat(64), 'y'.repeat(300), 'ü'),
);
const namespace = mostly(fc.constantFrom('shop', 'default'), fc.constantFrom('a.b', 'UPPER'));
const junk = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 80 });
const address = mostly(
  fc.oneof({ weight: 3, arbitrary: fc.ipV4() }, fc.constant('10.0.0.1')),
  fc.oneof(
    fc.ipV6(),
    fc.constantFrom(
      '010.0.0.1',
      '127.0.0.1',
      '::1',
      '::ffff:10.0.0.1',
      ' 10.0.0.2',
      'None',
      'x',
      '10.0.0.256',
    ),
    fc.constantFrom(
      '10.0.0',
      '10.0.0.1.',
      '1.2.3.4.5',
      '10..0.1',
      '0.0.0.0',
      '224.0.0.1',
      '169.254.1.1',
      'fe80::1',
    ),
    junk,
  ),
);
const cidr = fc.oneof(
  fc.constantFrom('10.0.0.0/8', '10.0.0.1/8', ' 10.0.0.0/8', 'fd00::/8', '10.0.0.0'),
  junk,
);
const number = mostly(
  fc.integer({ min: 1, max: 65_535 }),
  fc.oneof(fc.constantFrom(0, -1, 65_536), fc.integer()),
);
/** Go's JSON leaves these out where they are 0 or empty. */
const nonZero = number.map((value) => value || 80);
const word = (...known: readonly string[]): fc.Arbitrary<string> => mostly(fc.constantFrom(...known), junk);
const time = fc
  .date({ min: new Date('0001-01-01T00:00:00Z'), max: new Date('9999-12-31T23:59:59Z'), noInvalidDate: true })
  .map((date) => `${date.toISOString().slice(0, 19)}Z`);
const anyTime = mostly(time, fc.oneof(fc.constantFrom('2026-05-01T12:00:00.5Z', 'yesterday', ''), junk));
const some = <T>(item: fc.Arbitrary<T>): fc.Arbitrary<T[]> => fc.array(item, { maxLength: 4 });

const LABELS = [
  'kubernetes.io/service-name',
  'service.kubernetes.io/headless',
  'service.kubernetes.io/service-proxy-name',
  'topology.kubernetes.io/zone',
  'app',
];

const metadata = fc.record(
  {
    name,
    namespace,
    resourceVersion: fc.nat().map(String),
    creationTimestamp: time,
    deletionTimestamp: time,
    labels: mostly(
      fc.constantFrom({ 'kubernetes.io/service-name': 'web', app: 'web' }),
      fc.dictionary(fc.constantFrom(...LABELS), fc.oneof(name, fc.constantFrom('', 'web', 'db')), {
        maxKeys: 3,
      }),
    ),
    annotations: fc.dictionary(
      fc.constantFrom(
        'endpoints.kubernetes.io/last-change-trigger-time',
        'k8s.io/initial-events-end',
        'other',
      ),
      anyTime,
    ),
    managedFields: fc.constantFrom(
      [],
      [{ manager: 'curl', operation: 'Update', fieldsV1: { 'f:spec': {} } }],
    ),
    finalizers: some(junk),
    generation: fc.nat({ max: 1000 }),
  },
  { requiredKeys: ['creationTimestamp', 'name', 'namespace', 'labels'] },
);

const servicePort = fc.record(
  {
    name: fc.oneof(name, fc.constantFrom('http', 'https')),
    protocol: word('TCP', 'UDP', 'SCTP'),
    port: number,
    targetPort: fc.oneof(number, junk),
    nodePort: nonZero,
    appProtocol: fc.constantFrom('', 'h2'),
  },
  { requiredKeys: ['port'] },
);

const serviceSpec = fc.record(
  {
    ports: some(servicePort),
    selector: fc.constant({ app: 'web' }),
    clusterIP: address,
    type: word('ClusterIP', 'NodePort', 'LoadBalancer', 'ExternalName'),
    externalIPs: some(address),
    sessionAffinity: word('None', 'ClientIP'),
    loadBalancerSourceRanges: some(cidr),
    externalTrafficPolicy: word('Cluster', 'Local'),
    healthCheckNodePort: nonZero,
    publishNotReadyAddresses: fc.boolean(),
    sessionAffinityConfig: fc.record(
      { clientIP: fc.record({ timeoutSeconds: number }, { requiredKeys: [] }) },
      { requiredKeys: [] },
    ),
    clusterIPs: fc.oneof(
      some(address),
      address.map((one) => [one]),
    ),
    ipFamilies: fc.oneof(some(word('IPv4', 'IPv6')), fc.constant(['IPv4'])),
    internalTrafficPolicy: fc.oneof(word('Cluster', 'Local'), fc.constant('')),
    trafficDistribution: word('PreferClose'),
  },
  { requiredKeys: ['clusterIP', 'ports'] },
);

const ingress = fc.record(
  { ip: address, hostname: junk, ipMode: fc.oneof(word('VIP', 'Proxy'), fc.constant('')) },
  { requiredKeys: [] },
);

const service = fc.record({
  metadata,
  spec: serviceSpec,
  status: fc.record({ loadBalancer: fc.record({ ingress: some(ingress) }, { requiredKeys: [] }) }),
});

const hints = some(fc.record({ name: fc.oneof(fc.constantFrom('zone-a', 'node1', ''), junk) }));
const flags = { ready: fc.boolean(), serving: fc.boolean(), terminating: fc.boolean() };

const endpoint = fc.record(
  {
    addresses: mostly(
      address.map((one) => [one]),
      some(address),
    ),
    conditions: fc.record(flags, { requiredKeys: [] }),
    hostname: name,
    targetRef: fc.record({ kind: word('Pod'), name, namespace, uid: junk }, { requiredKeys: [] }),
    nodeName: fc.oneof(fc.constantFrom('node1', 'node2.example', ''), name, junk),
    zone: fc.oneof(fc.constantFrom('zone-a', ''), junk),
    hints: fc.record({ forZones: hints, forNodes: hints }, { requiredKeys: [] }),
  },
  { requiredKeys: ['conditions', 'addresses'] },
);

const slicePort = fc.record(
  {
    name: fc.oneof(name, fc.constantFrom('http', '')),
    protocol: fc.oneof(word('TCP', 'UDP', 'SCTP'), fc.constant('')),
    port: number,
    appProtocol: junk,
  },
  { requiredKeys: [] },
);

const slice = fc.record({
  metadata,
  endpoints: some(endpoint),
  ports: some(slicePort),
  addressType: mostly(fc.constant('IPv4'), fc.oneof(word('IPv6', 'FQDN'), fc.constant(''))),
});

const node = fc.record({
  metadata,
  spec: fc.record(
    {
      podCIDR: cidr,
      podCIDRs: some(cidr),
      providerID: junk,
      taints: some(fc.record({ key: word('ToBeDeletedByClusterAutoscaler', ''), effect: junk })),
    },
    { requiredKeys: [] },
  ),
  status: fc.record(
    {
      addresses: some(
        fc.record({
          type: word('InternalIP', 'ExternalIP', 'Hostname'),
          address: fc.oneof(address, fc.constant('')),
        }),
      ),
    },
    { requiredKeys: [] },
  ),
});

const serviceCidr = fc.record({
  metadata,
  spec: fc.record({ cidrs: some(fc.oneof(cidr, fc.constant(''))) }, { requiredKeys: [] }),
});

/** One of each kind: how it is read, and random objects of it. */
export const KINDS: readonly {
  readonly resource: Resource<unknown>;
  readonly objects: fc.Arbitrary<object>;
}[] = [
  { resource: services(new Interner()), objects: service },
  { resource: endpointSlices(new Interner()), objects: slice },
  { resource: oneNode('node1'), objects: node },
  { resource: SERVICE_CIDRS, objects: serviceCidr },
];

export interface TwoForms {
  readonly resource: Resource<unknown>;
  readonly raw: unknown;
  readonly bytes: Buffer;
}

export const anyObject: fc.Arbitrary<TwoForms> = inTwoForms(KINDS);

function inTwoForms(kinds: typeof KINDS): fc.Arbitrary<TwoForms> {
  return fc
    .oneof(...kinds.map(({ resource, objects }) => objects.map((raw) => ({ resource, raw }))))
    .map(({ resource, raw }) => ({ resource, raw, bytes: encodeObject(resource.kind, raw) }));
}

/* Objects as nearly all are, so that they are read straight. */

const label = fc.stringMatching(/^[a-z0-9]([a-z0-9-]{0,10}[a-z0-9])?$/);
const subdomain = fc.array(label, { minLength: 1, maxLength: 3 }).map((parts) => parts.join('.'));
const goodIpv4 = fc
  .tuple(fc.constantFrom(1, 10, 99, 100, 172, 192, 203), fc.nat(255), fc.nat(255), fc.nat(255))
  .map((octets) => octets.join('.'));
const goodIpv6 = fc
  .tuple(fc.nat(0xffff), fc.integer({ min: 1, max: 0xffff }))
  .map(([one, other]) => `fd00:${(one || 1).toString(16)}::${other.toString(16)}`);
const goodPort = fc.integer({ min: 1, max: 65_535 });
const goodMetadata = (labels: object): fc.Arbitrary<object> =>
  fc.record(
    {
      name: label,
      namespace: label,
      resourceVersion: fc.nat().map(String),
      creationTimestamp: time,
      labels: fc.constant(labels),
      annotations: fc.oneof(
        fc.constant({ other: 'x' }),
        time.map((text) => ({ 'endpoints.kubernetes.io/last-change-trigger-time': text })),
      ),
      managedFields: fc.constant([{ manager: 'curl', fieldsV1: { 'f:spec': {} } }]),
    },
    { requiredKeys: ['name', 'namespace', 'creationTimestamp', 'labels'] },
  );

const goodServicePort = fc.record(
  {
    name: label,
    protocol: fc.constantFrom('TCP', 'UDP', 'SCTP'),
    port: goodPort,
    targetPort: fc.oneof(goodPort, label),
    nodePort: goodPort,
  },
  { requiredKeys: ['name', 'port'] },
);

const families = fc.oneof(
  goodIpv4.map((ip) => ({ clusterIP: ip, clusterIPs: [ip], ipFamilies: ['IPv4'] })),
  fc
    .tuple(goodIpv6, goodIpv4)
    .map(([six, four]) => ({ clusterIP: six, clusterIPs: [six, four], ipFamilies: ['IPv6', 'IPv4'] })),
);

const goodService = fc
  .tuple(
    goodMetadata({ app: 'web', 'kubernetes.io/service-name': 'Means_nothing' }),
    families,
    fc.record(
      {
        type: fc.constantFrom('ClusterIP', 'NodePort', 'LoadBalancer'),
        ports: fc.array(goodServicePort, { minLength: 1, maxLength: 3 }),
        sessionAffinity: fc.constant('None'),
        externalTrafficPolicy: fc.constantFrom('Cluster', 'Local'),
        internalTrafficPolicy: fc.constantFrom('Cluster', 'Local', ''),
        healthCheckNodePort: goodPort,
        selector: fc.constant({ app: 'web' }),
      },
      { requiredKeys: ['ports'] },
    ),
  )
  .map(([meta, addresses, spec]) => ({
    metadata: meta,
    spec: { ...spec, ...addresses },
    status: { loadBalancer: {} },
  }));

const goodHints = fc.array(fc.record({ name: fc.oneof(label, fc.constantFrom('', 'a,b', 'a')) }), {
  maxLength: 2,
});

const goodEndpoint = (ip: fc.Arbitrary<string>): fc.Arbitrary<object> =>
  fc.record(
    {
      addresses: fc.oneof(
        ip.map((one) => [one]),
        ip.map((one) => [one, 'anything']),
      ),
      conditions: fc.record(flags, { requiredKeys: [] }),
      targetRef: fc.record({
        kind: fc.constantFrom('Pod', 'Node'),
        name: fc.oneof(subdomain, junk),
        namespace: label,
      }),
      nodeName: fc.oneof(subdomain, fc.constant('')),
      zone: fc.oneof(fc.constantFrom('zone-a', 'Zone_B.c', ''), junk),
      hints: fc.record({ forZones: goodHints, forNodes: goodHints }, { requiredKeys: [] }),
    },
    { requiredKeys: ['conditions', 'addresses'] },
  );

const goodSlicePort = fc.record(
  {
    name: fc.oneof(label, fc.constant('')),
    protocol: fc.constantFrom('TCP', 'UDP', 'SCTP', ''),
    port: goodPort,
  },
  { requiredKeys: ['name', 'port'] },
);

const goodSlice = fc
  .oneof(
    fc.record({ addressType: fc.constant('IPv4'), endpoints: some(goodEndpoint(goodIpv4)) }),
    fc.record({ addressType: fc.constant('IPv6'), endpoints: some(goodEndpoint(goodIpv6)) }),
  )
  .chain((rest) =>
    fc.record({
      metadata: goodMetadata({ 'kubernetes.io/service-name': 'web', app: 'x' }),
      ports: some(goodSlicePort),
      addressType: fc.constant(rest.addressType),
      endpoints: fc.constant(rest.endpoints),
    }),
  );

/** As `KINDS`, in order. */
export const ORDERLY_KINDS: typeof KINDS = [
  { resource: services(new Interner()), objects: goodService },
  { resource: endpointSlices(new Interner()), objects: goodSlice },
];

export const orderlyObject: fc.Arbitrary<TwoForms> = inTwoForms(ORDERLY_KINDS);
