/**
 * Raw objects → what is kept of them, and what is said about them. What the API server accepts today, or accepted when an
 * object was stored, is served or left out as kube-proxy does, field by field: an object that is refused keeps its last good
 * version, so only what nobody can read, or name, is refused.
 */
import { describe, expect, it, test } from 'vitest';
import { projectEndpoints, projectEndpointSlice } from '../../../src/model/project/endpointSlice.ts';
import { kindOf, nameOf } from '../../../src/model/project/names.ts';
import { projectNode } from '../../../src/model/project/node.ts';
import { projectService } from '../../../src/model/project/service.ts';
import type { Projection } from '../../../src/text/cursor.ts';
import { printProblem } from '../../support/printProblem.ts';

interface Parts {
  readonly metadata?: object;
  readonly spec?: object;
  readonly status?: object;
  readonly [field: string]: unknown;
}

const SERVICE_NAME = 'kubernetes.io/service-name';

function service({ metadata, spec, ...more }: Parts = {}): Projection<unknown> {
  return projectService({
    metadata: { name: 'web', namespace: 'shop', ...metadata },
    spec: { clusterIP: '10.96.0.1', ports: [{ port: 80 }], ...spec },
    ...more,
  });
}

function slice({ metadata, ...more }: Parts = {}): Projection<unknown> {
  return projectEndpointSlice({
    metadata: { name: 'web-abc.1', namespace: 'shop', labels: { [SERVICE_NAME]: 'web' }, ...metadata },
    addressType: 'IPv4',
    ports: [{ name: 'http', port: 8080 }],
    endpoints: [{ addresses: ['10.0.0.1'] }],
    ...more,
  });
}

function endpoints({ metadata, ...more }: Parts): Projection<unknown> {
  return projectEndpoints({ metadata: { name: 'web', namespace: 'shop', ...metadata }, ...more });
}

function node({ metadata, ...more }: Parts): Projection<unknown> {
  return projectNode({ metadata: { name: 'n1', ...metadata }, ...more });
}

function valueOf(projection: Projection<unknown>): unknown {
  if (projection.kind !== 'object') throw new Error(JSON.stringify(projection));
  return projection.value;
}

/** Why it is left alone, what is wrong with it, or what was left out. */
function said(projection: Projection<unknown>): readonly string[] {
  if (projection.kind === 'ignored') return [`ignored: ${projection.reason}`];
  if (projection.kind === 'invalid')
    return projection.problems.map((each) => `refused: ${printProblem(each)}`);
  return projection.warnings.map(printProblem);
}

/** What is kept, and the beginning of each thing that is said. */
type Row = [what: string, parts: Parts, kept: object, ...said: string[]];

function expectRow(projection: Projection<unknown>, kept: object, expected: readonly string[]): void {
  const lines = said(projection);
  expect(lines.map((line, index) => line.slice(0, expected[index]?.length ?? line.length))).toEqual(expected);
  expect(valueOf(projection)).toMatchObject(kept);
}

