/**
 * Worlds as text. A service, a slice and an endpoint are one line each:
 *
 *   service  `shop/web LoadBalancer 10.96.7.7 http:80/tcp@30080 lb=198.51.100.20 etp=Local born=3`
 *   slice    `shop/web-1 of web http:8080/tcp | 10.244.0.8 node-a | 10.244.1.9 node-b draining zone=a`
 */
import {
  type Endpoint,
  type EndpointsByPort,
  type EndpointTracker,
  portKey,
} from '../../src/model/endpointTracker.ts';
import {
  type Cidr,
  familyOf,
  type Family,
  hostPort,
  type Ip,
  parseCidr,
  parseIp,
} from '../../src/model/ip.ts';
import {
  type EndpointSlice,
  objectKey,
  type Node,
  type ObjectKey,
  type Protocol,
  PROTOCOLS,
  type Service,
  type ServicePortSpec,
  type ServiceType,
  type SliceEndpoint,
  type TrafficPolicy,
} from '../../src/model/objects.ts';
import { type ServicePort, servicePorts } from '../../src/model/serviceTracker.ts';
import type { NodeView } from '../../src/plan/types.ts';
import type { ViewSettings } from '../../src/plan/view.ts';

export function ip(text: string): Ip {
  return known(parseIp(text), text);
}

export function cidr(text: string): Cidr {
  return known(parseCidr(text), text);
}

export function known<T>(value: T | undefined, what: string): T {
  if (value === undefined) throw new Error(`this test's world does not know ${what}`);
  return value;
}

const PORT = /^(?:([a-z][a-z0-9-]*):)?(\d+)(?:\/(tcp|udp|sctp))?(?:@(\d+))?$/;

function port(word: string): ServicePortSpec | undefined {
  const match = PORT.exec(word);
  if (!match) return undefined;
  const protocol = PROTOCOLS.find((each) => each.toLowerCase() === (match[3] ?? 'tcp')) ?? 'TCP';
  return { name: match[1] ?? '', protocol, port: Number(match[2]), nodePort: Number(match[4] ?? 0) };
}

const TYPES: readonly ServiceType[] = ['ClusterIP', 'NodePort', 'LoadBalancer'];

export function service(text: string): Service {
  const [path = '', ...words] = text.trim().split(/\s+/);
  const [namespace = '', name = ''] = path.split('/');
  const plain = words.filter((word) => !word.includes('='));
  const options = new Map(
    words
      .filter((word) => word.includes('='))
      .map((word) => [word.slice(0, word.indexOf('=')), word.slice(word.indexOf('=') + 1)]),
  );
  const list = (key: string): readonly string[] => (options.get(key) ?? '').split(',').filter(Boolean);
  const number = (key: string): number | undefined =>
    options.has(key) ? Number(options.get(key)) : undefined;
  const policy = (key: string): TrafficPolicy => (options.get(key) === 'Local' ? 'Local' : 'Cluster');
  const ips = plain.flatMap((word) => parseIp(word) ?? []);
  const ports = plain.flatMap((word) => (parseIp(word) === undefined ? (port(word) ?? []) : []));
  const type = TYPES.find((each) => plain.includes(each));
  const guess = options.has('lb')
    ? 'LoadBalancer'
    : ports.some((each) => each.nodePort > 0)
      ? 'NodePort'
      : 'ClusterIP';
  return {
    namespace,
    name,
    type: type ?? guess,
    createdAt: number('born'),
    clusterIPs: Object.fromEntries(ips.map((each) => [familyOf(each), each])),
    ports,
    externalIPs: list('ext').map(ip),
    loadBalancerIPs: list('lb').map(ip),
    loadBalancerSourceRanges: list('ranges').map(cidr),
    affinitySeconds: number('affinity'),
    externalTrafficPolicy: policy('etp'),
    internalTrafficPolicy: policy('itp'),
    healthCheckNodePort: number('hc') ?? 0,
  };
}

const CONDITIONS = {
  ready: { ready: true, serving: true, terminating: false },
  unready: { ready: false, serving: false, terminating: false },
  starting: { ready: false, serving: true, terminating: false },
  draining: { ready: false, serving: true, terminating: true },
  dead: { ready: false, serving: false, terminating: true },
  /** publishNotReadyAddresses */
  published: { ready: true, serving: false, terminating: true },
} as const;

type Condition = keyof typeof CONDITIONS;

function isCondition(word: string): word is Condition {
  return Object.hasOwn(CONDITIONS, word);
}

