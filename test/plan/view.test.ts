import { describe, expect, test } from 'vitest';
import type { Family } from '../../src/model/ip.ts';
import { type DetectLocal, nodeView, type ViewSettings } from '../../src/plan/view.ts';
import { cidr, ip, node, SETTINGS } from './given.ts';

const NODE = node(
  'node-a',
  '192.0.2.10',
  '192.0.2.11',
  '2001:db8::10',
  '10.244.3.0/24',
  'fd00:244:3::/64',
  'zone=b',
);

describe('how pods are told apart', () => {
  const table: readonly (readonly [string, DetectLocal, unknown, unknown])[] = [
    [
      'ClusterCIDR, both families',
      { mode: 'ClusterCIDR', cidrs: [cidr('10.244.0.0/16'), cidr('fd00:244::/32')] },
      { kind: 'cidr', cidr: '10.244.0.0/16' },
      { kind: 'cidr', cidr: 'fd00:244::/32' },
    ],
    [
      'ClusterCIDR, one family',
      { mode: 'ClusterCIDR', cidrs: [cidr('fd00:244::/32')] },
      { kind: 'none' },
      { kind: 'cidr', cidr: 'fd00:244::/32' },
    ],
    ['ClusterCIDR, none', { mode: 'ClusterCIDR', cidrs: [] }, { kind: 'none' }, { kind: 'none' }],
    [
      'NodeCIDR',
      { mode: 'NodeCIDR' },
      { kind: 'cidr', cidr: '10.244.3.0/24' },
      { kind: 'cidr', cidr: 'fd00:244:3::/64' },
    ],
    [
      'BridgeInterface',
      { mode: 'BridgeInterface', name: 'cni0' },
      { kind: 'interface', name: 'cni0' },
      { kind: 'interface', name: 'cni0' },
    ],
    [
      'InterfaceNamePrefix',
      { mode: 'InterfaceNamePrefix', prefix: 'veth' },
      { kind: 'interfacePrefix', prefix: 'veth' },
      { kind: 'interfacePrefix', prefix: 'veth' },
    ],
  ];
  test.each(table)('%s', (_, detectLocal, four, six) => {
    expect(nodeView({ ...SETTINGS, detectLocal }, NODE, 'IPv4').localDetector).toEqual(four);
    expect(nodeView({ ...SETTINGS, detectLocal }, NODE, 'IPv6').localDetector).toEqual(six);
  });

  test('NodeCIDR before the node is known', () => {
    const view = nodeView({ ...SETTINGS, detectLocal: { mode: 'NodeCIDR' } }, undefined, 'IPv4');
    expect(view.localDetector).toEqual({ kind: 'none' });
  });
});

describe("the node's own address", () => {
  const table: readonly (readonly [string | undefined, typeof NODE | undefined, Family, string])[] = [
    [undefined, NODE, 'IPv4', '192.0.2.10'],
    [undefined, NODE, 'IPv6', '2001:db8::10'],
    ['0.0.0.0', NODE, 'IPv4', '192.0.2.10'],
    ['::', NODE, 'IPv6', '2001:db8::10'],
    ['198.51.100.1', NODE, 'IPv4', '198.51.100.1'],
    ['198.51.100.1', NODE, 'IPv6', '2001:db8::10'],
    [undefined, undefined, 'IPv4', '127.0.0.1'],
    [undefined, undefined, 'IPv6', '::1'],
  ];
  test.each(table)('bind address %s', (bind, here, family, expected) => {
    const bindAddress = bind === undefined ? undefined : ip(bind);
    expect(nodeView({ ...SETTINGS, bindAddress }, here, family).nodeIp).toBe(expected);
  });
});

describe('where node ports answer', () => {
  type Addresses = ViewSettings['nodePortAddresses'];
  const cidrs = (...list: readonly string[]): Addresses => list.map(cidr);
  const table: readonly (readonly [string, Addresses, boolean, Family, unknown])[] = [
    ['everywhere', [], true, 'IPv4', { ranges: 'all', loopback: true }],
    ['everywhere but on localhost', [], false, 'IPv4', { ranges: 'all', loopback: false }],
    ['never on ::1', [], true, 'IPv6', { ranges: 'all', loopback: false }],
    ['in a range', cidrs('192.168.0.0/24'), true, 'IPv4', { ranges: ['192.168.0.0/24'], loopback: false }],
    [
      'in a range and on localhost',
      cidrs('192.168.0.0/24', '127.0.0.1/32'),
      true,
      'IPv4',
      { ranges: ['192.168.0.0/24', '127.0.0.1/32'], loopback: true },
    ],
    [
      'a range that holds localhost',
      cidrs('126.0.0.0/7'),
      true,
      'IPv4',
      { ranges: ['126.0.0.0/7'], loopback: true },
    ],
    [
      'only the other family is restricted',
      cidrs('fd00::/64'),
      true,
      'IPv4',
      { ranges: 'all', loopback: true },
    ],
    [
      'each family has its own',
      cidrs('192.168.0.0/24', 'fd00::/64'),
      true,
      'IPv6',
      { ranges: ['fd00::/64'], loopback: false },
    ],
    ['primary', 'primary', true, 'IPv4', { ranges: ['192.0.2.10/32'], loopback: false }],
  ];
  test.each(table)('%s', (_, nodePortAddresses, localhostNodePorts, family, expected) => {
    const settings = { ...SETTINGS, nodePortAddresses, localhostNodePorts };
    expect(nodeView(settings, NODE, family).nodePorts).toEqual(expected);
  });
});

test('name, zone and masquerading go along', () => {
  expect(nodeView({ ...SETTINGS, masqueradeAll: true }, NODE, 'IPv4')).toMatchObject({
    nodeName: 'node-a',
    zone: 'b',
    masqueradeAll: true,
  });
});
