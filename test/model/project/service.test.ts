import { describe, expect, it } from 'vitest';
import type { Service } from '../../../src/model/objects.ts';
import { projectService } from '../../../src/model/project/service.ts';
import { printProblem } from '../../support/printProblem.ts';

interface RawService {
  readonly metadata?: object;
  readonly spec?: object;
  readonly status?: object;
}

function raw({ metadata, spec, status }: RawService = {}): unknown {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'web', namespace: 'shop', ...metadata },
    spec: { clusterIP: '10.96.0.1', ports: [{ port: 80 }], ...spec },
    ...(status && { status }),
  };
}

function read(parts?: RawService): { readonly service: Service; readonly warnings: readonly string[] } {
  const projection = projectService(raw(parts));
  if (projection.kind !== 'object') throw new Error(JSON.stringify(projection));
  return { service: projection.value, warnings: projection.warnings.map(printProblem) };
}

function problems(parts: RawService): readonly string[] {
  const projection = projectService(raw(parts));
  return projection.kind === 'invalid' ? projection.problems.map(printProblem) : [projection.kind];
}

describe('a sound service', () => {
  it('has defaults for what is left out', () => {
    expect(read({ metadata: { namespace: undefined } })).toEqual({
      service: {
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
      },
      warnings: [],
    });
  });

  it('keeps everything that a proxy needs, in canonical form', () => {
    const { service, warnings } = read({
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
    expect(warnings).toEqual([]);
    expect(service).toMatchObject({
      name: '7-wonders',
      type: 'LoadBalancer',
      createdAt: Date.UTC(2026, 4, 1, 12),
      clusterIPs: { IPv4: '172.30.0.41', IPv6: 'fd00:96::1' },
      externalIPs: ['192.168.99.22'],
      loadBalancerIPs: ['1.2.3.4', '1.2.3.5'],
      loadBalancerSourceRanges: ['203.0.113.0/25', '2001:db8::/32'],
      affinitySeconds: 180,
      externalTrafficPolicy: 'Local',
      internalTrafficPolicy: 'Local',
      healthCheckNodePort: 31000,
    });
    expect(service.ports).toHaveLength(3);
  });

  it.each([
    ['one family named', { clusterIP: 'fd00::1', ipFamilies: ['IPv6'] }, { IPv6: 'fd00::1' }],
    [
      'IPv6 first',
      { clusterIP: 'fd00::1', clusterIPs: ['fd00::1', '10.96.0.1'], ipFamilies: ['IPv6', 'IPv4'] },
      { IPv6: 'fd00::1', IPv4: '10.96.0.1' },
    ],
    [
      'an address without a family',
      { clusterIP: '10.96.0.1', clusterIPs: ['10.96.0.1', 'fd00::1'], ipFamilies: ['IPv4'] },
      { IPv4: '10.96.0.1' },
    ],
  ])('cluster IPs: %s', (_, spec, expected) => {
    expect(read({ spec }).service.clusterIPs).toEqual(expected);
  });

  it('leaves out the parts that cannot be used, and says so', () => {
    const { service, warnings } = read({
      metadata: { creationTimestamp: 'yesterday' },
      spec: {
        externalIPs: ['  ', 'nonsense', '127.0.0.1', '198.51.100.1'],
        loadBalancerSourceRanges: ['10.0.0.0/33', '10.0.0.1', '10.0.0.0/8'],
      },
      status: { loadBalancer: { ingress: [{ ip: 'x' }, { ip: '1.1.1.1', ipMode: 'Magic' }] } },
    });
    expect(service.externalIPs).toEqual(['198.51.100.1']);
    expect(service.loadBalancerSourceRanges).toEqual(['10.0.0.0/8']);
    expect(service.loadBalancerIPs).toEqual([]);
    expect(warnings).toEqual([
      'spec.loadBalancerSourceRanges[0] "10.0.0.0/33" is not a CIDR (expected a CIDR such as 192.0.2.0/24)',
      'spec.loadBalancerSourceRanges[1] "10.0.0.1" is not a CIDR (expected a CIDR such as 192.0.2.0/24)',
      'metadata.creationTimestamp "yesterday" is not a time (expected a time such as 2026-05-01T12:00:00Z)',
      'spec.externalIPs[1] "nonsense" is not an IP address (expected an IP address)',
      'spec.externalIPs[2] 127.0.0.1 is a loopback address (expected an address that other machines can reach)',
      'status.loadBalancer.ingress[0].ip "x" is not an IP address (expected an IP address)',
      'status.loadBalancer.ingress[1].ipMode "Magic" is not known (expected VIP or Proxy)',
    ]);
  });
});

describe('a service that is not for us', () => {
  it.each<[string, RawService]>([
    ['it is headless', { spec: { clusterIP: 'None' } }],
    ['it has no cluster IP', { spec: { clusterIP: '' } }],
    ['it has no cluster IP', { spec: { clusterIP: null } }],
    ['it is an ExternalName', { spec: { type: 'ExternalName' } }],
    ['it is for another proxy', { metadata: { labels: { 'service.kubernetes.io/service-proxy-name': '' } } }],
  ])('%s', (reason, parts) => {
    expect(projectService(raw(parts))).toEqual({ kind: 'ignored', reason });
  });
});

describe('a service that cannot be used', () => {
  it.each<[string, RawService]>([
    [
      'metadata.name "Web" is not a valid name (expected at most 63 lower-case letters, digits and "-", with a letter or digit at both ends)',
      { metadata: { name: 'Web' } },
    ],
    [
      'metadata.namespace has 64 characters (expected at most 63 lower-case letters, digits and "-", with a letter or digit at both ends)',
      { metadata: { namespace: 'n'.repeat(64) } },
    ],
    [
      'spec.clusterIP "10.96.0" is not an IP address (expected an IP address or None)',
      { spec: { clusterIP: '10.96.0' } },
    ],
    [
      'spec.clusterIPs[0] 10.96.0.1 is not IPv6 (expected an IPv6 address, as ipFamilies says)',
      { spec: { clusterIPs: ['10.96.0.1'], ipFamilies: ['IPv6'] } },
    ],
    [
      'spec.clusterIP 10.96.0.1 has no family in ipFamilies (expected IPv4 or IPv6)',
      { spec: { ipFamilies: ['IPv5'] } },
    ],
    [
      'spec.clusterIP 127.0.0.1 is a loopback address (expected an address that no machine has by itself)',
      { spec: { clusterIP: '127.0.0.1' } },
    ],
    ['spec.ports is empty (expected at least one port)', { spec: { ports: [] } }],
    ['spec.ports is a map (expected a list)', { spec: { ports: { port: 80 } } }],
  ])('%s', (expected, parts) => {
    expect(problems(parts)).toEqual([expected]);
  });
});

describe('a part that cannot be read costs that part only', () => {
  it.each<[string, RawService]>([
    [
      'spec.type "Loadbalancer" is not known; it counts as ClusterIP (expected ClusterIP, NodePort, LoadBalancer or ExternalName)',
      { spec: { type: 'Loadbalancer' } },
    ],
    [
      'spec.ports[0] is "80"; it is left out (expected a map)',
      { spec: { ports: ['80', { port: 1, name: 'one' }] } },
    ],
    [
      'spec.ports[1].name "a" is taken by ports[0]; this port is left out (expected one of its own for each TCP port)',
      {
        spec: {
          ports: [
            { name: 'a', port: 80 },
            { name: 'a', port: 81 },
          ],
        },
      },
    ],
    [
      'spec.sessionAffinity "Cookie" is not known; it counts as None (expected None or ClientIP)',
      { spec: { sessionAffinity: 'Cookie' } },
    ],
    [
      'spec.sessionAffinityConfig.clientIP.timeoutSeconds 86401 is out of range; it counts as 10800 seconds (expected a whole number from 1 to 86400)',
      {
        spec: { sessionAffinity: 'ClientIP', sessionAffinityConfig: { clientIP: { timeoutSeconds: 86401 } } },
      },
    ],
    [
      'spec.externalTrafficPolicy "local" is not known; it counts as Cluster (expected Cluster or Local)',
      { spec: { externalTrafficPolicy: 'local' } },
    ],
    [
      'spec.healthCheckNodePort 99999 is out of range; there is no health check (expected a whole number from 1 to 65535)',
      { spec: { healthCheckNodePort: 99999 } },
    ],
  ])('%s', (expected, parts) => {
    expect(read(parts).warnings).toEqual([expected]);
  });

  const NUMBER = 'expected a whole number from 1 to 65535';
  it.each([
    ['port is missing', {}, NUMBER],
    ['port 70000 is out of range', { port: 70000 }, NUMBER],
    ['port "80" is not a whole number', { port: '80' }, NUMBER],
    ['nodePort -1 is out of range', { port: 80, nodePort: -1 }, NUMBER],
    ['protocol "tcp" is not known', { port: 80, protocol: 'tcp' }, 'expected TCP, UDP or SCTP'],
  ])('a port of which %s; alone, it makes the service unusable', (problem, port, expected) => {
    expect(read({ spec: { ports: [port, { name: 'good', port: 7 }] } }).warnings).toEqual([
      `spec.ports[0].${problem}; this port is left out (${expected})`,
    ]);
    expect(problems({ spec: { ports: [port] } })).toEqual([`spec.ports[0].${problem} (${expected})`]);
  });

  it('and has no more problems told than anybody reads', () => {
    const ports = [...Array.from({ length: 1000 }, () => ({ port: 0 })), { port: 80 }];
    const { service, warnings } = read({ spec: { ports } });
    expect(service.ports).toHaveLength(1);
    expect(warnings.at(-1)).toMatch(/^the object has \d+ more problems like these/);
    expect(warnings).toHaveLength(51);
  });

  it('the ports beside a bad one are served', () => {
    const ports = [
      { name: 'a', port: 70_000 },
      { name: 'a', port: 80, nodePort: 30_080 },
      { name: 'b', port: 81, nodePort: 30_080 },
      { name: 'b', port: 82 },
    ];
    const { service } = read({ spec: { ports } });
    expect(service.ports.map(({ name, port }) => `${name}:${port}`)).toEqual(['a:80', 'b:82']);
  });

  it('source ranges of which none can be read open nothing', () => {
    const { service, warnings } = read({
      spec: { type: 'LoadBalancer', loadBalancerSourceRanges: ['192.0.2.0/33'] },
      status: { loadBalancer: { ingress: [{ ip: '198.51.100.1' }] } },
    });
    expect(service).toMatchObject({ clusterIPs: { IPv4: '10.96.0.1' }, loadBalancerIPs: [] });
    expect(warnings).toContain(
      'spec.loadBalancerSourceRanges has no valid range; the load-balancer addresses are not served (expected at least one CIDR such as 192.0.2.0/24)',
    );
  });
});