describe('a Service', () => {
  it('has defaults for what is left out', () => {
    expect(valueOf(service({ metadata: { namespace: undefined } }))).toEqual({
      namespace: 'default',
      name: 'web',
      type: 'ClusterIP',
      createdAt: undefined,
      clusterIPs: { IPv4: '10.96.0.1' },
      ports: [{ name: '', protocol: 'TCP', port: 80, nodePort: 0 }],
      externalIPs: [],
      loadBalancerIPs: [],
      loadBalancerSourceRanges: [],
      affinitySeconds: undefined,
      externalTrafficPolicy: 'Cluster',
      internalTrafficPolicy: 'Cluster',
      healthCheckNodePort: 0,
    });
  });

  it('keeps everything that a proxy needs, in canonical form', () => {
    const projection = service({
      metadata: { name: '7-wonders', creationTimestamp: '2026-05-01T12:00:00Z' },
      spec: {
        type: 'LoadBalancer',
        clusterIP: '172.30.0.041',
        clusterIPs: ['172.30.0.041', 'FD00:96:0::1'],
        ipFamilies: ['IPv4', 'IPv6'],
        ports: [
          { name: 'dns', port: 53, protocol: 'UDP', nodePort: 30053 },
          { name: 'dns', port: 53, protocol: 'TCP', nodePort: 30053 },
          { name: 'sig', port: 99, protocol: 'SCTP' },
        ],
        externalIPs: ['192.168.099.022', '192.168.99.22', ''],
        loadBalancerSourceRanges: [' 203.0.113.000/025', '2001:db8::1/32 '],
        sessionAffinity: 'ClientIP',
        sessionAffinityConfig: { clientIP: { timeoutSeconds: 180 } },
        externalTrafficPolicy: 'Local',
        internalTrafficPolicy: 'Local',
        healthCheckNodePort: 31000,
      },
      status: {
        loadBalancer: {
          ingress: [
            { ip: '1.2.3.004' },
            { ip: '1.2.3.5', ipMode: 'VIP' },
            { ip: '1.2.3.6', ipMode: 'Proxy' },
            { hostname: 'lb.example' },
          ],
        },
      },
    });
    expect(said(projection)).toEqual([]);
    expect(valueOf(projection)).toMatchObject({
      name: '7-wonders',
      type: 'LoadBalancer',
      createdAt: Date.UTC(2026, 4, 1, 12),
      clusterIPs: { IPv4: '172.30.0.41', IPv6: 'fd00:96::1' },
      ports: [{ protocol: 'UDP' }, { protocol: 'TCP' }, { protocol: 'SCTP' }],
      externalIPs: ['192.168.99.22'],
      loadBalancerIPs: ['1.2.3.4', '1.2.3.5'],
      loadBalancerSourceRanges: ['203.0.113.0/25', '2001:db8::/32'],
      affinitySeconds: 180,
      externalTrafficPolicy: 'Local',
      internalTrafficPolicy: 'Local',
      healthCheckNodePort: 31000,
    });
  });

  const spec = (more: object): Parts => ({ spec: more });
  const ingress = (...all: readonly object[]): Parts => ({ status: { loadBalancer: { ingress: all } } });
  const affinity = (clientIP: unknown): Parts =>
    spec({ sessionAffinity: 'ClientIP', sessionAffinityConfig: { clientIP } });
  const one = { name: 'a', port: 80 };

  test.each<Row>([
    ['one family', spec({ clusterIP: 'fd00::1', ipFamilies: ['IPv6'] }), { clusterIPs: { IPv6: 'fd00::1' } }],
    [
      'IPv6 first',
      spec({ clusterIP: 'fd00::1', clusterIPs: ['fd00::1', '10.96.0.1'], ipFamilies: ['IPv6', 'IPv4'] }),
      { clusterIPs: { IPv6: 'fd00::1', IPv4: '10.96.0.1' } },
    ],
    [
      'a cluster IP in long form',
      spec({ clusterIP: 'FD00:0:0:0:0:0:0:00001' }),
      { clusterIPs: { IPv6: 'fd00::1' } },
    ],
    [
      'a link-local cluster IP',
      spec({ clusterIP: '169.254.20.10' }),
      { clusterIPs: { IPv4: '169.254.20.10' } },
    ],
    [
      'a bad cluster IP beside a good one',
      spec({ clusterIPs: ['10.96.0.1', 'None'], ipFamilies: ['IPv4', 'IPv6'] }),
      { clusterIPs: { IPv4: '10.96.0.1' } },
      'spec.clusterIPs[1] "None" is not an IP address',
    ],
    [
      'one family twice',
      spec({ clusterIPs: ['10.96.0.1', '10.96.0.2'], ipFamilies: ['IPv4', 'IPv4'] }),
      { clusterIPs: { IPv4: '10.96.0.1' } },
    ],
    [
      'an unknown type',
      spec({ type: 'Mesh' }),
      { type: 'ClusterIP' },
      'spec.type "Mesh" is not known; it counts as ClusterIP (expected ClusterIP, NodePort, LoadBalancer or ExternalName)',
    ],
    [
      'a port that is no map',
      spec({ ports: ['80', one] }),
      { ports: [one] },
      'spec.ports[0] is "80"; it is left',
    ],
    [
      'two ports of one name',
      spec({ ports: [one, { name: 'a', port: 81 }] }),
      { ports: [one] },
      'spec.ports[1].name "a" is taken by ports[0]; this port is left out (expected one of its own for each TCP port)',
    ],
    [
      'ports beside a bad one, which takes nothing away from them',
      spec({
        ports: [
          { name: 'a', port: 70_000 },
          { name: 'a', port: 80, nodePort: 30_080 },
          { name: 'b', port: 81, nodePort: 30_080 },
          { name: 'b', port: 82 },
        ],
      }),
      {
        ports: [
          { name: 'a', port: 80 },
          { name: 'b', port: 82 },
        ],
      },
      'spec.ports[0].port 70000',
      'spec.ports[2].nodePort 30080 is taken',
    ],
    [
      'external IPs that were stored before they were checked',
      spec({ externalIPs: ['  ', 'gateway', '127.0.0.1', '198.51.100.1'] }),
      { externalIPs: ['198.51.100.1'] },
      'spec.externalIPs[1] "gateway" is not an IP address (expected an IP address)',
      'spec.externalIPs[2] 127.0.0.1 is a loopback address (expected an address that other machines can reach)',
    ],
    [
      'a bad address and a bad mode of a load balancer',
      ingress({ ip: 'x' }, { ip: '1.1.1.1', ipMode: 'Magic' }),
      { loadBalancerIPs: [] },
      'status.loadBalancer.ingress[0].ip "x" is not an IP address',
      'status.loadBalancer.ingress[1].ipMode "Magic" is not known (expected VIP or Proxy)',
    ],
    ...['127.0.0.1', '169.254.169.254', '224.0.0.1', '::1', 'fe80::1', '::ffff:127.0.0.1'].map(
      (ip): Row => [
        `a load balancer at ${ip}`,
        ingress({ ip }, { ip: '198.51.100.1' }),
        { loadBalancerIPs: ['198.51.100.1'] },
        'status.loadBalancer.ingress[0].ip ',
      ],
    ),
    [
      'source ranges with blanks around, host bits, zeros',
      spec({ loadBalancerSourceRanges: [' 10.1.2.3/8 ', '192.000.002.0/0024', '::ffff:10.9.0.0/112'] }),
      { loadBalancerSourceRanges: ['10.0.0.0/8', '192.0.2.0/24', '10.9.0.0/16'] },
    ],
    [
      'bad source ranges beside a good one',
      spec({ loadBalancerSourceRanges: ['10.0.0.0/33', '10.0.0.1', '10.0.0.0/8'] }),
      { loadBalancerSourceRanges: ['10.0.0.0/8'] },
      'spec.loadBalancerSourceRanges[0] "10.0.0.0/33" is not a CIDR',
      'spec.loadBalancerSourceRanges[1] "10.0.0.1" is not a CIDR (expected a CIDR such as 192.0.2.0/24)',
    ],
    [
      'source ranges of which none can be read: they open nothing',
      { ...spec({ loadBalancerSourceRanges: ['192.0.2.0/33'] }), ...ingress({ ip: '198.51.100.1' }) },
      { clusterIPs: { IPv4: '10.96.0.1' }, loadBalancerIPs: [] },
      'spec.loadBalancerSourceRanges[0] ',
      'spec.loadBalancerSourceRanges has no valid range; the load-balancer addresses are not served (expected at least',
    ],
    ['affinity for a second', affinity({ timeoutSeconds: 1 }), { affinitySeconds: 1 }],
    ['affinity without a time', affinity(null), { affinitySeconds: 10_800 }],
    [
      'affinity for too long',
      affinity({ timeoutSeconds: 86_401 }),
      { affinitySeconds: 10_800 },
      'spec.sessionAffinityConfig.clientIP.timeoutSeconds 86401 is out of range; it counts as 10800 seconds',
    ],
    [
      'another affinity',
      spec({ sessionAffinity: 'Cookie' }),
      { affinitySeconds: undefined },
      'spec.sessionAffinity "Cookie" is not known; it counts as None (expected None or ClientIP)',
    ],
    [
      'policies left empty',
      spec({ externalTrafficPolicy: '', internalTrafficPolicy: null }),
      { externalTrafficPolicy: 'Cluster', internalTrafficPolicy: 'Cluster' },
    ],
    [
      'unknown policies',
      spec({ externalTrafficPolicy: 'local', internalTrafficPolicy: 'PreferLocal' }),
      { externalTrafficPolicy: 'Cluster', internalTrafficPolicy: 'Cluster' },
      'spec.externalTrafficPolicy "local" is not known; it counts as Cluster (expected Cluster or Local)',
      'spec.internalTrafficPolicy "PreferLocal" is not known; it counts as Cluster',
    ],
    [
      'a bad port for health checks',
      spec({ healthCheckNodePort: 99_999 }),
      { healthCheckNodePort: 0 },
      'spec.healthCheckNodePort 99999 is out of range; there is no health check',
    ],
    [
      'a bad time',
      { metadata: { creationTimestamp: 'yesterday' } },
      { createdAt: undefined },
      'metadata.creationTimestamp "yesterday" is not a time (expected a time such as 2026-05-01T12:00:00Z)',
    ],
    ['fields that we do not know', spec({ trafficDistribution: 7, new: {} }), { name: 'web' }],
  ])('%s', (_, parts, kept, ...expected) => expectRow(service(parts), kept, expected));

  const LABEL = 'expected at most 63 lower-case letters, digits and "-", with a letter or digit at both ends';
  test.each<[string, Parts]>([
    ['ignored: it is headless', spec({ clusterIP: 'None' })],
    ['ignored: it has no cluster IP', spec({ clusterIP: '' })],
    ['ignored: it has no cluster IP', spec({ clusterIP: null })],
    ['ignored: it is an ExternalName', spec({ type: 'ExternalName' })],
    [
      'ignored: it is for another proxy',
      { metadata: { labels: { 'service.kubernetes.io/service-proxy-name': '' } } },
    ],
    [`refused: metadata.name "Web" is not a valid name (${LABEL})`, { metadata: { name: 'Web' } }],
    [`refused: metadata.namespace has 64 characters (${LABEL})`, { metadata: { namespace: 'n'.repeat(64) } }],
    [
      'refused: spec.clusterIP "10.96.0" is not an IP address (expected an IP address or None)',
      spec({ clusterIP: '10.96.0' }),
    ],
    [
      'refused: spec.clusterIPs[0] 10.96.0.1 is not IPv6 (expected an IPv6 address, as ipFamilies says)',
      spec({ clusterIPs: ['10.96.0.1'], ipFamilies: ['IPv6'] }),
    ],
    [
      'refused: spec.clusterIP 10.96.0.1 has no family in ipFamilies (expected IPv4 or IPv6)',
      spec({ ipFamilies: ['IPv5'] }),
    ],
    [
      'refused: spec.clusterIP 127.0.0.1 is a loopback address (expected an address that no machine has by itself)',
      spec({ clusterIP: '127.0.0.1' }),
    ],
    ['refused: spec.ports is empty (expected at least one port)', spec({ ports: [] })],
    ['refused: spec.ports is a map (expected a list)', spec({ ports: { port: 80 } })],
  ])('%s', (expected, parts) => expect(said(service(parts))).toEqual([expected]));

  const NUMBER = 'expected a whole number from 1 to 65535';
  it.each([
    ['port is missing', {}, NUMBER],
    ['port 70000 is out of range', { port: 70_000 }, NUMBER],
    ['port "80" is not a whole number', { port: '80' }, NUMBER],
    ['nodePort -1 is out of range', { port: 80, nodePort: -1 }, NUMBER],
    ['protocol "tcp" is not known', { port: 80, protocol: 'tcp' }, 'expected TCP, UDP or SCTP'],
  ])('a port of which %s; alone, it makes the service unusable', (problem, port, expected) => {
    expect(said(service(spec({ ports: [port, { name: 'good', port: 7 }] })))).toEqual([
      `spec.ports[0].${problem}; this port is left out (${expected})`,
    ]);
    expect(said(service(spec({ ports: [port] })))).toEqual([
      `refused: spec.ports[0].${problem} (${expected})`,
    ]);
  });

  it('has no more problems told than anybody reads', () => {
    const ports = [...Array.from({ length: 1000 }, () => ({ port: 0 })), { port: 80 }];
    const lines = said(service(spec({ ports })));
    expect(lines.at(-1)).toMatch(/^the object has \d+ more problems like these/);
    expect(lines).toHaveLength(51);
  });
});

