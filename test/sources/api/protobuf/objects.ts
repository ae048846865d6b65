/** Random objects that an API server could hold: types as in Go, values as they come. As JSON and as protobuf. */
import fc from 'fast-check';
import { Interner } from '../../../../src/sources/api/interner.ts';
import {
  endpointSlices,
  oneNode,
  type Resource,
  SERVICE_CIDRS,
  services,
} from '../../../../src/sources/api/resources.ts';
import { encodeObject } from '../../../support/apiServer/protobuf/encode.ts';

type Kinds = readonly { readonly resource: Resource<unknown>; readonly objects: fc.Arbitrary<object> }[];

const junk = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 80 });
const oddName = fc.constantFrom('a.b', 'Not_A_Name', '-', 'x'.repeat(64), 'y'.repeat(300), 'ü');
const oddAddress = fc.oneof(
  fc.ipV6(),
  fc.constantFrom('010.0.0.1', '127.0.0.1', '::1', '::ffff:10.0.0.1', ' 10.0.0.2', 'None', 'x', '10.0.0.256'),
  fc.constantFrom('10.0.0', '10.0.0.1.', '1.2.3.4.5', '10..0.1', '0.0.0.0', '224.0.0.1', '169.254.1.1'),
  fc.constantFrom('fe80::1', '10.0.0.1'),
  junk,
);
const cidr = fc.oneof(
  fc.constantFrom('10.0.0.0/8', '10.0.0.1/8', ' 10.0.0.0/8', 'fd00::/8', '10.0.0.0'),
  junk,
);
const label = fc.stringMatching(/^[a-z0-9]([a-z0-9-]{0,10}[a-z0-9])?$/);
const subdomain = fc.array(label, { minLength: 1, maxLength: 3 }).map((parts) => parts.join('.'));
const ipv4 = fc
  .tuple(fc.constantFrom(1, 10, 99, 100, 172, 192, 203), fc.nat(255), fc.nat(255), fc.nat(255))
  .map((octets) => octets.join('.'));
const ipv6 = fc
  .tuple(fc.integer({ min: 1, max: 0xffff }), fc.integer({ min: 1, max: 0xffff }))
  .map(([one, other]) => `fd00:${one.toString(16)}::${other.toString(16)}`);
const time = fc
  .date({ min: new Date('0001-01-01T00:00:00Z'), max: new Date('9999-12-31T23:59:59Z'), noInvalidDate: true })
  .map((date) => `${date.toISOString().slice(0, 19)}Z`);
const flags = { ready: fc.boolean(), serving: fc.boolean(), terminating: fc.boolean() };
const some = <T>(item: fc.Arbitrary<T>): fc.Arbitrary<T[]> => fc.array(item, { maxLength: 4 });
const one = <T>(item: fc.Arbitrary<T>): fc.Arbitrary<T[]> => item.map((value) => [value]);
const LABELS = [
  'kubernetes.io/service-name',
  'service.kubernetes.io/headless',
  'service.kubernetes.io/service-proxy-name',
  'topology.kubernetes.io/zone',
  'app',
];
const TRIGGER_TIME = 'endpoints.kubernetes.io/last-change-trigger-time';

