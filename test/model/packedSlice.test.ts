import fc from 'fast-check';
import { expect, test } from 'vitest';
import { deepEqual } from '../../src/model/equal.ts';
import type { EndpointSlice, SliceEndpoint } from '../../src/model/objects.ts';
import { endpointCountOf, type EndpointState, PackedSlice } from '../../src/model/packedSlice.ts';
import { parseIp } from '../../src/model/ip.ts';

const ADDRESSES = ['10.0.0.1', '10.0.0.2', '10.0.0.3'].flatMap((text) => parseIp(text) ?? []);
const names = fc.array(fc.constantFrom('a', 'b', 'a,b', ''), { maxLength: 2 });
const maybe = (...values: readonly string[]) => fc.option(fc.constantFrom(...values), { nil: undefined });

const endpoint: fc.Arbitrary<SliceEndpoint> = fc
  .record({
    ip: fc.constantFrom(...ADDRESSES),
    nodeName: maybe('node1', 'node2'),
    ready: fc.boolean(),
    serving: fc.boolean(),
    terminating: fc.boolean(),
    zoneHints: names,
    nodeHints: names,
    pod: maybe('web-1', 'web-2'),
    zone: maybe('zone-a'),
  })
  .map(({ pod, zone, ...rest }) => ({
    ...rest,
    ...(pod !== undefined && { pod }),
    ...(zone !== undefined && { zone }),
  }));

const slice: fc.Arbitrary<EndpointSlice> = fc.record({
  namespace: fc.constant('shop'),
  name: fc.constantFrom('web-1', 'web-2'),
  service: fc.constant('web'),
  family: fc.constant('IPv4' as const),
  ports: fc.constant([{ name: 'http', protocol: 'TCP' as const, port: 80 }]),
  endpoints: fc.array(endpoint, { maxLength: 5 }),
  triggerTime: fc.constantFrom(undefined, 17),
});

/** As a source shares them. */
function sharing(): (state: EndpointState) => EndpointState {
  const known = new Map<string, EndpointState>();
  return (state) => {
    const id = JSON.stringify(state);
    const before = known.get(id) ?? state;
    known.set(id, before);
    return before;
  };
}

test('a packed slice has the same endpoints', () => {
  fc.assert(
    fc.property(slice, (value) => {
      const packed = PackedSlice.of(value, sharing());
      expect(packed.endpoints).toEqual(value.endpoints);
      expect(packed.endpoints.map(Object.keys)).toEqual(value.endpoints.map(Object.keys));
      expect(endpointCountOf(packed)).toBe(value.endpoints.length);
      const { namespace, name, service, family, ports, triggerTime, endpoints } = packed;
      expect({ namespace, name, service, family, ports, endpoints, triggerTime }).toEqual(value);
    }),
  );
});

test('two are equal exactly when what they were made from is', () => {
  fc.assert(
    fc.property(slice, slice, fc.boolean(), (a, b, isSame) => {
      const other = isSame ? structuredClone(a) : b;
      const share = sharing();
      expect(deepEqual(PackedSlice.of(a, share), PackedSlice.of(other, share))).toBe(deepEqual(a, other));
    }),
  );
});
