import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FAMILIES } from '../../../src/model/ip.ts';
import { projectEndpointSlice } from '../../../src/model/project/endpointSlice.ts';
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
import { KINDS } from '../../sources/api/protobuf/objects.ts';
import { numRuns } from '../../support/randomCases.ts';

const [rawService, rawSlice, rawNode] = ['Service', 'EndpointSlice', 'Node'].map(
  (kind) => KINDS.find(({ resource }) => resource.kind === kind)?.objects ?? fc.constant({}),
) as [fc.Arbitrary<object>, fc.Arbitrary<object>, fc.Arbitrary<object>];

function valueOf<T>(projection: Projection<T>): T | undefined {
  return projection.kind === 'object' ? projection.value : undefined;
}

/** Through JSON too, as everything that is written to a file. */
function again<T>(object: unknown, projector: (raw: unknown) => Projection<T>): T | undefined {
  return valueOf(projector(JSON.parse(JSON.stringify(object))));
}

function roundTrip<T>(
  projector: (raw: unknown) => Projection<T>,
  write: (value: T) => object,
  raw: unknown,
): boolean {
  const value = valueOf(projector(JSON.parse(JSON.stringify(raw))));
  if (value === undefined) return false;
  expect(again(write(value), projector)).toEqual(value);
  return true;
}

describe('what is written in Kubernetes’ shape reads as the same object again', () => {
  it.each([
    ['Service', rawService, (raw: unknown) => roundTrip(projectService, serviceToKubernetes, raw)],
    [
      'EndpointSlice',
      rawSlice,
      (raw: unknown) => roundTrip(projectEndpointSlice, endpointSliceToKubernetes, raw),
    ],
    ['Node', rawNode, (raw: unknown) => roundTrip(projectNode, nodeToKubernetes, raw)],
  ])('%s', (_, objects, check) => {
    let read = 0;
    fc.assert(
      fc.property(objects, (raw) => {
        if (check(raw)) read += 1;
      }),
    );
    expect(read).toBeGreaterThan(numRuns / 10);
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
