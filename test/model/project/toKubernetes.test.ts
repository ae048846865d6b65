import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FAMILIES } from '../../../src/model/ip.ts';
import { projectEndpoints, projectEndpointSlice } from '../../../src/model/project/endpointSlice.ts';
import { projectNode } from '../../../src/model/project/node.ts';
import { projectService } from '../../../src/model/project/service.ts';
import {
  endpointSliceToKubernetes,
  nodeToKubernetes,
  serviceOfPorts,
  serviceToKubernetes,
} from '../../../src/model/project/toKubernetes.ts';
import { servicePorts } from '../../../src/model/serviceTracker.ts';
import type { Projection } from '../../../src/text/cursor.ts';
import { printRfc3339 } from '../../../src/text/time.ts';
import { numRuns } from '../../support/randomCases.ts';

const name = fc.constantFrom('web', 'a', '0-9', 'x'.repeat(63));
const ip4 = fc.constantFrom(
  '10.0.0.1',
  '192.0.2.7',
  '169.254.20.10',
  '203.0.113.255',
  '127.0.0.1',
  'nonsense',
  '',
);
const ip6 = fc.constantFrom('fd00::1', '2001:db8:0:0::7', 'fe80::1', '::1');
const ip = fc.oneof(ip4, ip6);
const range = fc.constantFrom('10.0.0.0/8', ' 192.0.2.0/24 ', '0.0.0.0/0', 'fd00::/16', '::/0', 'x', '');
const portNumber = fc.constantFrom(0, 1, 80, 443, 65535, 70000);
const protocol = fc.constantFrom('TCP', 'UDP', 'SCTP', '', 'ICMP');
const policy = fc.constantFrom('Cluster', 'Local', '');
const time = fc.constantFrom(
  '2026-05-01T12:00:00Z',
  '1969-12-31T23:59:59.123Z',
  '2024-02-29T00:00:00+02:00',
  'x',
);
const some = <T>(values: fc.Arbitrary<T>): fc.Arbitrary<readonly T[]> => fc.array(values, { maxLength: 4 });

const rawService = fc.record({
  metadata: fc.record({ name, namespace: name, creationTimestamp: fc.option(time) }),
  spec: fc.record(
    {
      type: fc.constantFrom('ClusterIP', 'NodePort', 'LoadBalancer'),
      clusterIP: ip,
      clusterIPs: fc.oneof(fc.tuple(ip4), fc.tuple(ip4, ip6), fc.tuple(ip6, ip4)),
      ipFamilies: fc.subarray(['IPv4', 'IPv6'], { minLength: 0 }),
      ports: fc.array(
        fc.record({
          name: fc.oneof(name, fc.constant('')),
          protocol,
          port: portNumber,
          nodePort: portNumber,
        }),
        { minLength: 1, maxLength: 4 },
      ),
      externalIPs: some(ip),
      loadBalancerSourceRanges: some(range),
      sessionAffinity: fc.constantFrom('None', 'ClientIP'),
      sessionAffinityConfig: fc.option(
        fc.record({ clientIP: fc.record({ timeoutSeconds: fc.constantFrom(1, 60, 86_400, -1) }) }),
      ),
      externalTrafficPolicy: policy,
      internalTrafficPolicy: policy,
      healthCheckNodePort: portNumber,
    },
    { requiredKeys: ['clusterIP', 'ports'] },
  ),
  status: fc.record({
    loadBalancer: fc.record({
      ingress: some(fc.record({ ip, ipMode: fc.constantFrom('VIP', 'Proxy', undefined) })),
    }),
  }),
});

const rawSlice = fc.record({
  metadata: fc.record({
    name,
    namespace: name,
    labels: fc.record({ 'kubernetes.io/service-name': name }),
    annotations: fc.record(
      { 'endpoints.kubernetes.io/last-change-trigger-time': time },
      { requiredKeys: [] },
    ),
  }),
  addressType: fc.constantFrom('IPv4', 'IPv6'),
  ports: some(fc.record({ name: fc.oneof(name, fc.constant('')), protocol, port: portNumber })),
  endpoints: some(
    fc.record({
      addresses: fc.tuple(ip),
      conditions: fc.record(
        { ready: fc.boolean(), serving: fc.boolean(), terminating: fc.boolean() },
        { requiredKeys: [] },
      ),
      nodeName: fc.constantFrom(undefined, 'node-1', 'Not a name'),
      zone: fc.constantFrom(undefined, 'zone-a', 'Not a zone', 7),
      hints: fc.record(
        {
          forZones: some(fc.record({ name: fc.string() })),
          forNodes: some(fc.record({ name: fc.string() })),
        },
        { requiredKeys: [] },
      ),
      targetRef: fc.constantFrom(undefined, { kind: 'Pod', name: 'web-7f-x' }, { kind: 'Node', name: 'n' }),
    }),
  ),
});

