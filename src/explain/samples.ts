/** Packets that stand for many: from the node, from a pod, from outside. */
import {
  cidrContains,
  type Cidr,
  type Family,
  type Ip,
  ipOfBytes,
  isLoopback,
  LOOPBACK,
  parseBytes,
  parseIp,
} from '../model/ip.ts';
import { classifySource, isLocal, type Packet } from '../plan/decide.ts';
import type { LocalTrafficDetector, SourceClass } from '../plan/types.ts';
import type { FamilySubject, Subject } from './subject.ts';

/** Of ranges for documentation (RFC 5737, RFC 3849) and benchmarks (RFC 2544): nobody's. */
const OUTSIDE: Readonly<Record<Family, readonly string[]>> = {
  IPv4: ['198.51.100.1', '192.0.2.1', '203.0.113.1', '198.18.0.1'],
  IPv6: ['2001:db8::1', '2001:db8:1::1', '2001:db8:2::1', '3fff::1'],
};

/** Where an interface has to be named and none is known. */
const ANY_INTERFACE: readonly string[] = ['eth0', 'ens1', 'bond0'];

export type DialledAddress = Pick<Packet, 'destination' | 'protocol' | 'port'>;

export type PacketSource = Pick<Packet, 'source' | 'inInterface'>;

/** The kernel sends to an address of its own from that address, and elsewhere from the node's. */
export function nodeSender(
  { plan, host, family }: FamilySubject,
  { destination }: DialledAddress,
): PacketSource {
  const source = isLocal(destination, host) ? destination : (plan.view.nodeIp ?? LOOPBACK[family]);
  return { source, inInterface: undefined };
}

/** What has an address of the node is sent by the node. */
export function senderAt({ plan, host }: FamilySubject, source: Ip): PacketSource {
  if (isLocal(source, host)) return { source, inInterface: undefined };
  return { source, inInterface: notPodInterface(plan.view.localDetector) };
}

function notPodInterface(detector: LocalTrafficDetector): string {
  const isPods = (name: string): boolean =>
    (detector.kind === 'interface' && detector.name === name) ||
    (detector.kind === 'interfacePrefix' && name.startsWith(detector.prefix));
  return ANY_INTERFACE.find((name) => !isPods(name)) ?? 'uplink';
}

/** The same with the interface that the node's routes say, where they are known and it counts as the same class. */
export async function routedSender(
  subject: Subject,
  { plan, host }: FamilySubject,
  to: DialledAddress,
  sender: PacketSource,
): Promise<PacketSource> {
  if (sender.inInterface === undefined) return sender;
  const inInterface = await subject.interfaceFrom?.(sender.source);
  if (inInterface === undefined) return sender;
  const routed = { ...sender, inInterface };
  const classOf = (from: PacketSource): SourceClass =>
    classifySource(plan.view.localDetector, { ...to, ...from }, host);
  return classOf(routed) === classOf(sender) ? routed : sender;
}

export function podInterface(detector: LocalTrafficDetector): string | undefined {
  if (detector.kind === 'interface') return detector.name;
  return detector.kind === 'interfacePrefix' ? `${detector.prefix}0` : undefined;
}

/** A sender of a class, where there can be one. */
export function sampleSender(
  family: FamilySubject,
  to: DialledAddress,
  wanted: SourceClass,
): PacketSource | undefined {
  const sender = candidate(family, to, wanted);
  if (!sender) return undefined;
  const found = classifySource(family.plan.view.localDetector, { ...to, ...sender }, family.host);
  return found === wanted ? sender : undefined;
}

function candidate(family: FamilySubject, to: DialledAddress, wanted: SourceClass): PacketSource | undefined {
  if (wanted === 'node') return nodeSender(family, to);
  const { localDetector } = family.plan.view;
  if (wanted === 'outside') {
    const source = outsideIp(family);
    return source && { source, inInterface: notPodInterface(localDetector) };
  }
  const inInterface = podInterface(localDetector);
  if (localDetector.kind === 'cidr') {
    const source = ipWithin(localDetector.cidr, family);
    return source && { source, inInterface: notPodInterface(localDetector) };
  }
  const source = outsideIp(family);
  return source && inInterface !== undefined ? { source, inInterface } : undefined;
}

function outsideIp({ family, plan, host }: FamilySubject): Ip | undefined {
  const { localDetector } = plan.view;
  for (const text of OUTSIDE[family]) {
    const ip = parseIp(text);
    const isPods = ip !== undefined && localDetector.kind === 'cidr' && cidrContains(localDetector.cidr, ip);
    if (ip !== undefined && !isPods && !isLocal(ip, host)) return ip;
  }
  return undefined;
}

/** An address of a range that is none of the node's: the last but one, then others before it. */
export function ipWithin(cidr: Cidr, { host }: Pick<FamilySubject, 'host'>): Ip | undefined {
  const [address = '', prefix = '0'] = cidr.split('/');
  const bytes = parseBytes(address);
  if (!bytes) return undefined;
  const hostBits = bytes.length * 8 - Number(prefix);
  if (hostBits === 0) return parseIp(address);
  const room = Math.min(250, 2 ** Math.min(hostBits, 8) - 2);
  for (let offset = Math.max(1, room); offset >= 0; offset--) {
    const copy = Uint8Array.from(bytes);
    const last = copy.length - 1;
    copy[last] = (copy[last] ?? 0) + offset;
    const ip = ipOfBytes(copy);
    if (ip !== undefined && !isLocal(ip, host) && !isLoopback(ip)) return ip;
  }
  return undefined;
}
