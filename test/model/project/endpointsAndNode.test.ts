import { describe, expect, it } from 'vitest';
import { projectEndpoints } from '../../../src/model/project/endpointSlice.ts';
import { kindOf, nameOf } from '../../../src/model/project/names.ts';
import { projectNode } from '../../../src/model/project/node.ts';

describe('legacy Endpoints', () => {
  const metadata = { name: 'web', namespace: 'shop' };

  it('become a slice for each subset and family', () => {
    const projection = projectEndpoints({
      metadata,
      subsets: [
        {
          addresses: [{ ip: '10.0.0.1', nodeName: 'node1' }, { ip: 'fd00::1' }],
          notReadyAddresses: [{ ip: '10.0.0.2' }],
          ports: [{ port: 80 }, { name: 'dns', port: 53, protocol: 'UDP' }],
        },
        { addresses: [{ ip: 'fd00::2' }], ports: [{ port: 81 }] },
        { ports: [{ port: 82 }] },
      ],
    });
    expect(projection.kind === 'object' && projection.value.map(({ name }) => name)).toEqual([
      'endpoints-web-0-ipv4',
      'endpoints-web-0-ipv6',
      'endpoints-web-1-ipv6',
    ]);
    expect(projection.kind === 'object' && projection.value[0]).toEqual({
      namespace: 'shop',
      name: 'endpoints-web-0-ipv4',
      service: 'web',
      family: 'IPv4',
      ports: [
        { name: '', protocol: 'TCP', port: 80 },
        { name: 'dns', protocol: 'UDP', port: 53 },
      ],
      endpoints: [
        {
          ip: '10.0.0.1',
          nodeName: 'node1',
          ready: true,
          serving: true,
          terminating: false,
          zoneHints: [],
          nodeHints: [],
        },
        {
          ip: '10.0.0.2',
          nodeName: undefined,
          ready: false,
          serving: false,
          terminating: false,
          zoneHints: [],
          nodeHints: [],
        },
      ],
      triggerTime: undefined,
    });
  });

  it('leave out bad addresses', () => {
    const projection = projectEndpoints({
      metadata,
      subsets: [{ addresses: [{ ip: 'x' }, {}], ports: [{ port: 80 }] }],
    });
    expect(projection).toMatchObject({ kind: 'object', value: [] });
    expect(projection.kind === 'object' && projection.warnings).toHaveLength(2);
  });

  it.each([
    [{ labels: { 'service.kubernetes.io/headless': '' } }, 'its service is headless'],
    [{ labels: { 'endpointslice.kubernetes.io/skip-mirror': 'true' } }, 'it has EndpointSlices of its own'],
    [{ name: 'a.lock' }, 'no service can have its name'],
  ])('are ignored: %j', (more, reason) => {
    expect(projectEndpoints({ metadata: { ...metadata, ...more } })).toEqual({ kind: 'ignored', reason });
  });
});

describe('a node', () => {
  it('has internal addresses before external ones', () => {
    const projection = projectNode({
      metadata: { name: 'node1.example', labels: { 'topology.kubernetes.io/zone': 'zone-a' } },
      spec: { podCIDR: '10.244.1.0/24', podCIDRs: ['10.244.1.7/24', 'fd00:244:1::/64'] },
      status: {
        addresses: [
          { type: 'Hostname', address: 'node1' },
          { type: 'ExternalIP', address: '203.0.113.1' },
          { type: 'InternalIP', address: '192.168.0.1' },
          { type: 'InternalIP', address: 'fd00::1' },
        ],
      },
    });
    expect(projection).toEqual({
      kind: 'object',
      warnings: [],
      value: {
        name: 'node1.example',
        ips: ['192.168.0.1', 'fd00::1', '203.0.113.1'],
        podCIDRs: ['10.244.1.0/24', 'fd00:244:1::/64'],
        zone: 'zone-a',
        eligible: true,
      },
    });
  });

  it('may have podCIDR alone, or nothing', () => {
    const metadata = { name: 'n' };
    expect(projectNode({ metadata, spec: { podCIDR: '10.1.0.0/16' } })).toMatchObject({
      value: { podCIDRs: ['10.1.0.0/16'] },
    });
    expect(projectNode({ metadata })).toMatchObject({ value: { ips: [], podCIDRs: [], zone: undefined } });
    expect(
      projectNode({ metadata: { ...metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } }),
    ).toMatchObject({
      value: { eligible: false },
    });
    const spec = { taints: [{ key: 'ToBeDeletedByClusterAutoscaler', effect: 'NoSchedule' }] };
    expect(projectNode({ metadata, spec })).toMatchObject({ value: { eligible: false } });
  });

  it('is read without the parts that cannot be', () => {
    const projection = projectNode({
      metadata: { name: 'n', labels: { 'topology.kubernetes.io/zone': 'a b' } },
      spec: { podCIDRs: ['10.1.0.0', '10.2.0.0/16'], taints: [null] },
      status: { addresses: [{ type: 'InternalIP', address: 'node1' }, 7] },
    });
    expect(projection).toMatchObject({ value: { podCIDRs: ['10.2.0.0/16'], ips: [], zone: undefined } });
    expect(projection.kind === 'object' && projection.warnings).toHaveLength(5);
  });
});

describe('identity', () => {
  it.each([
    [{ kind: 'Service', apiVersion: 'v1' }, 'Service'],
    [{ kind: 'Service' }, 'Service'],
    [{ kind: 'EndpointSlice', apiVersion: 'discovery.k8s.io/v1' }, 'EndpointSlice'],
    [{ kind: 'Deployment', apiVersion: 'apps/v1' }, undefined],
    ['Service', undefined],
  ])('kind of %j', (raw, expected) => {
    expect(kindOf(raw)).toBe(expected);
  });

  it.each([
    ['Service', { name: 'a', namespace: 'b' }, 'b/a'],
    ['Service', { name: 'a' }, 'default/a'],
    ['Service', { name: 'a.b' }, undefined],
    ['EndpointSlice', { name: 'a.b' }, 'default/a.b'],
    ['Node', { name: 'a.b', namespace: 'c' }, 'a.b'],
    ['Service', { name: 'a', namespace: 'B' }, undefined],
    ['Service', { name: 7 }, undefined],
  ] as const)('name of %s %j', (kind, metadata, expected) => {
    expect(nameOf(kind, { metadata })).toBe(expected);
  });
});
