/** From a question to packets: what is asked for by name is looked up. */
import { familyOf, type Ip } from '../model/ip.ts';
import type { ObjectKey } from '../model/objects.ts';
import type { ServicePort } from '../model/serviceTracker.ts';
import type { Packet } from '../plan/decide.ts';
import { quote } from '../text/printable.ts';
import { didYouMean, nearest } from '../text/suggest.ts';
import {
  because,
  type DestinationQuestion,
  parseDestination,
  parseSource,
  QuestionError,
  type ServiceQuestion,
  type SourceQuestion,
} from './question.ts';
import {
  type DialledAddress,
  nodeSender,
  type PacketSource,
  podInterface,
  routedSender,
  sampleSender,
  senderAt,
} from './samples.ts';
import type { FamilySubject, Subject } from './subject.ts';

export interface ResolvedPacket {
  readonly family: FamilySubject;
  readonly packet: Packet;
  /** Name of the pod that sends it. */
  readonly sourceName?: string;
}

export async function resolvePackets(
  subject: Subject,
  question: { readonly from: string; readonly to: string },
): Promise<readonly ResolvedPacket[]> {
  const from = await because('from', () => parseSource(question.from));
  const destinations = await because('to', () => destinationsOf(subject, parseDestination(question.to)));
  const senders = await because('from', () => (from.kind === 'pod' ? podIps(subject, from.pod) : undefined));
  const asked: ResolvedPacket[] = [];
  for (const { family, ...to } of destinations)
    for (const sender of await sendersOf(subject, family, to, from, senders))
      asked.push({
        family,
        packet: { ...to, ...sender },
        ...(from.kind === 'pod' && { sourceName: from.pod }),
      });
  if (asked.length === 0)
    await because('from', () => Promise.reject(noCommonFamily(from, destinations, senders ?? [])));
  return asked;
}

function noCommonFamily(
  from: SourceQuestion,
  destinations: readonly FamilyDestination[],
  senders: readonly Ip[],
): QuestionError {
  const [to] = destinations;
  const family = to ? familyOf(to.destination) : 'IPv4';
  const source =
    from.kind === 'address'
      ? from.ip
      : from.kind === 'pod'
        ? `pod ${from.pod} (${senders.join(', ')})`
        : from.kind;
  return new QuestionError(
    `${source} has no ${family} address, and ${to?.destination ?? 'the destination'} is ${family}`,
    "A packet has one family: ask for an address of the source's family, or for another source.",
  );
}

interface FamilyDestination extends DialledAddress {
  readonly family: FamilySubject;
}

async function destinationsOf(
  subject: Subject,
  to: DestinationQuestion,
): Promise<readonly FamilyDestination[]> {
  if (to.kind === 'address') {
    const family = subject.families.find((other) => other.family === familyOf(to.ip));
    if (!family) throw familyNotServed(subject, to.ip);
    return [{ family, destination: to.ip, port: to.port, protocol: to.protocol }];
  }
  const found = await servicePortsOf(subject, to);
  return found.map(({ family, port }) => ({
    family,
    destination: port.clusterIP,
    port: port.port,
    protocol: port.protocol,
  }));
}

function familyNotServed({ families }: Subject, ip: Ip): QuestionError {
  const served = families.map(({ family }) => family).join(' and ') || 'no family';
  return new QuestionError(
    `${ip} is ${familyOf(ip)}, and this proxy serves ${served}`,
    'Packets of the other family go where they would go without a proxy; `junction check` says why it is not served.',
  );
}

interface FoundPort {
  readonly family: FamilySubject;
  readonly port: ServicePort;
}

/** The ports that a question is about, in each family that serves them. */
export async function servicePortsOf(
  subject: Subject,
  question: ServiceQuestion,
): Promise<readonly FoundPort[]> {
  const { service, port: wanted, protocol } = question;
  const all = subject.families.flatMap((family) =>
    family.portsOf(service).map((port): FoundPort => ({ family, port })),
  );
  if (all.length === 0) throw await unknownService(subject, service);
  const found = all.filter(
    ({ port }) =>
      (protocol === undefined || port.protocol === protocol) &&
      (wanted === undefined || port.portName === wanted || String(port.port) === wanted),
  );
  if (found.length > 0) return found;
  const names = [...new Set(all.map(({ port }) => printPort(port)))];
  throw new QuestionError(
    `Service ${service} has no port ${quote(printWanted(question))}${didYouMean(
      wanted ?? '',
      names.flatMap((name) => name.split(' ')),
    )}`,
    `It has: ${names.slice(0, MOST_NAMES).join(', ')}${names.length > MOST_NAMES ? ', …' : ''}.`,
  );
}

