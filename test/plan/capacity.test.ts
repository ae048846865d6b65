import { describe, expect, test } from 'vitest';
import { servicePorts } from '../../src/model/serviceTracker.ts';
import {
  type Capacity,
  capacityOf,
  costOf,
  endpointCut,
  printCut,
  UNBOUNDED,
  withinCapacity,
} from '../../src/plan/capacity.ts';
import { service } from './given.ts';

const SMALL: Capacity = { ports: 3, frontends: 12, sourceRanges: 8, endpoints: 30, destinations: 60 };

function bounded(text: string, capacity: Partial<Capacity>): string {
  const { ports, endpointsPerPort, cuts } = withinCapacity(servicePorts(service(text), 'IPv4'), {
    ...UNBOUNDED,
    ...capacity,
  });
  const [first] = ports;
  const lists = [first?.loadBalancerIPs, first?.externalIPs, first?.sourceRanges].map((list) =>
    list?.join(' '),
  );
  return [
    `${ports.length} ports`,
    ...lists,
    `${endpointsPerPort} endpoints`,
    ...cuts.map(({ field, count, served }) => `${field} ${served} of ${count}`),
  ].join(' | ');
}

describe('what one Service may have', () => {
  test('everything, within the bounds', () => {
    const text = 'x/s LoadBalancer 10.96.0.1 a:80 b:81 ext=1.1.1.1,1.1.1.2 lb=2.2.2.1 ranges=10.0.0.0/8';
    expect(bounded(text, SMALL)).toBe('2 ports | 2.2.2.1 | 1.1.1.1 1.1.1.2 | 10.0.0.0/8 | 7 endpoints');
  });

  test('addresses that were too many to read are told of in the family that has some', () => {
    const given = service('x/s 10.96.0.1 fd00::1 80 ext=2001:db8::1,2001:db8::2');
    const most = { ...given, unread: { ports: 0, externalIPs: 5, loadBalancerIPs: 0, sourceRanges: 0 } };
    expect(withinCapacity(servicePorts(most, 'IPv4'), SMALL).cuts).toEqual([]);
    expect(withinCapacity(servicePorts(most, 'IPv6'), SMALL).cuts).toMatchObject([{ count: 7, served: 2 }]);
  });

  test('the first ports', () => {
    expect(bounded('x/s 10.96.0.1 a:80 b:81 c:82 d:83', SMALL)).toBe(
      '3 ports |  |  |  | 10 endpoints | spec.ports 3 of 4',
    );
  });

  test('an address is served at every port or at none; load balancers come first', () => {
    const text =
      'x/s LoadBalancer 10.96.0.1 a:80@30080 b:81@30081 lb=2.2.2.1,2.2.2.2 ext=1.1.1.1,1.1.1.2,1.1.1.3';
    expect(bounded(text, { frontends: 10 })).toBe(
      '2 ports | 2.2.2.1 2.2.2.2 | 1.1.1.1 |  | Infinity endpoints | spec.externalIPs 1 of 3',
    );
    expect(bounded(text, { frontends: 6 })).toBe(
      '2 ports | 2.2.2.1 |  |  | Infinity endpoints | status.loadBalancer.ingress 1 of 2 | spec.externalIPs 0 of 3',
    );
  });

  test('cluster IPs and node ports stay, however little room there is', () => {
    expect(bounded('x/s NodePort 10.96.0.1 a:80@30080 b:81@30081 ext=1.1.1.1', { frontends: 1 })).toBe(
      '2 ports |  |  |  | Infinity endpoints | spec.externalIPs 0 of 1',
    );
  });

  test('source ranges are counted for each restricted address; one always stays, or everybody might come', () => {
    const text =
      'x/s LoadBalancer 10.96.0.1 a:80 b:81 lb=2.2.2.1,2.2.2.2 ranges=1.0.0.0/8,2.0.0.0/8,3.0.0.0/8';
    expect(bounded(text, { sourceRanges: 8 })).toContain('| spec.loadBalancerSourceRanges 2 of 3');
    expect(bounded(text, { sourceRanges: 1 })).toContain('| 1.0.0.0/8 | Infinity endpoints');
  });

  test('endpoints are counted for each frontend', () => {
    expect(bounded('x/s 10.96.0.1 80 ext=1.1.1.1,1.1.1.2', { destinations: 30 })).toContain('10 endpoints');
    expect(bounded('x/s 10.96.0.1 a:80 b:81', { endpoints: 30 })).toContain('15 endpoints');
    expect(bounded('x/s 10.96.0.1 80', { destinations: 0 })).toContain('1 endpoints');
  });
});

test('what is said about it', () => {
  const ports = servicePorts(service('x/s 10.96.0.1 80 ext=1.1.1.1,1.1.1.2'), 'IPv4');
  const capacity = { ...UNBOUNDED, frontends: 2, destinations: 4 };
  const within = withinCapacity(ports, capacity);
  expect([...within.cuts, ...endpointCut(9, within, capacity)].map(printCut)).toEqual([
    'spec.externalIPs has 2 entries, of which the first 1 are used: a Service may have 2 frontends (addresses × ports, with node ports)',
    '9 endpoints are in its slices, of which 2 for each port are used: a Service may have 4 destinations (endpoints × addresses × ports)',
  ]);
});

describe('what fits into 1.5 MB is bounded in every mode', () => {
  const many = (first: string, count: number): string =>
    Array.from({ length: count }, (_, index) => `${first}.${(index >> 8) & 255}.${index & 255}`).join(',');
  const ports = Array.from({ length: 2000 }, (_, index) => `p${index}:${1000 + index}`).join(' ');
  const wide = servicePorts(service(`x/s 10.96.0.1 ${ports} ext=${many('172.20', 2000)}`), 'IPv4');

  test.each(['iptables', 'ipvs', 'nftables'] as const)('%s', (mode) => {
    const capacity = capacityOf(mode, 'IPv4');
    const within = withinCapacity(wide, capacity);
    const frontends = within.ports.reduce((sum, port) => sum + 1 + port.externalIPs.length, 0);
    expect(frontends).toBeLessThanOrEqual(capacity.frontends);
    expect(within.ports.length * within.endpointsPerPort).toBeLessThanOrEqual(capacity.endpoints);
    expect(frontends * within.endpointsPerPort).toBeLessThanOrEqual(capacity.destinations);
    const most = capacity.frontends + capacity.sourceRanges;
    if (Number.isFinite(capacity.destinations))
      expect(costOf(wide, 100_000, capacity)).toBeLessThanOrEqual(most + capacity.destinations);
  });
});

test('half as many ranges of IPv6 addresses where the kernel compares all of their bits', () => {
  expect(capacityOf('nftables', 'IPv6').sourceRanges).toBe(capacityOf('nftables', 'IPv4').sourceRanges / 2);
  expect(capacityOf('iptables', 'IPv6')).toEqual(capacityOf('iptables', 'IPv4'));
});