/** `10.0.0.1 node-a draining zone=a,b node=n1` */
export function sliceEndpoint(text: string): SliceEndpoint {
  const [address = '', ...words] = text.trim().split(/\s+/);
  const hints = (key: string): readonly string[] =>
    words
      .find((word) => word.startsWith(`${key}=`))
      ?.slice(key.length + 1)
      .split(',') ?? [];
  const plain = words.filter((word) => !word.includes('='));
  return {
    ip: ip(address),
    nodeName: plain.find((word) => !isCondition(word)),
    ...CONDITIONS[plain.find(isCondition) ?? 'ready'],
    zoneHints: hints('zone'),
    nodeHints: hints('node'),
  };
}

export function slice(text: string): EndpointSlice {
  const [head = '', ...rest] = text.split('|');
  const [path = '', of = '', serviceName = '', ...ports] = head.trim().split(/\s+/);
  if (of !== 'of') throw new Error(`not a slice: ${text}`);
  const [namespace = '', name = ''] = path.split('/');
  const endpoints = rest.filter((part) => part.trim() !== '').map(sliceEndpoint);
  const first = endpoints[0];
  return {
    namespace,
    name,
    service: serviceName,
    family: first ? familyOf(first.ip) : 'IPv4',
    ports: ports.map((word) => {
      const { nodePort: _, ...plain } = known(port(word), word);
      return plain;
    }),
    endpoints,
    triggerTime: undefined,
  };
}

/** `10.0.0.1:80 local draining zone=a`; local means on this node. */
export function endpoint(text: string): Endpoint {
  const [where = '', ...words] = text.trim().split(/\s+/);
  const colon = where.lastIndexOf(':');
  const address = where.slice(0, colon).replace(/^\[|\]$/g, '');
  const { nodeName, ...rest } = sliceEndpoint([address, ...words].join(' '));
  const number = Number(where.slice(colon + 1));
  return { ...rest, port: number, key: hostPort(rest.ip, number), isLocal: nodeName === 'local' };
}

/** `10.0.0.1:80 local, 10.0.0.2:80 draining` */
export function endpoints(text: string): readonly Endpoint[] {
  return text === '' ? [] : text.split(', ').map(endpoint);
}

/** The first port of a service, as its family sees it. */
export function servicePort(text: string, family: Family = 'IPv4'): ServicePort {
  return known(servicePorts(service(text), family)[0], text);
}

export function node(name: string, ...words: readonly string[]): Node {
  return {
    name,
    ips: words.flatMap((word) => parseIp(word) ?? []),
    podCIDRs: words.flatMap((word) => parseCidr(word) ?? []),
    eligible: true,
    zone: words.find((word) => word.startsWith('zone='))?.slice('zone='.length),
  };
}

export const VIEW: NodeView = {
  nodeName: 'node-a',
  zone: 'a',
  nodeIp: ip('192.0.2.10'),
  localDetector: { kind: 'cidr', cidr: cidr('10.244.0.0/16') },
  masqueradeAll: false,
  nodePorts: { ranges: 'all', loopback: true },
  allowExternalIPs: true,
};

export const VIEW_6: NodeView = {
  ...VIEW,
  nodeIp: ip('2001:db8::10'),
  localDetector: { kind: 'cidr', cidr: cidr('fd00:244::/32') },
  nodePorts: { ranges: 'all', loopback: false },
};

export const SETTINGS: ViewSettings = {
  nodeName: 'node-a',
  bindAddress: undefined,
  detectLocal: { mode: 'ClusterCIDR', cidrs: [cidr('10.244.0.0/16'), cidr('fd00:244::/32')] },
  masqueradeAll: false,
  nodePortAddresses: [],
  localhostNodePorts: true,
};

/** `http/TCP: 10.0.0.1:80 local, 10.0.0.2:80` */
export function printEndpoints(byPort: EndpointsByPort): readonly string[] {
  return [...byPort].map(([key, list]) => `${key}: ${list.map(printEndpoint).join(', ')}`).sort();
}

export function printEndpoint(each: Endpoint): string {
  const condition = Object.entries(CONDITIONS).find(
    ([, value]) =>
      value.ready === each.ready && value.serving === each.serving && value.terminating === each.terminating,
  )?.[0];
  return [
    each.key,
    ...(each.isLocal ? ['local'] : []),
    ...(condition === 'ready' ? [] : [condition ?? '?']),
  ].join(' ');
}

export function keyOf({ namespace, name }: { readonly namespace: string; readonly name: string }): ObjectKey {
  return objectKey(namespace, name);
}

export { portKey, type Protocol };

/** Makes all pending slices current; the services of which a slice is not what it was. */
export function applyAll(tracker: EndpointTracker): ReadonlySet<string> {
  return new Set(tracker.pendingServices().filter((service) => tracker.apply(service)));
}
