import { describe, expect, it } from 'vitest';
import type { EndpointSlice } from '../../../src/model/objects.ts';
import { projectEndpointSlice } from '../../../src/model/project/endpointSlice.ts';
import { printProblem } from '../../support/printProblem.ts';

function raw(parts: object = {}, metadata: object = {}): unknown {
  return {
    metadata: {
      name: 'web-abc.1',
      namespace: 'shop',
      labels: { 'kubernetes.io/service-name': 'web' },
      ...metadata,
    },
    addressType: 'IPv4',
    ports: [{ name: 'http', port: 8080 }],
    endpoints: [{ addresses: ['10.0.0.1'] }],
    ...parts,
  };
}

function read(parts?: object, metadata?: object): { slice: EndpointSlice; warnings: readonly string[] } {
  const projection = projectEndpointSlice(raw(parts, metadata));
  if (projection.kind !== 'object') throw new Error(JSON.stringify(projection));
  return { slice: projection.value, warnings: projection.warnings.map(printProblem) };
}

const PLAIN = {
  nodeName: undefined,
  ready: true,
  serving: true,
  terminating: false,
  zoneHints: [],
  nodeHints: [],
};

describe('a sound slice', () => {
  it('has defaults for what is left out', () => {
    expect(read()).toEqual({
      slice: {
        namespace: 'shop',
        name: 'web-abc.1',
        service: 'web',
        family: 'IPv4',
        ports: [{ name: 'http', protocol: 'TCP', port: 8080 }],
        endpoints: [{ ip: '10.0.0.1', ...PLAIN }],
        triggerTime: undefined,
      },
      warnings: [],
    });
  });

  it.each([
    [{}, { ready: true, serving: true, terminating: false }],
    [{ ready: false }, { ready: false, serving: true, terminating: false }],
    [
      { ready: false, serving: true, terminating: true },
      { ready: false, serving: true, terminating: true },
    ],
  ])('conditions %j', (conditions, expected) => {
    const { slice } = read({ endpoints: [{ addresses: ['10.0.0.1'], conditions }] });
    expect(slice.endpoints[0]).toMatchObject(expected);
  });

  it('keeps node names, hints and the trigger time', () => {
    const annotations = {
      'endpoints.kubernetes.io/last-change-trigger-time': '2026-05-01T12:00:00.123456789+02:00',
    };
    const hints = { forZones: [{ name: 'zone_A' }, { name: 'zone-b' }], forNodes: [{ name: 'node1' }] };
    const { slice } = read(
      { endpoints: [{ addresses: ['10.0.0.1'], nodeName: 'node1.example', hints }] },
      { annotations },
    );
    expect(slice.triggerTime).toBe(Date.UTC(2026, 4, 1, 10, 0, 0, 123));
    expect(slice.endpoints).toEqual([
      {
        ...PLAIN,
        ip: '10.0.0.1',
        nodeName: 'node1.example',
        zoneHints: ['zone_A', 'zone-b'],
        nodeHints: ['node1'],
      },
    ]);
  });

  it.each([
    ['zone-a', { zone: 'zone-a' }],
    ['Zone_1.x', { zone: 'Zone_1.x' }],
    ['', {}],
    ['<img>', {}],
    [7, {}],
    [null, {}],
  ])('keeps the zone %j for people, if it can be one', (zone, expected) => {
    const { slice, warnings } = read({ endpoints: [{ addresses: ['10.0.0.1'], zone }] });
    expect(slice.endpoints).toEqual([{ ...PLAIN, ip: '10.0.0.1', ...expected }]);
    expect(warnings).toEqual([]);
  });

  it('may have no ports and no endpoints', () => {
    expect(read({ ports: null, endpoints: null }).slice).toMatchObject({ ports: [], endpoints: [] });
  });

  it.each<readonly [problem: string, parts: object, metadata: object]>([
    [
      'metadata.annotations.endpoints.kubernetes.io/last-change-trigger-time "now" is not a time',
      {},
      { annotations: { 'endpoints.kubernetes.io/last-change-trigger-time': 'now' } },
    ],
    ['ports[0].name is missing', { ports: [{ port: 80 }] }, {}],
    ['ports[0].port is missing', { ports: [{ name: 'a' }] }, {}],
    ['ports[0].port is 0', { ports: [{ name: 'a', port: 0 }] }, {}],
    ['endpoints[0].addresses is empty', { endpoints: [{ addresses: [] }] }, {}],
    ...[
      ['[0] is empty', ''],
      ['[0] "x" is not an IP address', 'x', '10.0.0.1'],
      ['[0] fd00::1 is not IPv4', 'fd00::1'],
      ['[0] 127.1.2.3 is a loopback address', '127.1.2.3'],
      ['[0] 169.254.1.1 is a link-local address', '169.254.1.1'],
    ].map(
      ([text, ...addresses]) =>
        [`endpoints[0].addresses${text}`, { endpoints: [{ addresses }] }, {}] as const,
    ),
  ])('is used without the part: %s', (expected, parts, metadata) => {
    const { slice, warnings } = read(parts, metadata);
    expect(warnings).toEqual([expect.stringMatching(new RegExp(`^${escapeRegExp(expected)} \\(expected`))]);
    expect(slice.ports.length + slice.endpoints.length).toBe(Object.keys(parts).length === 0 ? 2 : 1);
  });

  it.each(['::1', '::', 'fe80::1', 'febf::1', 'ff02::1'])('leaves out the special address %s', (address) => {
    const { slice, warnings } = read({
      addressType: 'IPv6',
      endpoints: [{ addresses: [address] }, { addresses: ['fd00::1'] }],
    });
    expect(slice.endpoints).toHaveLength(1);
    expect(warnings).toHaveLength(1);
  });
});

