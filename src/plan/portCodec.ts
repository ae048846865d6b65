/**
 * A planned service port as bytes, for the record of what was written: about eight bytes an endpoint, each string once.
 * Equal service ports have equal bytes, so that two are compared without being decoded. What cannot be decoded is
 * `undefined`: bytes may come from anywhere.
 */
import { type Cidr, type Ip, parseCidr } from '../model/ip.ts';
import type { Endpoint } from '../model/endpointTracker.ts';
import { conditionOf, PackedEndpoint } from '../model/packedEndpoint.ts';
import { PROTOCOLS } from '../model/objects.ts';
import type { ServicePortId } from '../model/serviceTracker.ts';
import { type ByteReader, type ByteWriter, readAll, readSome, Unreadable } from './packedBytes.ts';
import type {
  AllowedSources,
  EndpointAddress,
  Frontend,
  FrontendKind,
  Pool,
  Route,
  Routes,
  ServicePortPlan,
} from './types.ts';

const KINDS: readonly FrontendKind[] = ['clusterIP', 'externalIP', 'loadBalancerIP', 'nodePort'];
const ROUTES: readonly Route[] = [
  { verdict: 'forward', pool: 'cluster', masquerade: false },
  { verdict: 'forward', pool: 'cluster', masquerade: true },
  { verdict: 'forward', pool: 'local', masquerade: false },
  { verdict: 'forward', pool: 'local', masquerade: true },
  { verdict: 'reject' },
  { verdict: 'drop' },
];

/** Parts that a service port may have. */
const HAS = {
  cluster: 1,
  local: 2,
  draining: 4,
  refusedIPs: 8,
  localEndpoints: 16,
  affinity: 32,
  client: 64,
};
/** Of an endpoint. */
const IS = { local: 1, ready: 2, serving: 4, terminating: 8, hinted: 16 };
/** Of a frontend, beside its kind. */
const FRONTEND = { hasAddress: 4, isRestricted: 8 };

/** Into a writer that has begun. The id comes first. */
export function encodeServicePort(writer: ByteWriter, port: ServicePortPlan): void {
  const { cluster, local } = port.pools;
  const { draining, refusedIPs, localEndpoints, affinitySeconds } = port;
  writer.text(port.id);
  writer.text(port.service);
  writer.text(port.name);
  writer.byte(PROTOCOLS.indexOf(port.protocol));
  writer.byte(
    (cluster ? HAS.cluster : 0) |
      (local ? HAS.local : 0) |
      (draining ? HAS.draining : 0) |
      (refusedIPs ? HAS.refusedIPs : 0) |
      (localEndpoints ? HAS.localEndpoints : 0) |
      (affinitySeconds === undefined ? 0 : HAS.affinity) |
      (port.preservesClientIP ? HAS.client : 0),
  );
  writer.byte(routesNumber(port.internal));
  writer.byte(routesNumber(port.external));
  writer.number(port.healthCheckNodePort);
  writer.number(port.endpointCount);
  if (affinitySeconds !== undefined) writer.number(affinitySeconds);
  writer.number(port.frontends.length);
  for (const frontend of port.frontends) encodeFrontend(writer, frontend);
  for (const pool of [cluster, local, draining]) if (pool) encodePool(writer, pool);
  if (refusedIPs) encodeAddresses(writer, refusedIPs);
  if (!localEndpoints) return;
  writer.number(localEndpoints.length);
  for (const { ip, port: number } of localEndpoints) {
    writer.address(ip);
    writer.number(number);
  }
}

export function decodeServicePort(bytes: Uint8Array): ServicePortPlan | undefined {
  return readAll(bytes, (reader) => {
    const id = reader.text();
    const service = reader.text();
    const name = reader.text();
    const protocol = reader.choice(PROTOCOLS, reader.byte());
    const has = reader.byte();
    const internal = routesOf(reader);
    const external = routesOf(reader);
    const healthCheckNodePort = reader.number();
    const endpointCount = reader.number();
    const affinitySeconds = has & HAS.affinity ? reader.number() : undefined;
    const frontends = reader.list(() => decodeFrontend(reader));
    const pool = (bit: number): Pool | undefined =>
      has & bit ? reader.list(() => decodeEndpoint(reader)) : undefined;
    const [cluster, local, draining] = [pool(HAS.cluster), pool(HAS.local), pool(HAS.draining)];
    const refusedIPs = has & HAS.refusedIPs ? reader.list(() => reader.address()) : undefined;
    const localEndpoints =
      has & HAS.localEndpoints
        ? reader.list((): EndpointAddress => ({ ip: reader.address(), port: reader.number() }))
        : undefined;
    return {
      id,
      service,
      name,
      protocol,
      frontends,
      internal,
      external,
      pools: { ...(cluster && { cluster }), ...(local && { local }) },
      ...(draining && { draining }),
      ...(refusedIPs && { refusedIPs }),
      ...(localEndpoints && { localEndpoints }),
      preservesClientIP: (has & HAS.client) > 0,
      affinitySeconds,
      healthCheckNodePort,
      endpointCount,
    };
  });
}

