/** A service port comes back from its bytes as it was, and any bytes are read without a throw. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ipOfBytes, parseCidr } from '../../src/model/ip.ts';
import { PROTOCOLS } from '../../src/model/objects.ts';
import { conditionOf, PackedEndpoint } from '../../src/model/packedEndpoint.ts';
import { ByteWriter } from '../../src/plan/packedBytes.ts';
import { decodeServicePort, decodeServicePortId, encodeServicePort } from '../../src/plan/portCodec.ts';
import type { Route, ServicePortPlan } from '../../src/plan/types.ts';
import { anyServiceLine, anySliceLine } from './anyCluster.ts';
import { Cluster } from './cluster.ts';

const anyIp = fc
  .oneof(
    fc.uint8Array({ minLength: 4, maxLength: 4 }),
    fc.uint8Array({ minLength: 14, maxLength: 14 }).map((rest) => Uint8Array.of(0xfd, 0, ...rest)),
  )
  .map((bytes) => ipOfBytes(bytes) ?? expect.unreachable());
const anyCidr = fc.constantFrom('10.0.0.0/8', '0.0.0.0/0', 'fd00::/8', '192.0.2.7/32').map((text) => {
  return parseCidr(text) ?? expect.unreachable();
});
const anyPort = fc.integer({ min: 0, max: 65535 });
const anyNumber = fc.integer({ min: 0, max: 2 ** 40 });
const anyRoute: fc.Arbitrary<Route> = fc.oneof(
  fc.record({
    verdict: fc.constant('forward' as const),
    pool: fc.constantFrom('cluster' as const, 'local' as const),
    masquerade: fc.boolean(),
  }),
  fc.record({ verdict: fc.constantFrom('reject' as const, 'drop' as const) }),
);
const anyRoutes = fc.record({ pod: anyRoute, node: anyRoute, outside: anyRoute });
const anyHints = fc.array(fc.constantFrom('zone-a', 'zone-b', 'zöne'), { maxLength: 3 });
const anyPool = fc.array(
  fc
    .record({
      ip: anyIp,
      port: anyPort,
      isLocal: fc.boolean(),
      ready: fc.boolean(),
      serving: fc.boolean(),
      terminating: fc.boolean(),
      zoneHints: anyHints,
      nodeHints: anyHints,
    })
    .map((each) => new PackedEndpoint(each.ip, each.port, conditionOf(each, each.isLocal))),
  { maxLength: 5 },
);
const maybe = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
  fc.option(value, { nil: undefined });
const anyServicePort: fc.Arbitrary<ServicePortPlan> = fc
  .record({
    id: fc.string(),
    service: fc.string({ unit: 'binary' }),
    name: fc.string(),
    protocol: fc.constantFrom(...PROTOCOLS),
    frontends: fc.array(
      fc.record({
        kind: fc.constantFrom('clusterIP', 'externalIP', 'loadBalancerIP', 'nodePort'),
        address: maybe(anyIp),
        port: anyPort,
        routes: anyRoutes,
        allowedSources: maybe(fc.record({ ranges: fc.array(anyCidr), hosts: fc.array(anyIp) })),
      }),
    ),
    internal: anyRoutes,
    external: anyRoutes,
    pools: fc.record({ cluster: anyPool, local: anyPool }, { requiredKeys: [] }),
    preservesClientIP: fc.boolean(),
    affinitySeconds: maybe(anyNumber),
    healthCheckNodePort: anyPort,
    endpointCount: anyNumber,
  })
  .chain((port) =>
    fc
      .record(
        {
          draining: anyPool,
          refusedIPs: fc.array(anyIp),
          localEndpoints: fc.array(fc.record({ ip: anyIp, port: anyPort })),
        },
        { requiredKeys: [] },
      )
      .map((rest) => ({ ...port, ...rest })),
  );

function encode(port: ServicePortPlan): Uint8Array {
  const writer = new ByteWriter();
  writer.begin();
  encodeServicePort(writer, port);
  return writer.bytes.slice();
}

describe('a service port as bytes', () => {
  test('comes back as it was', () => {
    fc.assert(
      fc.property(anyServicePort, (port) => {
        const bytes = encode(port);
        expect(decodeServicePort(bytes)).toEqual(port);
        expect(decodeServicePortId(bytes)).toBe(port.id);
      }),
    );
  });

  test('so does every plan of a cluster, and equal ones have equal bytes', () => {
    fc.assert(
      fc.property(fc.array(fc.oneof(anyServiceLine, anySliceLine), { maxLength: 12 }), (lines) => {
        const [one, other] = [new Cluster(), new Cluster()];
        one.tell(...lines).replan();
        other.tell(...lines).replan();
        for (const [id, port] of one.planner.servicePorts) {
          expect(decodeServicePort(encode(port))).toEqual(port);
          expect(encode(port)).toEqual(encode(other.planner.servicePorts.get(id) ?? expect.unreachable()));
        }
      }),
    );
  });

  test('any bytes are read without a throw', () => {
    const anyBytes = fc.oneof(
      fc.uint8Array({ maxLength: 200 }),
      fc.tuple(anyServicePort, fc.nat(), fc.nat({ max: 255 })).map(([port, at, value]) => {
        const bytes = encode(port);
        bytes[at % bytes.length] = value;
        return bytes;
      }),
      fc.tuple(anyServicePort, fc.nat()).map(([port, end]) => {
        const bytes = encode(port);
        return bytes.subarray(0, end % bytes.length);
      }),
    );
    fc.assert(
      fc.property(anyBytes, (bytes) => {
        const port = decodeServicePort(bytes);
        // What is read is a service port: it can be written again.
        if (port) expect(decodeServicePort(encode(port))).toEqual(port);
      }),
    );
  });

  test('takes less than ten bytes for each endpoint of a large pool', () => {
    const endpoints = Array.from(
      { length: 1000 },
      (_, index) => `| 10.244.${index >> 8}.${index & 255} node-b`,
    );
    const cluster = new Cluster();
    cluster.tell('a/x 10.96.0.1 80', `a/x-1 of x 80 ${endpoints.join(' ')}`).replan();
    const [port = expect.unreachable()] = [...cluster.planner.servicePorts.values()];
    expect(port.pools.cluster).toHaveLength(1000);
    expect(encode(port).length).toBeLessThan(10_000);
  });
});