const PLAIN = {
  nodeName: undefined,
  ready: true,
  serving: true,
  terminating: false,
  zoneHints: [],
  nodeHints: [],
};

describe('an EndpointSlice', () => {
  it('has defaults for what is left out', () => {
    expect(valueOf(slice())).toEqual({
      namespace: 'shop',
      name: 'web-abc.1',
      service: 'web',
      family: 'IPv4',
      ports: [{ name: 'http', protocol: 'TCP', port: 8080 }],
      endpoints: [{ ip: '10.0.0.1', ...PLAIN }],
      triggerTime: undefined,
    });
  });

  const TRIGGER_TIME = 'endpoints.kubernetes.io/last-change-trigger-time';
  const http = { name: 'http', port: 8080 };
  const good = { addresses: ['10.0.0.9'] };
  const endpoint = (more: object): Parts => ({ endpoints: [{ addresses: ['10.0.0.1'], ...more }] });

  test.each<Row>([
    ['no ports and no endpoints', { ports: null, endpoints: null }, { ports: [], endpoints: [] }],
    ['not ready', endpoint({ conditions: { ready: false } }), { endpoints: [{ ...PLAIN, ready: false }] }],
    [
      'conditions that are not known',
      endpoint({ conditions: { ready: null, serving: null, terminating: null } }),
      { endpoints: [PLAIN] },
    ],
    [
      'terminating',
      endpoint({ conditions: { ready: false, serving: true, terminating: true } }),
      { endpoints: [{ ready: false, serving: true, terminating: true }] },
    ],
    [
      'node names, hints and the trigger time',
      {
        metadata: { annotations: { [TRIGGER_TIME]: '2026-05-01T12:00:00.123456789+02:00' } },
        ...endpoint({
          nodeName: 'node1.example',
          hints: { forZones: [{ name: 'zone_A' }, { name: '' }], forNodes: [{ name: 'n1.example' }] },
        }),
      },
      {
        triggerTime: Date.UTC(2026, 4, 1, 10, 0, 0, 123),
        endpoints: [{ nodeName: 'node1.example', zoneHints: ['zone_A', ''], nodeHints: ['n1.example'] }],
      },
    ],
    ['a zone, for people', endpoint({ zone: 'Zone_1.x' }), { endpoints: [{ zone: 'Zone_1.x' }] }],
    [
      'a bad trigger time',
      { metadata: { annotations: { [TRIGGER_TIME]: 'now' } } },
      { triggerTime: undefined },
      `metadata.annotations.${TRIGGER_TIME} "now" is not a time`,
    ],
    [
      'a node that cannot exist',
      endpoint({ nodeName: 'Node 1' }),
      { endpoints: [PLAIN] },
      'endpoints[0].nodeName ',
    ],
    ...[
      ['name is missing', { port: 80 }],
      ['port is missing', { name: 'a' }],
      ['port is 0', { name: 'a', port: 0 }],
      ['port 65536', { name: 'a', port: 65_536 }],
      ['protocol', { name: 'a', port: 1, protocol: 'ICMP' }],
      ['name', { name: 'a_b', port: 1 }],
    ].map(
      ([text, port]): Row => [
        `a port of which the ${text as string}`,
        { ports: [http, port] },
        { ports: [http] },
        `ports[1].${text as string}`,
      ],
    ),
    ['a port that is no map', { ports: [http, null] }, { ports: [http] }, 'ports[1] '],
    ...[
      ['.addresses is empty', { addresses: [] }],
      ['.addresses[0] is empty', { addresses: [''] }],
      ['.addresses[0] "x" is not an IP address', { addresses: ['x', '10.0.0.1'] }],
      ['.addresses[0] fd00::1 is not IPv4', { addresses: ['fd00::1'] }],
      ['.addresses[0] 127.1.2.3 is a loopback address', { addresses: ['127.1.2.3'] }],
      ['.addresses[0] 169.254.1.1 is a link-local address', { addresses: ['169.254.1.1'] }],
      ['.addresses[0] 7 ', { addresses: [7] }],
      [' is ', null],
      ['.conditions is 7', { addresses: ['10.0.0.1'], conditions: 7 }],
      ['.hints.forZones[0].name 7', { addresses: ['10.0.0.1'], hints: { forZones: [{ name: 7 }] } }],
    ].map(
      ([text, bad]): Row => [
        `an endpoint${text as string}`,
        { endpoints: [bad, good] },
        { endpoints: [{ ip: '10.0.0.9' }] },
        `endpoints[0]${text as string}`,
      ],
    ),
    ...['::1', '::', 'fe80::1', 'febf::1', 'ff02::1'].map(
      (address): Row => [
        `an endpoint at ${address}`,
        { addressType: 'IPv6', endpoints: [{ addresses: [address] }, { addresses: ['fd00::1'] }] },
        { endpoints: [{ ip: 'fd00::1' }] },
        'endpoints[0].addresses[0] ',
      ],
    ),
  ])('%s', (_, parts, kept, ...expected) => expectRow(slice(parts), kept, expected));

  test.each(['', '<img>', 7, null])('%j is no zone', (zone) => {
    expect(valueOf(slice(endpoint({ zone })))).toEqual(valueOf(slice()));
  });

  const labels = (more: object): Parts => ({ metadata: { labels: more } });
  test.each<[string, Parts]>([
    ['ignored: its addresses are host names', { addressType: 'FQDN' }],
    [`ignored: it has no label ${SERVICE_NAME}`, labels({})],
    [
      `ignored: no service can have the name in its label ${SERVICE_NAME}`,
      labels({ [SERVICE_NAME]: 'Web_2.x' }),
    ],
    [
      'ignored: its service is headless',
      labels({ [SERVICE_NAME]: 'web', 'service.kubernetes.io/headless': '' }),
    ],
    ['refused: metadata.name "a..b"', { metadata: { name: 'a..b' } }],
    [`refused: metadata.labels.${SERVICE_NAME} 7`, labels({ [SERVICE_NAME]: 7 })],
    ['refused: addressType "ipv4"', { addressType: 'ipv4' }],
    ['refused: addressType is missing', { addressType: undefined }],
    ['refused: endpoints is "none"', { endpoints: 'none' }],
  ])('%s', (expected, parts) => {
    expect(said(slice(parts)).map((line) => line.slice(0, expected.length))).toEqual([expected]);
  });
});

