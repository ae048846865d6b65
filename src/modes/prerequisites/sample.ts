/**
 * Sample services which together use every part of a mode's rules. A mode compiles them like any others and offers the
 * kernel the result. Their addresses are reserved for documentation (RFC 5737, RFC 3849): no packet has them.
 */
import { type Endpoint, portKey } from '../../model/endpointTracker.ts';
import { type Family, hostCidr, hostPort, type Ip, parseIp } from '../../model/ip.ts';
import { objectKey, type Protocol } from '../../model/objects.ts';
import type { ServicePort } from '../../model/serviceTracker.ts';
import { Planner } from '../../plan/planner.ts';
import type { NodeView, Plan } from '../../plan/types.ts';

interface SamplePort {
  readonly protocol: Protocol;
  readonly endpoints: number;
  readonly affinitySeconds?: number;
  /** Both traffic policies are Local. */
  readonly isPolicyLocal?: boolean;
}

/** Each protocol; affinity; no endpoints; more endpoints than the nftables mode tries in turn. */
const PORTS: readonly SamplePort[] = [
  { protocol: 'TCP', endpoints: 1 },
  { protocol: 'UDP', endpoints: 2 },
  { protocol: 'SCTP', endpoints: 2, isPolicyLocal: true },
  { protocol: 'TCP', endpoints: 2, affinitySeconds: 10_800, isPolicyLocal: true },
  { protocol: 'TCP', endpoints: 0 },
  { protocol: 'TCP', endpoints: 17 },
];
const SERVICE = objectKey('junction', 'trial');
const FIRST_PORT = 60_000;

/** An address that no other program uses. */
export const NOBODY: Readonly<Record<Family, Ip>> = {
  IPv4: documentationIp('IPv4', 0),
  IPv6: documentationIp('IPv6', 0),
};

export function samplePlan(family: Family, loopbackNodePorts: boolean): Plan {
  const view: NodeView = {
    nodeName: 'junction-trial',
    zone: undefined,
    nodeIp: undefined,
    localDetector: { kind: 'cidr', cidr: hostCidr(documentationIp(family, 9)) },
    masqueradeAll: false,
    nodePorts: { ranges: 'all', loopback: loopbackNodePorts && family === 'IPv4' },
    allowExternalIPs: true,
  };
  const ports = PORTS.map((port, index) => servicePort(port, index, family));
  const endpoints = new Map(
    PORTS.map(({ protocol, endpoints: count }, index) => [
      portKey(`p${index}`, protocol),
      Array.from({ length: count }, (_, each) => endpoint(documentationIp(family, 16 + each))),
    ]),
  );
  const planner = new Planner(family, view, { portsOf: () => ports, endpointsOf: () => endpoints });
  planner.update([SERVICE]);
  return planner;
}

function servicePort(
  { protocol, affinitySeconds, isPolicyLocal = false }: SamplePort,
  index: number,
  family: Family,
): ServicePort {
  return {
    id: `${SERVICE}:p${index}/${protocol}`,
    service: SERVICE,
    name: `${SERVICE}:p${index}`,
    portName: `p${index}`,
    type: 'LoadBalancer',
    protocol,
    clusterIP: NOBODY[family],
    port: FIRST_PORT + index,
    nodePort: FIRST_PORT + index,
    externalIPs: [documentationIp(family, 1)],
    loadBalancerIPs: [documentationIp(family, 2)],
    sourceRanges: [hostCidr(documentationIp(family, 3))],
    affinitySeconds,
    externalPolicyLocal: isPolicyLocal,
    internalPolicyLocal: isPolicyLocal,
    healthCheckNodePort: isPolicyLocal ? FIRST_PORT + 100 + index : 0,
    createdAt: undefined,
  };
}

function endpoint(ip: Ip): Endpoint {
  const state = { ready: true, serving: true, terminating: false, zoneHints: [], nodeHints: [] };
  return { ip, port: FIRST_PORT, key: hostPort(ip, FIRST_PORT), isLocal: true, ...state };
}

function documentationIp(family: Family, number: number): Ip {
  const text = family === 'IPv4' ? `198.51.100.${number}` : `2001:db8::${number.toString(16)}`;
  const ip = parseIp(text);
  if (ip === undefined) throw new Error(`not an address: ${text}`);
  return ip;
}