describe('a slice that is not for us', () => {
  it.each([
    ['its addresses are host names', { addressType: 'FQDN' }, {}],
    ['it has no label kubernetes.io/service-name', {}, { labels: {} }],
    [
      'no service can have the name in its label kubernetes.io/service-name',
      {},
      { labels: { 'kubernetes.io/service-name': 'Web_2.x' } },
    ],
    [
      'its service is headless',
      {},
      { labels: { 'kubernetes.io/service-name': 'web', 'service.kubernetes.io/headless': '' } },
    ],
  ])('%s', (reason, parts, metadata) => {
    expect(projectEndpointSlice(raw(parts, metadata))).toEqual({ kind: 'ignored', reason });
  });
});

describe('a slice that cannot be used', () => {
  it.each([
    ['metadata.name', {}, { name: 'a..b' }],
    ['metadata.labels.kubernetes.io/service-name', {}, { labels: { 'kubernetes.io/service-name': 7 } }],
    ['addressType', { addressType: 'ipv4' }, {}],
    ['addressType', { addressType: undefined }, {}],
    ['endpoints', { endpoints: 'none' }, {}],
  ])('because of %s', (path, parts, metadata) => {
    const projection = projectEndpointSlice(raw(parts, metadata));
    expect(projection.kind === 'invalid' && projection.problems.map(printProblem)).toEqual([
      expect.stringContaining(`${path} `),
    ]);
  });
});

describe('a part that cannot be read costs that part only', () => {
  const good = { addresses: ['10.0.0.9'] };
  const http = { name: 'http', port: 8080 };

  it.each([
    ['ports[1].port', { ports: [http, { name: 'a', port: 65536 }] }],
    ['ports[1].protocol', { ports: [http, { name: 'a', port: 1, protocol: 'ICMP' }] }],
    ['ports[1].name', { ports: [http, { name: 'a_b', port: 1 }] }],
    ['ports[1]', { ports: [http, null] }],
    ['endpoints[0]', { endpoints: [null, good] }],
    ['endpoints[0].addresses', { endpoints: [{ addresses: '10.0.0.1' }, good] }],
    ['endpoints[0].addresses[0]', { endpoints: [{ addresses: [7] }, good] }],
    ['endpoints[0].conditions', { endpoints: [{ addresses: ['10.0.0.1'], conditions: 7 }, good] }],
    [
      'endpoints[0].hints.forZones[0].name',
      { endpoints: [{ addresses: ['10.0.0.1'], hints: { forZones: [{ name: 7 }] } }, good] },
    ],
  ])('%s', (path, parts) => {
    const { slice, warnings } = read(parts);
    expect(slice.ports.map(({ name }) => name)).toEqual(['http']);
    expect(slice.endpoints).toHaveLength(1);
    expect(warnings[0]).toContain(`${path} `);
  });

  it('an endpoint whose node cannot exist is not on this one', () => {
    const { slice, warnings } = read({ endpoints: [{ addresses: ['10.0.0.1'], nodeName: 'Node 1' }] });
    expect(slice.endpoints).toEqual([{ ip: '10.0.0.1', ...PLAIN }]);
    expect(warnings).toHaveLength(1);
  });
});

function escapeRegExp(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);
}