describe('legacy Endpoints', () => {
  it('become a slice for each subset and family', () => {
    const slices = valueOf(
      endpoints({
        subsets: [
          {
            addresses: [{ ip: '10.0.0.1', nodeName: 'node1' }, { ip: 'fd00::1' }],
            notReadyAddresses: [{ ip: '10.0.0.2' }],
            ports: [{ port: 80 }, { name: 'dns', port: 53, protocol: 'UDP' }],
          },
          { addresses: [{ ip: 'fd00::2' }], ports: [{ port: 81 }] },
          { ports: [{ port: 82 }] },
        ],
      }),
    );
    expect(slices).toMatchObject([
      { name: 'endpoints-web-0-ipv4' },
      { name: 'endpoints-web-0-ipv6' },
      { name: 'endpoints-web-1-ipv6' },
    ]);
    expect((slices as readonly unknown[])[0]).toEqual({
      namespace: 'shop',
      name: 'endpoints-web-0-ipv4',
      service: 'web',
      family: 'IPv4',
      ports: [
        { name: '', protocol: 'TCP', port: 80 },
        { name: 'dns', protocol: 'UDP', port: 53 },
      ],
      endpoints: [
        { ...PLAIN, ip: '10.0.0.1', nodeName: 'node1' },
        { ...PLAIN, ip: '10.0.0.2', ready: false, serving: false },
      ],
      triggerTime: undefined,
    });
  });

  test.each<[Parts, ...(readonly string[])]>([
    [{ metadata: { labels: { 'service.kubernetes.io/headless': '' } } }, 'ignored: its service is headless'],
    [
      { metadata: { labels: { 'endpointslice.kubernetes.io/skip-mirror': 'true' } } },
      'ignored: it has EndpointSlices of its own',
    ],
    [{ metadata: { name: 'a.lock' } }, 'ignored: no service can have its name'],
    [
      { subsets: [{ addresses: [{ ip: 'x' }], ports: [{}] }] },
      'subsets[0].ports[0].port is missing; this port is left out (expected a whole number from 1 to 65535)',
      'subsets[0].addresses[0].ip "x" is not an IP address (expected an IP address)',
    ],
  ])('%j: %s', (parts, ...expected) =>
    expect([...said(endpoints(parts))].sort()).toEqual([...expected].sort()),
  );
});

