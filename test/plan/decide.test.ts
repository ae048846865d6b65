import { describe, expect, test } from 'vitest';
import { answersNodePorts, classifySource, decide, type Host, type Packet } from '../../src/plan/decide.ts';
import type { NodePortAddresses, NodeView, LocalTrafficDetector } from '../../src/plan/types.ts';
import { Cluster } from './cluster.ts';
import { cidr, ip, VIEW } from './given.ts';

const HOST: Host = { addresses: [ip('192.0.2.10'), ip('10.244.0.254')] };

function packet(source: string, to: string, inInterface: string | undefined = 'eth0'): Packet {
  const [address = '', rest = ''] = to.split(':');
  const [port = '', protocol = 'tcp'] = rest.split('/');
  return {
    source: ip(source),
    destination: ip(address),
    port: Number(port),
    protocol: protocol === 'udp' ? 'UDP' : protocol === 'sctp' ? 'SCTP' : 'TCP',
    inInterface,
  };
}

describe('where a packet comes from', () => {
  const byCidr: LocalTrafficDetector = { kind: 'cidr', cidr: cidr('10.244.0.0/16') };
  const byBridge: LocalTrafficDetector = { kind: 'interface', name: 'cni0' };
  const byPrefix: LocalTrafficDetector = { kind: 'interfacePrefix', prefix: 'veth' };
  const none: LocalTrafficDetector = { kind: 'none' };
  const table: readonly (readonly [LocalTrafficDetector, string, string | undefined, string])[] = [
    [byCidr, '10.244.0.7', 'cni0', 'pod'],
    [byCidr, '10.244.9.7', 'eth0', 'pod'],
    [byCidr, '192.0.2.10', undefined, 'node'],
    [byCidr, '127.0.0.1', undefined, 'node'],
    // The bridge's own address is in the pods' range: a pod, as the rules see it.
    [byCidr, '10.244.0.254', undefined, 'pod'],
    [byCidr, '203.0.113.9', 'eth0', 'outside'],
    [byBridge, '10.244.0.7', 'cni0', 'pod'],
    [byBridge, '10.244.0.7', 'cni01', 'outside'],
    [byBridge, '10.244.9.7', 'eth0', 'outside'],
    [byBridge, '10.244.0.254', undefined, 'node'],
    [byPrefix, '10.244.0.7', 'veth1234', 'pod'],
    [byPrefix, '203.0.113.9', 'veth1234', 'pod'],
    [byPrefix, '10.244.0.7', 'eth0', 'outside'],
    [byPrefix, '192.0.2.10', undefined, 'node'],
    [none, '10.244.0.7', 'cni0', 'outside'],
    [none, '192.0.2.10', undefined, 'node'],
  ];
  test.each(table)('%j: %s in %s is %s', (detector, source, inInterface, expected) => {
    expect(classifySource(detector, { ...packet(source, '1.1.1.1:80'), inInterface }, HOST)).toBe(expected);
  });
});

describe('on which addresses node ports answer', () => {
  const everywhere: NodePortAddresses = { ranges: 'all', loopback: true };
  const notLocalhost: NodePortAddresses = { ranges: 'all', loopback: false };
  const some: NodePortAddresses = { ranges: [cidr('192.0.2.0/24')], loopback: false };
  const someAndLocalhost: NodePortAddresses = {
    ranges: [cidr('192.0.2.0/24'), cidr('127.0.0.1/32')],
    loopback: true,
  };
  test.each([
    [everywhere, '192.0.2.10', true],
    [everywhere, '127.0.0.1', true],
    [notLocalhost, '192.0.2.10', true],
    [notLocalhost, '127.0.0.1', false],
    [notLocalhost, '::1', false],
    [some, '192.0.2.10', true],
    [some, '198.51.100.1', false],
    [some, '127.0.0.1', false],
    [someAndLocalhost, '127.0.0.1', true],
    [someAndLocalhost, '127.0.0.2', false],
  ])('%j: %s %s', (nodePorts, address, expected) => {
    expect(answersNodePorts(nodePorts, ip(address))).toBe(expected);
  });
});

const WORLD = `
  x/open  10.96.0.1 80@30080 lb=198.51.100.1 ext=198.51.100.9
  x/local 10.96.0.2 80@30081 lb=198.51.100.2 etp=Local
  x/ranges 10.96.0.3 80@30082 lb=198.51.100.3 ranges=203.0.113.0/24,192.0.2.0/24
  x/idle  10.96.0.4 80@30083 lb=198.51.100.4 ranges=203.0.113.0/24
  x/far   10.96.0.5 80@30084 lb=198.51.100.5 etp=Local ranges=203.0.113.0/24
  x/own   10.96.0.6 80 ext=192.0.2.10
  x/open-1 of open 80 | 10.244.0.1 node-a | 10.244.1.1 node-b
  x/local-1 of local 80 | 10.244.0.2 node-a | 10.244.1.2 node-b
  x/ranges-1 of ranges 80 | 10.244.0.3 node-a
  x/far-1 of far 80 | 10.244.1.5 node-b
  x/own-1 of own 80 | 10.244.0.6 node-a
`;