/** Of an encoded service port, without the rest. */
export function decodeServicePortId(bytes: Uint8Array): ServicePortId | undefined {
  return readSome(bytes, (reader) => reader.text());
}

function routeNumber(route: Route): number {
  if (route.verdict === 'reject') return 4;
  if (route.verdict === 'drop') return 5;
  return (route.pool === 'local' ? 2 : 0) + (route.masquerade ? 1 : 0);
}

function routesNumber({ pod, node, outside }: Routes): number {
  return (routeNumber(pod) * ROUTES.length + routeNumber(node)) * ROUTES.length + routeNumber(outside);
}

function routesOf(reader: ByteReader): Routes {
  const number = reader.byte();
  const { length } = ROUTES;
  return {
    pod: reader.choice(ROUTES, Math.floor(number / (length * length))),
    node: reader.choice(ROUTES, Math.floor(number / length) % length),
    outside: reader.choice(ROUTES, number % length),
  };
}

function encodeFrontend(writer: ByteWriter, frontend: Frontend): void {
  const { kind, address, port, routes, allowedSources } = frontend;
  writer.byte(
    KINDS.indexOf(kind) |
      (address === undefined ? 0 : FRONTEND.hasAddress) |
      (allowedSources ? FRONTEND.isRestricted : 0),
  );
  if (address !== undefined) writer.address(address);
  writer.number(port);
  writer.byte(routesNumber(routes));
  if (!allowedSources) return;
  writer.number(allowedSources.ranges.length);
  for (const range of allowedSources.ranges) writer.text(range);
  encodeAddresses(writer, allowedSources.hosts);
}

function decodeFrontend(reader: ByteReader): Frontend {
  const first = reader.byte();
  const kind = reader.choice(KINDS, first & 3);
  const address = first & FRONTEND.hasAddress ? reader.address() : undefined;
  const port = reader.number();
  const routes = routesOf(reader);
  const allowedSources = first & FRONTEND.isRestricted ? decodeSources(reader) : undefined;
  return { kind, address, port, routes, allowedSources };
}

function decodeSources(reader: ByteReader): AllowedSources {
  const ranges = reader.list((): Cidr => {
    const range = parseCidr(reader.text());
    if (range === undefined) throw new Unreadable();
    return range;
  });
  return { ranges, hosts: reader.list(() => reader.address()) };
}

function encodeAddresses(writer: ByteWriter, addresses: readonly Ip[]): void {
  writer.number(addresses.length);
  for (const address of addresses) writer.address(address);
}

function encodePool(writer: ByteWriter, pool: Pool): void {
  writer.number(pool.length);
  for (const endpoint of pool) {
    const { zoneHints, nodeHints } = endpoint;
    const isHinted = zoneHints.length + nodeHints.length > 0;
    writer.byte(
      (endpoint.isLocal ? IS.local : 0) |
        (endpoint.ready ? IS.ready : 0) |
        (endpoint.serving ? IS.serving : 0) |
        (endpoint.terminating ? IS.terminating : 0) |
        (isHinted ? IS.hinted : 0),
    );
    writer.address(endpoint.ip);
    writer.number(endpoint.port);
    if (!isHinted) continue;
    for (const hints of [zoneHints, nodeHints]) {
      writer.number(hints.length);
      for (const hint of hints) writer.text(hint);
    }
  }
}

const NO_HINTS: readonly string[] = [];

function decodeEndpoint(reader: ByteReader): Endpoint {
  const is = reader.byte();
  const ip = reader.address();
  const port = reader.number();
  const isHinted = (is & IS.hinted) > 0;
  const zoneHints = isHinted ? reader.list(() => reader.text()) : NO_HINTS;
  const nodeHints = isHinted ? reader.list(() => reader.text()) : NO_HINTS;
  const condition = {
    ready: (is & IS.ready) > 0,
    serving: (is & IS.serving) > 0,
    terminating: (is & IS.terminating) > 0,
    zoneHints,
    nodeHints,
  };
  return new PackedEndpoint(ip, port, conditionOf(condition, (is & IS.local) > 0));
}
