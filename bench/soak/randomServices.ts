/**
 * Services of every kind, drawn by number: a slot always has the same name and addresses, and may hold any service, or
 * none. Printed as manifests.
 */
import { ADDRESSES, type NodeName, type PodName, PODS_OF } from '../../lab/topology.ts';

/** Answers a whole number below its argument. */
export type Draw = (below: number) => number;

/** A small fixed generator, so that a failure can be repeated. */
export function drawsFrom(seed: number): Draw {
  let state = seed >>> 0;
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

type Json = Readonly<Record<string, unknown>>;

const PODS: readonly (readonly [PodName, NodeName])[] = (['node1', 'node2'] as const).flatMap((node) =>
  PODS_OF[node].map((pod) => [pod, node] as const),
);
const PORTS = [
  { name: 'http', protocol: 'TCP', port: 80, targets: [8080, 8081] },
  { name: 'dns', protocol: 'UDP', port: 53, targets: [53, 9090] },
] as const;
const SECONDS = [4, 600, 10_800];

/** The manifests of a slot; without text: there is no such service now. */
export function randomSlot(slot: number, draw: Draw): string {
  if (draw(6) === 0) return '';
  const isDual = draw(2) === 0;
  const ports = draw(3) === 0 ? PORTS : [PORTS[draw(PORTS.length)] ?? PORTS[0]];
  const service = randomService(slot, ports, isDual, draw);
  const isLarge = slot % 8 === 7;
  const slices = (isDual ? (['IPv4', 'IPv6'] as const) : (['IPv4'] as const)).flatMap((family) =>
    isLarge ? [largeSlice(slot, family, ports, draw)] : randomSlices(slot, family, ports, draw),
  );
  return [service, ...slices].map((object) => JSON.stringify(object)).join('\n---\n');
}

function randomService(
  slot: number,
  ports: readonly (typeof PORTS)[number][],
  isDual: boolean,
  draw: Draw,
): Json {
  const type = ['ClusterIP', 'NodePort', 'LoadBalancer'][draw(3)] ?? 'ClusterIP';
  const addresses = [`10.97.0.${slot + 1}`, ...(isDual ? [`fd00:97::${(slot + 1).toString(16)}`] : [])];
  const isLocal = (): boolean => draw(4) === 0;
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { namespace: 'soak', name: `slot-${slot}` },
    spec: {
      type,
      clusterIP: addresses[0],
      clusterIPs: addresses,
      ipFamilies: isDual ? ['IPv4', 'IPv6'] : ['IPv4'],
      ports: ports.map(({ name, protocol, port }, index) => ({
        name,
        protocol,
        port,
        targetPort: name,
        ...(type !== 'ClusterIP' && { nodePort: 31_000 + 2 * slot + index }),
      })),
      ...(draw(3) === 0 && {
        sessionAffinity: 'ClientIP',
        sessionAffinityConfig: { clientIP: { timeoutSeconds: SECONDS[draw(SECONDS.length)] } },
      }),
      ...(isLocal() && { internalTrafficPolicy: 'Local' }),
      ...(type !== 'ClusterIP' && isLocal() && { externalTrafficPolicy: 'Local' }),
      ...(draw(4) === 0 && { externalIPs: [`198.51.100.${slot + 1}`] }),
      ...(type === 'LoadBalancer' && draw(2) === 0 && { loadBalancerSourceRanges: ['192.0.2.0/24'] }),
    },
    ...(type === 'LoadBalancer' && {
      status: { loadBalancer: { ingress: [{ ip: `203.0.113.${slot + 1}` }] } },
    }),
  };
}

/** One for each target port, so that a pool has up to eight endpoints. */
function randomSlices(
  slot: number,
  family: 'IPv4' | 'IPv6',
  ports: readonly (typeof PORTS)[number][],
  draw: Draw,
): readonly Json[] {
  return Array.from({ length: draw(3) }, (_, index) =>
    slice(
      `slot-${slot}-${family.toLowerCase()}-${index}`,
      slot,
      family,
      ports.map(({ name, protocol, targets }) => ({ name, protocol, port: targets[index] })),
      PODS.filter(() => draw(2) === 0).map(([pod, node]) => {
        const isLeaving = draw(8) === 0;
        return {
          addresses: [ADDRESSES[pod][family][0]],
          nodeName: node,
          conditions: { ready: !isLeaving && draw(6) > 0, serving: true, terminating: isLeaving },
        };
      }),
    ),
  );
}

/** More endpoints than are tried in turn. Nobody is there: this is for the table alone. */
function largeSlice(
  slot: number,
  family: 'IPv4' | 'IPv6',
  ports: readonly (typeof PORTS)[number][],
  draw: Draw,
): Json {
  const endpoints = Array.from({ length: 14 + draw(8) }, (_, index) => ({
    addresses: [family === 'IPv4' ? `10.244.9.${index + 1}` : `fd00:244:9::${(index + 1).toString(16)}`],
    nodeName: 'node9',
    conditions: { ready: true },
  }));
  const named = ports.map(({ name, protocol, targets }) => ({ name, protocol, port: targets[0] }));
  return slice(`slot-${slot}-${family.toLowerCase()}-0`, slot, family, named, endpoints);
}

function slice(
  name: string,
  slot: number,
  addressType: string,
  ports: readonly Json[],
  endpoints: readonly Json[],
): Json {
  const labels = { 'kubernetes.io/service-name': `slot-${slot}` };
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { namespace: 'soak', name, labels },
    addressType,
    ports,
    endpoints,
  };
}