const MOST_NAMES = 10;

function printWanted({ port, protocol }: ServiceQuestion): string {
  return [port, protocol].filter((part) => part !== undefined).join('/');
}

function printPort({ portName, port, protocol }: ServicePort): string {
  return portName === '' ? `${port}/${protocol}` : `${portName} ${port}/${protocol}`;
}

async function unknownService(subject: Subject, service: ObjectKey): Promise<QuestionError> {
  const unserved = await subject.unserved?.(service);
  if (unserved)
    return new QuestionError(
      `Service ${service} is not served by this proxy: ${unserved.reason}`,
      `Ask \`junction explain ${service}\` for the consequence, or ask for an address: --to ADDRESS:PORT.`,
    );
  const meant = await nearestService(subject, service);
  return new QuestionError(
    `there is no Service ${quote(service)}${meant === undefined ? '' : ` (did you mean ${meant}?)`}`,
    'junction services lists those that this proxy serves.',
  );
}

/** A comparison with one name takes some microseconds, and there may be tens of thousands. */
const NAMES_AT_ONCE = 100;

async function nearestService(subject: Subject, service: ObjectKey): Promise<string | undefined> {
  const namespace = service.slice(0, service.indexOf('/') + 1);
  const isNear = (key: ObjectKey): boolean => key.startsWith(namespace);
  return (await nearestOf(subject, service, isNear)) ?? nearestOf(subject, service, () => true);
}

async function nearestOf(
  subject: Subject,
  service: ObjectKey,
  isMeant: (key: ObjectKey) => boolean,
): Promise<string | undefined> {
  const winners: string[] = [];
  let some: string[] = [];
  const take = async (): Promise<void> => {
    const winner = nearest(service, some);
    if (winner !== undefined) winners.push(winner);
    some = [];
    await subject.pause?.();
  };
  for (const family of subject.families)
    for (const key of family.services()) {
      if (isMeant(key)) some.push(key);
      if (some.length === NAMES_AT_ONCE) await take();
    }
  await take();
  return nearest(service, winners);
}

async function sendersOf(
  subject: Subject,
  family: FamilySubject,
  to: DialledAddress,
  from: SourceQuestion,
  pods: readonly Ip[] | undefined,
): Promise<readonly PacketSource[]> {
  const routed = async (ip: Ip, isPod: boolean): Promise<PacketSource> => {
    const sender = senderAt(family, ip);
    if (sender.inInterface === undefined) return sender;
    const inInterface =
      (await subject.interfaceFrom?.(ip)) ??
      (isPod ? podInterface(family.plan.view.localDetector) : undefined) ??
      sender.inInterface;
    return { ...sender, inInterface };
  };
  switch (from.kind) {
    case 'address':
      if (familyOf(from.ip) !== family.family) return [];
      if (from.inInterface !== undefined) return [{ source: from.ip, inInterface: from.inInterface }];
      return [await routed(from.ip, false)];
    case 'pod': {
      const own = (pods ?? []).filter((ip) => familyOf(ip) === family.family);
      return Promise.all(own.map((ip) => routed(ip, true)));
    }
    case 'node':
      return [nodeSender(family, to)];
    case 'outside': {
      const sender = sampleSender(family, to, 'outside');
      return sender ? [await routedSender(subject, family, to, sender)] : [];
    }
  }
}

async function podIps(subject: Subject, pod: ObjectKey): Promise<readonly Ip[]> {
  const known = await subject.podIps?.(pod);
  if (known && known.length > 0) return known;
  const [namespace = '', name = ''] = pod.split('/');
  const ips = new Set<Ip>();
  const names = new Set<string>();
  for (const family of subject.families) {
    for (const key of family.services()) {
      if (!key.startsWith(`${namespace}/`)) continue;
      for (const { endpoints } of family.slicesOf(key))
        for (const endpoint of endpoints) {
          if (endpoint.pod === name) ips.add(endpoint.ip);
          else if (endpoint.pod !== undefined && names.size < MOST_PODS) names.add(endpoint.pod);
        }
      const pause = subject.pause?.();
      if (pause) await pause;
    }
  }
  if (ips.size > 0) return [...ips];
  throw new QuestionError(
    `no EndpointSlice in the namespace ${quote(namespace)} names a pod ${quote(name)}${didYouMean(name, names)}`,
    'This proxy knows pods that are endpoints of a Service; give the address of another: --from ADDRESS (kubectl get pod -o wide prints it).',
  );
}

const MOST_PODS = 2000;
