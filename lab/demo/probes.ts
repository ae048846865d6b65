/** Who dials what. */
import type { Family, Ip } from '../../src/model/ip.ts';
import type { ObjectKey, Protocol } from '../../src/model/objects.ts';
import type { Frontend, FrontendKind, Plan, ServicePortPlan } from '../../src/plan/types.ts';
import { addressOf, type HostName } from '../topology.ts';
import type { Transport } from '../protocol.ts';

export interface Probe {
  readonly from: Dialler;
  readonly family: Family;
  readonly service: ObjectKey;
  readonly kind: FrontendKind;
  readonly transport: Transport;
}

/** `far client` is the client's second address, which lies in another network. */
export type Dialler = 'pod-a' | 'pod-b' | 'node1' | 'client' | 'far client';

export interface Target {
  readonly address: Ip;
  readonly port: number;
}

const TRANSPORTS: Readonly<Partial<Record<Protocol, Transport>>> = { TCP: 'tcp', UDP: 'udp' };

/** Everyone to every kind of address, then what is special. */
const PROBES: readonly Probe[] = [
  ...from(['pod-b', 'pod-a', 'node1', 'client'], 'shop/api', 'clusterIP'),
  ...from(['pod-b', 'node1', 'client'], 'shop/shopfront', 'nodePort'),
  ...from(['pod-b', 'node1', 'client'], 'shop/shopfront', 'externalIP'),
  ...from(['pod-b', 'node1', 'client', 'far client'], 'shop/web', 'loadBalancerIP'),
  ...from(['pod-b'], 'shop/cart', 'clusterIP'),
  ...from(['pod-b'], 'shop/dns', 'clusterIP', { transport: 'udp' }),
  ...from(['pod-b'], 'shop/catalog', 'clusterIP', { family: 'IPv6' }),
  ...from(['client'], 'shop/catalog', 'nodePort', { family: 'IPv6' }),
  ...from(['pod-b'], 'shop/idle', 'clusterIP'),
];

function from(
  diallers: readonly Dialler[],
  service: ObjectKey,
  kind: FrontendKind,
  { family = 'IPv4', transport = 'tcp' }: { family?: Family; transport?: Transport } = {},
): readonly Probe[] {
  return diallers.map((dialler) => ({ from: dialler, family, service, kind, transport }));
}

/** The demo's own probes, and for each service that they do not know, one for each of its addresses. */
export function probesFor(plans: readonly Plan[]): readonly Probe[] {
  const known = new Set(PROBES.map(({ service }) => service));
  const others = plans.flatMap(({ family, servicePorts }) =>
    [...servicePorts.values()]
      .filter(({ service }) => !known.has(service))
      .flatMap((port) => port.frontends.flatMap((frontend) => probeOf(family, port, frontend))),
  );
  return [...PROBES, ...others];
}

function probeOf(family: Family, port: ServicePortPlan, { kind }: Frontend): readonly Probe[] {
  const transport = TRANSPORTS[port.protocol];
  if (transport === undefined) return []; // the lab's hosts speak no SCTP
  return [
    { from: kind === 'clusterIP' ? 'pod-b' : 'client', family, service: port.service, kind, transport },
  ];
}

export function probeKey({ from: dialler, family, service, kind, transport }: Probe): string {
  return [dialler, family, service, kind, transport].join(' ');
}

export function planOf({ family }: Probe, plans: readonly Plan[]): Plan {
  const plan = plans.find((candidate) => candidate.family === family);
  if (!plan) throw new Error(`there is no plan for ${family}`);
  return plan;
}

/** The address that the probe dials; `undefined` when the plan has no such address. */
export function targetOf(probe: Probe, plan: Plan): Target | undefined {
  for (const port of plan.servicePorts.values()) {
    if (port.service !== probe.service || TRANSPORTS[port.protocol] !== probe.transport) continue;
    const frontend = port.frontends.find(({ kind }) => kind === probe.kind);
    if (frontend) return { address: frontend.address ?? nodeAddress(probe, plan), port: frontend.port };
  }
  return undefined;
}

export function hostOf(dialler: Dialler): HostName {
  return dialler === 'far client' ? 'client' : dialler;
}

/** The address that the host dials from. */
export function sourceOf({ from: dialler, family }: Probe, target: Target): Ip {
  if (dialler === 'node1' && target.address === LOOPBACK) return LOOPBACK;
  return addressOf(hostOf(dialler), family, dialler === 'far client' ? 1 : 0);
}

const LOOPBACK = '127.0.0.1' as Ip;

/** A node port is dialled at the node's nearest address: by the node itself, on loopback where the mode answers there. */
function nodeAddress({ from: dialler, family }: Probe, { view }: Plan): Ip {
  if (dialler === 'node1' && family === 'IPv4' && view.nodePorts.loopback) return LOOPBACK;
  return addressOf('node1', family, hostOf(dialler) === 'client' ? 2 : 0);
}
