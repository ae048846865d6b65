/** `explain NS/NAME`: all frontends of a service, for every kind of source, and what is wrong with it. */
import { familyOf, type Ip, isLoopback } from '../model/ip.ts';
import type { ObjectKey } from '../model/objects.ts';
import type { ServicePort } from '../model/serviceTracker.ts';
import { answersNodePorts, type Packet } from '../plan/decide.ts';
import type { Frontend, SourceClass } from '../plan/types.ts';
import { PortEndpoints } from './endpoints.ts';
import { kernelFindings } from './kernelFindings.ts';
import { explainPacket } from './packet.ts';
import { servicePortsOf } from './resolve.ts';
import { portCondition, portEndpointRows } from './rows.ts';
import {
  type DialledAddress,
  ipWithin,
  type PacketSource,
  routedSender,
  sampleSender,
  senderAt,
} from './samples.ts';
import { portFindings, serviceFindings, unservedFinding } from './serviceFindings.ts';
import type { FamilySubject, Subject } from './subject.ts';
import type {
  KernelOutcome,
  PacketExplanation,
  ServiceExplanation,
  ServicePortExplanation,
} from './types.ts';

interface AskedService {
  readonly service: ObjectKey;
  /** Number or name; unset: all ports. */
  readonly port?: string;
}

export async function explainService(subject: Subject, question: AskedService): Promise<ServiceExplanation> {
  const { service } = question;
  const head = { node: subject.nodeName, mode: subject.mode, service };
  const changes = subject.changesOf?.(service) ?? [];
  const isServed = subject.families.some((family) => family.portsOf(service).length > 0);
  const unserved = isServed ? undefined : await subject.unserved?.(service);
  if (unserved) return { ...head, findings: [unservedFinding(service, unserved)], ports: [], changes };
  const found = await servicePortsOf(subject, question);
  const ports: ServicePortExplanation[] = [];
  const findings = [...serviceFindings(subject, service)];
  for (const { family, port } of found) {
    const endpoints = new PortEndpoints(subject, family, port);
    const { packets, moreFrontends } = await explainFrontends(subject, family, port, endpoints);
    findings.push(...portFindings(subject, family, port, endpoints));
    findings.push(...packets.flatMap((packet) => kernelFindings(family.family, packet.kernel)));
    ports.push({
      servicePort: port.id,
      family: family.family,
      state: portCondition(family, port).state,
      packets: packets.map(withFewOutcomes),
      ...(moreFrontends > 0 && { moreFrontends }),
      endpoints: portEndpointRows(subject, { family, port }, endpoints),
    });
  }
  const type = found[0]?.port.type;
  return { ...head, ...(type && { type }), findings: unique(findings), ports, changes };
}

/** Two families or ports may say the same. */
function unique<T extends { readonly code: string; readonly text: string }>(
  findings: readonly T[],
): readonly T[] {
  return [...new Map(findings.map((each) => [`${each.code} ${each.text}`, each])).values()];
}

/** A service may have thousands of addresses, all of one behaviour. */
const MOST_FRONTENDS = 12;
/** Of each packet; the rows have all. */
const MOST_LISTED = 20;
const CLASSES: readonly SourceClass[] = ['pod', 'node', 'outside'];

async function explainFrontends(
  subject: Subject,
  family: FamilySubject,
  port: ServicePort,
  endpoints: PortEndpoints,
): Promise<{ readonly packets: readonly PacketExplanation[]; readonly moreFrontends: number }> {
  const frontends = family.plan.servicePorts.get(port.id)?.frontends ?? [];
  const packets: PacketExplanation[] = [];
  for (const frontend of frontends.slice(0, MOST_FRONTENDS)) {
    for (const sample of samplesOf(family, port, frontend)) {
      const packet = { ...sample, ...(await routedSender(subject, family, sample, sample)) };
      packets.push(await explainPacket(subject, { family, packet }, { endpoints, most: MOST_LISTED }));
      const pause = subject.pause?.();
      if (pause) await pause;
    }
  }
  return { packets, moreFrontends: Math.max(0, frontends.length - MOST_FRONTENDS) };
}

/** Of each packet's ways through the kernel: that of every endpoint has the same rules, and one element of its own. */
const MOST_OUTCOMES = 8;

function withFewOutcomes(packet: PacketExplanation): PacketExplanation {
  const { kernel } = packet;
  if (!kernel || kernel.outcomes.length <= MOST_OUTCOMES) return packet;
  const isStopped = ({ verdict }: KernelOutcome): boolean => verdict !== 'forwarded';
  const sorted = [
    ...kernel.outcomes.filter(isStopped),
    ...kernel.outcomes.filter((outcome) => !isStopped(outcome)),
  ];
  const moreOutcomes = sorted.length - MOST_OUTCOMES;
  return { ...packet, kernel: { ...kernel, outcomes: sorted.slice(0, MOST_OUTCOMES), moreOutcomes } };
}

/** One of each source class; where source ranges count, one from within them too. */
function samplesOf(
  family: FamilySubject,
  { protocol }: Pick<ServicePort, 'protocol'>,
  frontend: Frontend,
): readonly Packet[] {
  const destination = frontend.address ?? nodePortIp(family);
  if (destination === undefined) return [];
  const to: DialledAddress = { destination, protocol, port: frontend.port };
  const senders: PacketSource[] = CLASSES.flatMap((each) => sampleSender(family, to, each) ?? []);
  const [range] = frontend.allowedSources?.ranges ?? [];
  const allowed = range === undefined ? undefined : ipWithin(range, family);
  if (allowed !== undefined && !senders.some(({ source }) => source === allowed))
    senders.push(senderAt(family, allowed));
  return senders.map((sender) => ({ ...to, ...sender }));
}

/** An address of the node at which node ports answer. */
function nodePortIp({ family, plan, host }: FamilySubject): Ip | undefined {
  const { nodeIp, nodePorts } = plan.view;
  const own = host.addresses.filter((ip) => familyOf(ip) === family && !isLoopback(ip));
  const candidates = nodeIp === undefined ? own : [...own.filter((ip) => ip === nodeIp), ...own];
  return candidates.find((ip) => answersNodePorts(nodePorts, ip));
}
