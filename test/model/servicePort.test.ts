import { describe, expect, test } from 'vitest';
import {
  isExternallyAccessible,
  servicePorts,
  usesClusterEndpoints,
  usesLocalEndpoints,
} from '../../src/model/serviceTracker.ts';
import { service, servicePort } from '../plan/given.ts';

describe('the ports of a service', () => {
  test('one for each port, named with and without a port name', () => {
    const ports = servicePorts(service('kube-system/dns 10.96.0.10 dns:53/udp dns-tcp:53/tcp 9153'), 'IPv4');
    expect(ports.map(({ id, name, port }) => [id, name, port])).toEqual([
      ['kube-system/dns:dns/UDP', 'kube-system/dns:dns', 53],
      ['kube-system/dns:dns-tcp/TCP', 'kube-system/dns:dns-tcp', 53],
      ['kube-system/dns/TCP', 'kube-system/dns', 9153],
    ]);
  });

  test('none in a family without a cluster IP, even with other addresses there', () => {
    const six = service('a/b fd00::1 80 lb=1.2.3.4 ext=5.6.7.8');
    expect(servicePorts(six, 'IPv4')).toEqual([]);
    expect(servicePorts(six, 'IPv6')).toHaveLength(1);
  });

  test('a family whose ranges are all among those that were too many to read is closed, not open', () => {
    const six = service('a/b 10.96.0.1 fd00::1 80 lb=2.2.2.2,2001:db8::2 ranges=2001:db8:3::/48');
    const most = { ...six, unread: { ports: 0, externalIPs: 0, loadBalancerIPs: 0, sourceRanges: 7 } };
    expect(servicePorts(six, 'IPv4')[0]).toMatchObject({ loadBalancerIPs: ['2.2.2.2'], sourceRanges: [] });
    expect(servicePorts(most, 'IPv4')[0]).toMatchObject({ loadBalancerIPs: [], sourceRanges: [] });
    expect(servicePorts(most, 'IPv6')[0]).toMatchObject({
      loadBalancerIPs: ['2001:db8::2'],
      sourceRanges: ['2001:db8:3::/48'],
    });
  });

  test('each family keeps its own addresses and ranges', () => {
    const both = service(
      'a/b 10.96.0.1 fd00::1 80 ext=1.1.1.1,2001:db8::1 lb=2.2.2.2,2001:db8::2 ranges=3.3.3.0/24,2001:db8:3::/48',
    );
    expect(servicePorts(both, 'IPv4')[0]).toMatchObject({
      clusterIP: '10.96.0.1',
      externalIPs: ['1.1.1.1'],
      loadBalancerIPs: ['2.2.2.2'],
      sourceRanges: ['3.3.3.0/24'],
    });
    expect(servicePorts(both, 'IPv6')[0]).toMatchObject({
      clusterIP: 'fd00::1',
      externalIPs: ['2001:db8::1'],
      loadBalancerIPs: ['2001:db8::2'],
      sourceRanges: ['2001:db8:3::/48'],
    });
  });

  test.each([
    ['1.0.0.0/8,2.0.0.0/8', ['1.0.0.0/8', '2.0.0.0/8'], 'a list restricts'],
    ['1.0.0.0/8,0.0.0.0/0', [], 'a range that holds everybody makes the list pointless'],
    ['1.0.0.0/8,::/0', ['1.0.0.0/8'], 'but only in its own family'],
    ['2001:db8::/32', [], "the other family's ranges restrict nobody here"],
  ])('source ranges %s: %j, %s', (ranges, expected) => {
    expect(servicePort(`a/b 10.96.0.1 80 lb=2.2.2.2 ranges=${ranges}`).sourceRanges).toEqual(expected);
  });
});

describe('policies', () => {
  test.each([
    ['ClusterIP 80 etp=Local', false, 'nobody comes from outside'],
    ['ClusterIP 80 ext=1.1.1.1 etp=Local', true, 'an external IP is outside'],
    ['ClusterIP 80 ext=2001:db8::1 etp=Local', true, 'in whichever family'],
    ['NodePort 80@30080 etp=Local', true, ''],
    ['LoadBalancer 80@30080 etp=Local', true, ''],
    ['LoadBalancer 80@30080', false, ''],
  ])('%s: external policy is local: %s %s', (text, expected) => {
    expect(servicePort(`a/b 10.96.0.1 ${text}`).externalPolicyLocal).toBe(expected);
  });

  test.each([
    ['LoadBalancer 80@30080 etp=Local hc=345', 345, ''],
    ['LoadBalancer 80@30080 hc=345', 0, 'the policy is Cluster'],
    ['NodePort 80@30080 etp=Local hc=345', 0, 'no load balancer asks'],
  ])('%s: health check on port %d %s', (text, expected) => {
    expect(servicePort(`a/b 10.96.0.1 ${text}`).healthCheckNodePort).toBe(expected);
  });

  const table: readonly (readonly [string, { external: boolean; cluster: boolean; local: boolean }])[] = [
    ['80', { external: false, cluster: true, local: false }],
    ['80 itp=Local', { external: false, cluster: false, local: true }],
    ['80 etp=Local', { external: false, cluster: true, local: false }],
    ['80@30080', { external: true, cluster: true, local: false }],
    ['ClusterIP 80@30080', { external: true, cluster: true, local: false }],
    ['80@30080 etp=Local', { external: true, cluster: true, local: true }],
    ['80@30080 itp=Local', { external: true, cluster: true, local: true }],
    ['80 lb=1.1.1.1 etp=Local', { external: true, cluster: true, local: true }],
    ['80 ext=1.1.1.1', { external: true, cluster: true, local: false }],
    ['LoadBalancer 80 etp=Local', { external: false, cluster: true, local: false }],
  ];
  test.each(table)('%s: %j', (text, expected) => {
    const port = servicePort(`a/b 10.96.0.1 ${text}`);
    expect({
      external: isExternallyAccessible(port),
      cluster: usesClusterEndpoints(port),
      local: usesLocalEndpoints(port),
    }).toEqual(expected);
  });
});
