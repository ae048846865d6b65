/**
 * What the API server accepts today, or accepted when an object was stored, is served or left out as kube-proxy does, field
 * by field. An object that is refused keeps its last good version, so none of these may be refused.
 */
import { describe, expect, it } from 'vitest';
import { projectEndpointSlice } from '../../../src/model/project/endpointSlice.ts';
import { projectNode } from '../../../src/model/project/node.ts';
import { projectService } from '../../../src/model/project/service.ts';
import type { Projection } from '../../../src/text/cursor.ts';

/** [field, odd value that the API server lets through, what is kept, how many warnings] */
type Row = readonly [field: string, parts: object, expected: object, warnings?: number];

function named(rows: readonly Row[]): readonly { name: string; row: Row }[] {
  return rows.map((row) => ({ name: row[0], row }));
}

function expectKept(projection: Projection<unknown>, expected: object, warnings: number): void {
  if (projection.kind !== 'object') throw new Error(JSON.stringify(projection));
  expect(projection.value).toMatchObject(expected);
  expect(projection.warnings).toHaveLength(warnings);
}

describe('a Service', () => {
  const spec = { clusterIP: '10.96.0.1', ports: [{ port: 80 }] };
  const service = (parts: object): unknown => ({
    metadata: { name: 'web', namespace: 'shop' },
    spec,
    ...parts,
  });
  const withSpec = (more: object): object => ({ spec: { ...spec, ...more } });
  const withIngress = (...ingress: readonly object[]): object => ({ status: { loadBalancer: { ingress } } });

  const rows: readonly Row[] = [
    ['name that begins with a digit', { metadata: { name: '3-tier', namespace: '1' } }, { name: '3-tier' }],
    [
      'clusterIP in long form',
      withSpec({ clusterIP: 'FD00:0:0:0:0:0:0:00001' }),
      { clusterIPs: { IPv6: 'fd00::1' } },
    ],
    [
      'clusterIP, link-local',
      withSpec({ clusterIP: '169.254.20.10' }),
      { clusterIPs: { IPv4: '169.254.20.10' } },
    ],
    [
      'clusterIPs: one bad beside a good one',
      withSpec({ clusterIPs: ['10.96.0.1', 'None'], ipFamilies: ['IPv4', 'IPv6'] }),
      { clusterIPs: { IPv4: '10.96.0.1' } },
      1,
    ],
    [
      'ipFamilies: one family twice',
      withSpec({ clusterIPs: ['10.96.0.1', '10.96.0.2'], ipFamilies: ['IPv4', 'IPv4'] }),
      { clusterIPs: { IPv4: '10.96.0.1' } },
    ],
    [
      'externalIPs: stored before they were checked',
      withSpec({ externalIPs: ['gateway', '127.0.0.1'] }),
      { externalIPs: [] },
      2,
    ],
    ...['127.0.0.1', '169.254.169.254', '224.0.0.1', '::1', 'fe80::1', '::ffff:127.0.0.1'].map(
      (ip): Row => [
        `ingress ${ip}`,
        withIngress({ ip }, { ip: '198.51.100.1' }),
        { loadBalancerIPs: ['198.51.100.1'] },
        1,
      ],
    ),
    [
      'source ranges: blanks around, host bits, zeros',
      withSpec({ loadBalancerSourceRanges: [' 10.1.2.3/8 ', '192.000.002.0/0024', '::ffff:10.9.0.0/112'] }),
      { loadBalancerSourceRanges: ['10.0.0.0/8', '192.0.2.0/24', '10.9.0.0/16'] },
    ],
    [
      'affinity for a second',
      withSpec({ sessionAffinity: 'ClientIP', sessionAffinityConfig: { clientIP: { timeoutSeconds: 1 } } }),
      { affinitySeconds: 1 },
    ],
    [
      'affinity without a time',
      withSpec({ sessionAffinity: 'ClientIP', sessionAffinityConfig: { clientIP: null } }),
      { affinitySeconds: 10_800 },
    ],
    [
      'policies left empty',
      withSpec({ externalTrafficPolicy: '', internalTrafficPolicy: null }),
      { externalTrafficPolicy: 'Cluster', internalTrafficPolicy: 'Cluster' },
    ],
    ['fields that we do not know', withSpec({ trafficDistribution: 7, new: {} }), { name: 'web' }],
  ];
  it.each(named(rows))('$name', ({ row: [, parts, expected, warnings = 0] }) => {
    expectKept(projectService(service(parts)), expected, warnings);
  });
});

describe('an EndpointSlice', () => {
  const slice = (parts: object): unknown => ({
    metadata: { name: 'web-1', namespace: 'shop', labels: { 'kubernetes.io/service-name': 'web' } },
    addressType: 'IPv4',
    ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
    endpoints: [{ addresses: ['10.0.0.1'] }],
    ...parts,
  });
  const withEndpoint = (more: object): object => ({ endpoints: [{ addresses: ['10.0.0.1'], ...more }] });
  const HTTP = { name: 'http', protocol: 'TCP', port: 8080 };

  const rows: readonly Row[] = [
    [
      'an empty zone hint',
      withEndpoint({ hints: { forZones: [{ name: '' }] } }),
      { endpoints: [{ zoneHints: [''] }] },
    ],
    [
      'a node hint with dots',
      withEndpoint({ hints: { forNodes: [{ name: 'n1.example' }] } }),
      { endpoints: [{ nodeHints: ['n1.example'] }] },
    ],
    ['a port for all ports', { ports: [{ name: '', protocol: 'TCP' }, HTTP] }, { ports: [HTTP] }, 1],
  ];
  it.each(named(rows))('$name', ({ row: [, parts, expected, warnings = 0] }) => {
    expectKept(projectEndpointSlice(slice(parts)), expected, warnings);
  });
});

describe('a Node', () => {
  const node = (parts: object): unknown => ({ metadata: { name: 'n1' }, ...parts });
  const rows: readonly Row[] = [
    ['addresses of other types', { status: { addresses: [{ type: 'Carrier', address: '!' }] } }, { ips: [] }],
    [
      'an empty zone',
      { metadata: { name: 'n1', labels: { 'topology.kubernetes.io/zone': '' } } },
      { zone: undefined },
    ],
    ['taints without a value', { spec: { taints: [{ key: 'a', effect: 'NoExecute' }] } }, { eligible: true }],
  ];
  it.each(named(rows))('$name', ({ row: [, parts, expected, warnings = 0] }) => {
    expectKept(projectNode(node(parts)), expected, warnings);
  });
});