function verdict(from: string, to: string, view: NodeView = VIEW, inInterface?: string): string {
  const made = new Cluster(view);
  made.tell(WORLD).replan();
  const decision = decide(made.planner, packet(from, to, inInterface), HOST);
  if (decision.verdict === 'pass') return 'pass';
  if (decision.verdict !== 'forward') return `${decision.verdict}: ${decision.reason}`;
  return decision.targets.map((each) => each.endpoint.ip + (each.masquerade ? ' masq' : '')).join(', ');
}

const OUTSIDE = '203.0.113.9';
const POD = '10.244.0.77';

describe('where a packet goes', () => {
  test.each([
    ['nobody’s address', POD, '10.96.9.9:80', 'pass'],
    ['nobody’s port', POD, '10.96.0.1:81', 'pass'],
    ['the other protocol', POD, '10.96.0.1:80/udp', 'pass'],
    ['a pod dials a cluster IP', POD, '10.96.0.1:80', '10.244.0.1, 10.244.1.1'],
    ['an endpoint dials itself', '10.244.0.1', '10.96.0.1:80', '10.244.0.1 masq, 10.244.1.1'],
    ['somebody outside dials a cluster IP', OUTSIDE, '10.96.0.1:80', '10.244.0.1 masq, 10.244.1.1 masq'],
    ['a node port on the node', OUTSIDE, '192.0.2.10:30080', '10.244.0.1 masq, 10.244.1.1 masq'],
    ['a node port on localhost', '127.0.0.1', '127.0.0.1:30080', '10.244.0.1 masq, 10.244.1.1 masq'],
    ['a node port elsewhere', POD, '192.0.2.99:30080', 'pass'],
    ['an external IP', OUTSIDE, '198.51.100.9:80', '10.244.0.1 masq, 10.244.1.1 masq'],
    ['ETP Local from outside', OUTSIDE, '198.51.100.2:80', '10.244.0.2'],
    ['ETP Local from a pod', POD, '198.51.100.2:80', '10.244.0.2, 10.244.1.2'],
    ['ETP Local from the node', '192.0.2.10', '198.51.100.2:80', '10.244.0.2 masq, 10.244.1.2 masq'],
    ['a source that may come', OUTSIDE, '198.51.100.3:80', '10.244.0.3 masq'],
    ['a source that may not', '198.18.0.1', '198.51.100.3:80', 'drop: source not allowed'],
    ['a pod is not excepted', POD, '198.51.100.3:80', 'drop: source not allowed'],
    ['the address itself, as the node may come', '198.51.100.3', '198.51.100.3:80', '10.244.0.3 masq'],
    ['ranges do not hold for node ports', '198.18.0.1', '192.0.2.10:30082', '10.244.0.3 masq'],
    ['nor for cluster IPs', '198.18.0.1', '10.96.0.3:80', '10.244.0.3 masq'],
    ['no endpoints', OUTSIDE, '10.96.0.4:80', 'reject: no endpoints'],
    ['no endpoints, and not allowed', '198.18.0.1', '198.51.100.4:80', 'reject: no endpoints'],
    ['none here', OUTSIDE, '198.51.100.5:80', 'drop: no local endpoints'],
    ['none here, and not allowed', '198.18.0.1', '198.51.100.5:80', 'drop: source not allowed'],
    ['none here, node port', OUTSIDE, '192.0.2.10:30084', 'drop: no local endpoints'],
    ["a service on the node's own address", OUTSIDE, '192.0.2.10:80', '10.244.0.6 masq'],
  ])('%s', (_, from, to, expected) => expect(verdict(from, to)).toBe(expected));

  test('localhost may be left out', () => {
    const view = { ...VIEW, nodePorts: { ranges: 'all', loopback: false } } as const;
    expect(verdict('127.0.0.1', '127.0.0.1:30080', view)).toBe('pass');
  });

  test('the answer names the service port and the frontend', () => {
    const made = new Cluster();
    made.tell(WORLD).replan();
    const decision = decide(made.planner, packet(OUTSIDE, '192.0.2.10:30081'), HOST);
    expect(decision).toMatchObject({ servicePort: { id: 'x/local/TCP' }, frontend: { kind: 'nodePort' } });
  });
});