/** In order: as nearly all are, so that they are read straight. */
function kindsOf(isInOrder: boolean): Kinds {
  /** One in sixteen is odd, so that whole objects of dozens of fields are in order now and then. */
  const mostly = <T>(good: fc.Arbitrary<T>, odd: fc.Arbitrary<T>): fc.Arbitrary<T> =>
    isInOrder ? good : fc.oneof({ weight: 15, arbitrary: good }, { weight: 1, arbitrary: odd });
  const either = <T>(good: fc.Arbitrary<T>, other: fc.Arbitrary<T>): fc.Arbitrary<T> =>
    isInOrder ? good : fc.oneof(good, other);
  const odd = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
    either(fc.constant(undefined), value);
  const map = (fields: Record<string, fc.Arbitrary<unknown>>, ...required: string[]): fc.Arbitrary<object> =>
    fc.record(fields, { requiredKeys: isInOrder ? required : [] });
  const word = (...known: readonly string[]): fc.Arbitrary<string> => mostly(fc.constantFrom(...known), junk);

  const name = mostly(label, oddName);
  const port = mostly(
    fc.integer({ min: 1, max: 65_535 }),
    fc.oneof(fc.constantFrom(0, -1, 65_536), fc.integer()),
  );
  /** Go's JSON leaves these out where they are 0 or empty. */
  const nonZero = port.map((value) => value || 80);
  const address = mostly(ipv4, oddAddress);

  const metadata = fc.record(
    {
      name,
      namespace: mostly(label, fc.constantFrom('a.b', 'UPPER')),
      resourceVersion: fc.nat().map(String),
      creationTimestamp: time,
      deletionTimestamp: odd(time),
      labels: mostly(
        fc.constantFrom({ 'kubernetes.io/service-name': 'web', app: 'web' }),
        fc.dictionary(fc.constantFrom(...LABELS), fc.oneof(name, oddName), { maxKeys: 3 }),
      ),
      annotations: fc.dictionary(
        mostly(fc.constantFrom(TRIGGER_TIME, 'other'), fc.constant('k8s.io/initial-events-end')),
        mostly(time, fc.oneof(fc.constantFrom('2026-05-01T12:00:00.5Z', 'yesterday', ''), junk)),
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
      name: either(label, fc.constantFrom('http', 'https')),
      protocol: word('TCP', 'UDP', 'SCTP'),
      port,
      targetPort: fc.oneof(port, junk),
      nodePort: nonZero,
      appProtocol: fc.constantFrom('', 'h2'),
    },
    { requiredKeys: isInOrder ? ['port', 'name'] : ['port'] },
  );
  const addresses = mostly(
    fc.oneof(
      ipv4.map((ip) => ({ clusterIP: ip, clusterIPs: [ip], ipFamilies: ['IPv4'] })),
      fc
        .tuple(ipv6, ipv4)
        .map(([six, four]) => ({ clusterIP: six, clusterIPs: [six, four], ipFamilies: ['IPv6', 'IPv4'] })),
    ),
    fc.record({
      clusterIP: fc.oneof(address, oddAddress),
      clusterIPs: some(address),
      ipFamilies: some(word('IPv4', 'IPv6')),
    }),
  );
  const clientIP = fc.record({ timeoutSeconds: port }, { requiredKeys: [] });
  const serviceSpec = map({
    type: mostly(
      fc.constantFrom('ClusterIP', 'NodePort', 'LoadBalancer'),
      fc.oneof(fc.constant('ExternalName'), junk),
    ),
    selector: fc.constant({ app: 'web' }),
    externalIPs: odd(some(address)),
    sessionAffinity: either(fc.constant('None'), word('ClientIP')),
    loadBalancerSourceRanges: odd(some(cidr)),
    externalTrafficPolicy: word('Cluster', 'Local'),
    healthCheckNodePort: nonZero,
    publishNotReadyAddresses: fc.boolean(),
    sessionAffinityConfig: odd(fc.record({ clientIP }, { requiredKeys: [] })),
    internalTrafficPolicy: word('Cluster', 'Local', ''),
    trafficDistribution: word('PreferClose'),
  });
  const ports = mostly(fc.array(servicePort, { minLength: 1, maxLength: 3 }), some(servicePort));
  const ingress = fc.record(
    { ip: address, hostname: junk, ipMode: word('VIP', 'Proxy', '') },
    { requiredKeys: [] },
  );
  const service = fc.record({
    metadata,
    spec: fc
      .tuple(serviceSpec, addresses, ports)
      .map(([spec, ips, list]) => ({ ...spec, ...ips, ports: list })),
    status: fc.record({ loadBalancer: fc.record({ ingress: odd(some(ingress)) }) }),
  });

  const hints = some(fc.record({ name: fc.oneof(label, fc.constantFrom('zone-a', '', 'a,b', 'a'), junk) }));
  const endpoint = (ip: fc.Arbitrary<string>): fc.Arbitrary<object> =>
    fc.record(
      {
        addresses: mostly(
          fc.oneof(
            one(ip),
            ip.map((first) => [first, 'anything']),
          ),
          some(address),
        ),
        conditions: fc.record(flags, { requiredKeys: [] }),
        hostname: name,
        targetRef: map(
          { kind: word('Pod', 'Node'), name: fc.oneof(subdomain, junk), namespace: label, uid: junk },
          'kind',
          'name',
          'namespace',
        ),
        nodeName: mostly(fc.oneof(subdomain, fc.constant('')), fc.oneof(oddName, junk)),
        zone: fc.oneof(fc.constantFrom('zone-a', 'Zone_B.c', ''), junk),
        hints: fc.record({ forZones: hints, forNodes: hints }, { requiredKeys: [] }),
      },
      { requiredKeys: ['conditions', 'addresses'] },
    );
  const slicePort = map(
    {
      name: mostly(fc.oneof(label, fc.constant('')), oddName),
      protocol: word('TCP', 'UDP', 'SCTP', ''),
      port,
      appProtocol: junk,
    },
    'name',
    'port',
  );
  const sliceOf = (family: string, ip: fc.Arbitrary<string>): fc.Arbitrary<object> =>
    fc.record({
      metadata,
      endpoints: some(endpoint(mostly(ip, oddAddress))),
      ports: some(slicePort),
      addressType: mostly(fc.constant(family), fc.oneof(word('IPv4', 'IPv6', 'FQDN'), fc.constant(''))),
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
    status: map({
      addresses: some(
        fc.record({
          type: word('InternalIP', 'ExternalIP', 'Hostname'),
          address: fc.oneof(address, fc.constant('')),
        }),
      ),
    }),
  });
  const serviceCidr = fc.record({
    metadata,
    spec: map({ cidrs: some(fc.oneof(cidr, fc.constant(''))) }),
  });

  return [
    { resource: services(new Interner()), objects: service },
    {
      resource: endpointSlices(new Interner()),
      objects: fc.oneof(sliceOf('IPv4', ipv4), sliceOf('IPv6', ipv6)),
    },
    { resource: oneNode('node1'), objects: node },
    { resource: SERVICE_CIDRS, objects: serviceCidr },
  ];
}

/** One of each kind: how it is read, and random objects of it. */
export const KINDS = kindsOf(false);

/** Those that can be read straight. */
export const ORDERLY_KINDS = kindsOf(true).filter(({ resource }) => resource.readStraight);

interface TwoForms {
  readonly resource: Resource<unknown>;
  readonly raw: unknown;
  readonly bytes: Buffer;
}

const inTwoForms = (kinds: Kinds): fc.Arbitrary<TwoForms> =>
  fc
    .oneof(...kinds.map(({ resource, objects }) => objects.map((raw) => ({ resource, raw }))))
    .map(({ resource, raw }) => ({ resource, raw, bytes: encodeObject(resource.kind, raw) }));

export const anyObject = inTwoForms(KINDS);
export const orderlyObject = inTwoForms(ORDERLY_KINDS);