describe('a Node', () => {
  const zone = (text: string): object => ({ labels: { 'topology.kubernetes.io/zone': text } });

  test.each<Row>([
    [
      'internal addresses before external ones',
      {
        metadata: { name: 'node1.example', ...zone('zone-a') },
        spec: { podCIDR: '10.244.1.0/24', podCIDRs: ['10.244.1.7/24', 'fd00:244:1::/64'] },
        status: {
          addresses: [
            { type: 'Hostname', address: 'node1' },
            { type: 'ExternalIP', address: '203.0.113.1' },
            { type: 'InternalIP', address: '192.168.0.1' },
            { type: 'InternalIP', address: 'fd00::1' },
            { type: 'Carrier', address: '!' },
          ],
        },
      },
      {
        name: 'node1.example',
        ips: ['192.168.0.1', 'fd00::1', '203.0.113.1'],
        podCIDRs: ['10.244.1.0/24', 'fd00:244:1::/64'],
        zone: 'zone-a',
        eligible: true,
      },
    ],
    ['podCIDR alone', { spec: { podCIDR: '10.1.0.0/16' } }, { podCIDRs: ['10.1.0.0/16'] }],
    ['nothing, and an empty zone', { metadata: zone('') }, { ips: [], podCIDRs: [], zone: undefined }],
    ['being deleted', { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } }, { eligible: false }],
    [
      'about to be deleted',
      { spec: { taints: [{ key: 'ToBeDeletedByClusterAutoscaler', effect: 'NoSchedule' }] } },
      { eligible: false },
    ],
    ['another taint', { spec: { taints: [{ key: 'a', effect: 'NoExecute' }] } }, { eligible: true }],
    [
      'parts that cannot be read',
      {
        metadata: zone('a b'),
        spec: { podCIDRs: ['10.1.0.0', '10.2.0.0/16'], taints: [null] },
        status: { addresses: [{ type: 'InternalIP', address: 'node1' }, 7] },
      },
      { podCIDRs: ['10.2.0.0/16'], ips: [], zone: undefined },
      '',
      '',
      '',
      '',
      '',
    ],
  ])('%s', (_, parts, kept, ...expected) => expectRow(node(parts), kept, expected));
});

test.each([
  [{ kind: 'Service', apiVersion: 'v1' }, 'Service'],
  [{ kind: 'Service' }, 'Service'],
  [{ kind: 'Service', apiVersion: 'serving.knative.dev/v1' }, undefined],
  [{ kind: 'EndpointSlice', apiVersion: 'discovery.k8s.io/v1' }, 'EndpointSlice'],
  ['Service', undefined],
])('kind of %j', (raw, expected) => expect(kindOf(raw)).toBe(expected));

test.each([
  ['Service', { name: 'a', namespace: 'b' }, 'b/a'],
  ['Service', { name: 'a' }, 'default/a'],
  ['Service', { name: 'a.b' }, undefined],
  ['EndpointSlice', { name: 'a.b' }, 'default/a.b'],
  ['Node', { name: 'a.b', namespace: 'c' }, 'a.b'],
  ['Service', { name: 'a', namespace: 'B' }, undefined],
  ['Service', { name: 7 }, undefined],
] as const)('name of %s %j', (kind, metadata, expected) => expect(nameOf(kind, { metadata })).toBe(expected));