const rawEndpoints = fc.record({
  metadata: fc.record({ name, namespace: name }),
  subsets: some(
    fc.record({
      addresses: some(fc.record({ ip, nodeName: fc.constantFrom(undefined, 'node-1') })),
      notReadyAddresses: some(fc.record({ ip })),
      ports: some(fc.record({ name, port: fc.constantFrom(80, 443), protocol })),
    }),
  ),
});

const rawNode = fc.record({
  metadata: fc.record({
    name,
    labels: fc.record({ 'topology.kubernetes.io/zone': fc.constantFrom('', 'A.z', 'a b') }),
  }),
  spec: fc.record({
    podCIDRs: some(range),
    taints: some(fc.record({ key: fc.constantFrom('x', 'ToBeDeletedByClusterAutoscaler') })),
  }),
  status: fc.record({
    addresses: some(
      fc.record({ type: fc.constantFrom('InternalIP', 'ExternalIP', 'Hostname'), address: ip }),
    ),
  }),
});

function valueOf<T>(projection: Projection<T>): T | undefined {
  return projection.kind === 'object' ? projection.value : undefined;
}

/** Through JSON too, as everything that is written to a file. */
function again<T>(object: unknown, projector: (raw: unknown) => Projection<T>): T | undefined {
  return valueOf(projector(JSON.parse(JSON.stringify(object))));
}

describe('what is written in Kubernetes’ shape reads as the same object again', () => {
  it('Service', () => {
    let read = 0;
    fc.assert(
      fc.property(rawService, (raw) => {
        const service = valueOf(projectService(raw));
        if (service === undefined) return;
        read += 1;
        expect(again(serviceToKubernetes(service), projectService)).toEqual(service);
      }),
    );
    expect(read).toBeGreaterThan(numRuns / 5);
  });

  it('EndpointSlice', () => {
    fc.assert(
      fc.property(rawSlice, (raw) => {
        const slice = valueOf(projectEndpointSlice(raw));
        expect(slice).toBeDefined();
        if (slice) expect(again(endpointSliceToKubernetes(slice), projectEndpointSlice)).toEqual(slice);
      }),
    );
  });

  it('Endpoints, as slices', () => {
    fc.assert(
      fc.property(rawEndpoints, (raw) => {
        for (const slice of valueOf(projectEndpoints(raw)) ?? []) {
          expect(again(endpointSliceToKubernetes(slice), projectEndpointSlice)).toEqual(slice);
        }
      }),
    );
  });

  it('Node', () => {
    fc.assert(
      fc.property(rawNode, (raw) => {
        const node = valueOf(projectNode(raw));
        expect(node).toBeDefined();
        if (node) expect(again(nodeToKubernetes(node), projectNode)).toEqual(node);
      }),
    );
  });

  it('a Service with more items than are read', () => {
    const ports = Array.from({ length: 2100 }, (_, index) => ({ name: `p${index}`, port: index + 1 }));
    const many = Array<string>(10_003).fill('192.0.2.1');
    const ranges = Array<string>(10_004).fill('10.0.0.0/8');
    const spec = { clusterIP: '10.0.0.1', ports, externalIPs: many, loadBalancerSourceRanges: ranges };
    const ingress = many.slice(0, 10_001).map((address) => ({ ip: address }));
    const raw = { metadata: { name: 'web' }, spec, status: { loadBalancer: { ingress } } };
    const service = valueOf(projectService(raw));
    expect(service?.unread).toEqual({ ports: 100, externalIPs: 3, loadBalancerIPs: 1, sourceRanges: 4 });
    if (service) expect(again(serviceToKubernetes(service), projectService)).toEqual(service);
  });
});

describe('a Service made of its service ports', () => {
  it('has the same service ports in each family', () => {
    fc.assert(
      fc.property(rawService, (raw) => {
        const service = valueOf(projectService(raw));
        if (service === undefined) return;
        const all = FAMILIES.flatMap((family) => servicePorts(service, family));
        const made = serviceOfPorts(all);
        expect(made).toBeDefined();
        if (made === undefined) return;
        const { type } = made;
        expect(FAMILIES.flatMap((family) => servicePorts(made, family))).toEqual(
          all.map((port) => ({ ...port, type })),
        );
        const isLocal = all.some(({ externalPolicyLocal }) => externalPolicyLocal);
        if (!isLocal) expect(type).toBe(service.type);
        expect(again(serviceToKubernetes(made), projectService)).toEqual(made);
      }),
    );
  });
});

describe('printRfc3339', () => {
  it('prints what Date prints', () => {
    const first = Date.parse('0000-01-01T00:00:00Z');
    const last = Date.parse('9999-12-31T23:59:59.999Z');
    fc.assert(
      fc.property(fc.integer({ min: first, max: last }), (at) => {
        expect(printRfc3339(at)).toBe(new Date(at).toISOString().replace('.000Z', 'Z'));
      }),
    );
  });
});
