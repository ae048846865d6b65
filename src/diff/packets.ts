/** Packets by which two proxies are compared: to every frontend, from every class of sources and from the edges of its ranges. */
import { nodeSender, sampleSender, type PacketSource, senderAt } from '../explain/samples.ts';
import type { FamilySubject } from '../explain/subject.ts';
import { type Cidr, hostPort, type Ip, ipOfBytes, isLoopback, LOOPBACK, parseBytes } from '../model/ip.ts';
import type { ServicePortId } from '../model/serviceTracker.ts';
import { answersNodePorts, type Packet } from '../plan/decide.ts';
import type { Frontend, ServicePortPlan, SourceClass } from '../plan/types.ts';

export interface ComparedPacket {
  readonly packet: Packet;
  readonly servicePort: ServicePortId;
  readonly service: string;
}

export interface PacketSet {
  readonly packets: readonly ComparedPacket[];
  /** There are more of them than were taken. */
  readonly isSampled: boolean;
}

const CLASSES: readonly SourceClass[] = ['pod', 'node', 'outside'];
/** Of one service: it may have thousands of ranges and of addresses. */
const MOST_RANGES = 8;
const MOST_FRONTENDS = 16;
const MOST_NODE_ADDRESSES = 3;
const MOST_LOCAL_ENDPOINTS = 2;

/**
 * At most so many packets. `preferred` come first, whole; of the other service ports as many as there is room for, evenly
 * from all of them.
 */
export function packetsOf(
  family: FamilySubject,
  most: number,
  preferred: ReadonlySet<ServicePortId> = new Set(),
): PacketSet {
  const all = [...family.plan.servicePorts.values()];
  const first = all.filter(({ id }) => preferred.has(id));
  const others = all.filter(({ id }) => !preferred.has(id));
  const packets = new Map<string, ComparedPacket>();
  const take = (ports: readonly ServicePortPlan[]): number => {
    let taken = 0;
    for (const port of ports) {
      if (packets.size >= most) break;
      for (const packet of packetsTo(family, port)) {
        packets.set(keyOf(packet), { packet, servicePort: port.id, service: port.service });
      }
      taken += 1;
    }
    return taken;
  };
  const isWhole = take(first) === first.length;
  return {
    isSampled: take(spread(others)) < others.length || !isWhole,
    packets: [...packets.values()].slice(0, most),
  };
}

/** Wherever it is cut off, what came before is from all over the list. */
function spread<T>(items: readonly T[]): readonly T[] {
  const order: T[] = [];
  const seen = new Uint8Array(items.length);
  for (let step = 2 ** Math.ceil(Math.log2(Math.max(1, items.length))); step >= 1; step /= 2)
    for (let index = 0; index < items.length; index += step) {
      const item = items[index];
      if (seen[index] === 1 || item === undefined) continue;
      seen[index] = 1;
      order.push(item);
    }
  return order;
}

function keyOf({ source, destination, protocol, port, inInterface }: Packet): string {
  return `${source} ${destination} ${protocol} ${port} ${inInterface ?? ''}`;
}

function* packetsTo(family: FamilySubject, port: ServicePortPlan): Generator<Packet> {
  const { protocol } = port;
  const { plan } = family;
  for (const frontend of port.frontends.slice(0, MOST_FRONTENDS))
    for (const destination of destinationsOf(family, frontend)) {
      const to = { destination, protocol, port: frontend.port };
      for (const sender of sendersTo(family, port, frontend, to)) yield { ...to, ...sender };
      if (frontend.kind !== 'clusterIP') continue;
      // What becomes of a port that the service does not have depends on the mode.
      const beside = { ...to, port: frontend.port === 65_535 ? 1 : frontend.port + 1 };
      const sender = plan.find(destination, protocol, beside.port)
        ? undefined
        : sampleSender(family, beside, 'outside');
      if (sender) yield { ...beside, ...sender };
    }
}

/** Of a node port: addresses of the node that answer, one that does not, and the loopback address. */
function destinationsOf({ host, plan, family }: FamilySubject, { address }: Frontend): readonly Ip[] {
  if (address !== undefined) return [address];
  const { nodePorts } = plan.view;
  const answering = host.addresses.filter((ip) => answersNodePorts(nodePorts, ip));
  const silent = host.addresses.find((ip) => !answersNodePorts(nodePorts, ip) && !isLoopback(ip));
  return [
    ...answering.slice(0, MOST_NODE_ADDRESSES),
    ...(silent === undefined ? [] : [silent]),
    LOOPBACK[family],
  ];
}

function* sendersTo(
  family: FamilySubject,
  { localEndpoints = [] }: ServicePortPlan,
  { allowedSources }: Frontend,
  to: Omit<Packet, 'source' | 'inInterface'>,
): Generator<PacketSource> {
  // Only the node itself dials a loopback address: the kernel drops anything else as a martian.
  if (isLoopback(to.destination)) {
    yield nodeSender(family, to);
    return;
  }
  for (const wanted of CLASSES) {
    const sender = sampleSender(family, to, wanted);
    if (sender) yield sender;
  }
  for (const { ip } of localEndpoints.slice(0, MOST_LOCAL_ENDPOINTS)) yield senderAt(family, ip);
  for (const range of (allowedSources?.ranges ?? []).slice(0, MOST_RANGES))
    for (const source of edgesOf(range)) yield senderAt(family, source);
}

/** The first and the last address of a range, and those beside them. */
export function edgesOf(range: Cidr): readonly Ip[] {
  const [address = '', prefix = ''] = range.split('/');
  const bytes = parseBytes(address);
  if (!bytes) return [];
  const bits = BigInt(bytes.length * 8);
  const size = 1n << (bits - BigInt(Number(prefix)));
  const first = bytes.reduce((value, byte) => (value << 8n) | BigInt(byte), 0n);
  const last = first + size - 1n;
  const limit = 1n << bits;
  return [first - 1n, first, last, last + 1n].flatMap((value) => {
    // The ends of the address space are no addresses of anybody.
    if (value <= 0n || value >= limit - 1n) return [];
    const ip = ipOfBytes(bytesOf(value, bytes.length));
    return ip === undefined || isLoopback(ip) ? [] : [ip];
  });
}

function bytesOf(value: bigint, length: number): Uint8Array {
  return Uint8Array.from({ length }, (_, index) =>
    Number((value >> BigInt(8 * (length - 1 - index))) & 0xffn),
  );
}

/** `198.51.100.1 → 203.0.113.10:80/TCP` */
export function printAsked({ source, destination, protocol, port, inInterface }: Packet): string {
  const sender = inInterface === undefined ? `${source} (this node)` : source;
  return `${sender} → ${hostPort(destination, port)}/${protocol}`;
}
