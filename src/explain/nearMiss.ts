/** Of a packet that no service answers: what comes near, so that a mistaken address or port is found. */
import { hostPort, type Ip, isLoopback } from '../model/ip.ts';
import type { ObjectKey } from '../model/objects.ts';
import type { ServicePort } from '../model/serviceTracker.ts';
import { isLocal, type Packet } from '../plan/decide.ts';
import type { FrontendKind, ServicePortPlan } from '../plan/types.ts';
import { info, kubectl, listed, serviceField, warning } from './finding.ts';
import type { FamilySubject, Subject } from './subject.ts';
import type { Finding } from './types.ts';
import { KIND_WORDS } from './words.ts';

/** A service is looked at in some microseconds. */
const SERVICES_AT_ONCE = 64;

export async function nearMisses(
  subject: Subject,
  family: FamilySubject,
  packet: Packet,
): Promise<readonly Finding[]> {
  const findings = nodePortMisses(family, packet);
  // Most addresses that somebody asks for are in the plan: the others are looked for in all services.
  const known = new Set<ObjectKey>();
  for (const { service } of family.plan.portsAt(packet.destination)) known.add(service);
  const isKnown = known.size > 0;
  for (const find of isKnown ? [addressMissAt] : [addressMissAt, endpointMissAt]) {
    await search(subject, isKnown ? known : family.services(), (service) => {
      const finding = find(subject, family, service, packet);
      if (finding) findings.push(finding);
      return findings.length < MOST_MISSES;
    });
    if (findings.length > 0) break;
  }
  return findings;
}

async function search(
  subject: Subject,
  services: Iterable<ObjectKey>,
  visit: (service: ObjectKey) => boolean,
): Promise<void> {
  let count = 0;
  for (const service of services) {
    if (!visit(service)) return;
    const turn = ++count % SERVICES_AT_ONCE === 0 ? subject.pause?.() : undefined;
    if (turn) await turn;
  }
}

const MOST_MISSES = 5;

function nodePortMisses({ plan, host }: FamilySubject, packet: Packet): Finding[] {
  const { destination, protocol, port } = packet;
  const found = plan.find(undefined, protocol, port);
  if (!found) return [];
  const what = nodePortWords(packet, found.servicePort);
  if (!isLocal(destination, host)) {
    const own = host.addresses.filter((ip) => !isLoopback(ip));
    return [
      info('not-node-address', `${what}, but ${destination} is not an address of this node`, {
        evidence: `its addresses: ${listed(own)}`,
      }),
    ];
  }
  return [
    isLoopback(destination)
      ? loopbackOff(what, destination)
      : leftOutAddress(what, destination, plan.view.nodePorts.ranges),
  ];
}

function nodePortWords({ port, protocol }: Packet, { service }: ServicePortPlan): string {
  return `${port}/${protocol} is a node port of ${service}`;
}

/** Of a mode that leaves loopback addresses alone. */
export function loopbackMisses(
  { mode }: Subject,
  packet: Packet,
  servicePort: ServicePortPlan,
): readonly Finding[] {
  const { destination } = packet;
  if (!isLoopback(destination)) return [];
  const what = nodePortWords(packet, servicePort);
  return [
    warning(
      'no-loopback-node-ports',
      `${what}, but node ports do not answer on ${destination} in ${mode} mode`,
      { cure: 'Dial the address of the node instead.' },
    ),
  ];
}

function loopbackOff(what: string, destination: Ip): Finding {
  return warning('no-loopback-node-ports', `${what}, but node ports do not answer on ${destination}`, {
    evidence: '--iptables-localhost-nodeports is off, or --nodeport-addresses leaves it out, or it is IPv6',
    cure: 'Dial the address of the node instead.',
  });
}

function leftOutAddress(what: string, destination: Ip, ranges: 'all' | readonly string[]): Finding {
  const given = ranges === 'all' ? '' : ` ${listed(ranges)}`;
  return warning('node-port-address', `${what}, but --nodeport-addresses${given} leaves out ${destination}`, {
    consequence: 'Node ports do not answer at this address of the node.',
    cure: `Add ${destination} to --nodeport-addresses, or dial an address that is in it.`,
  });
}

function addressMissAt(
  subject: Subject,
  family: FamilySubject,
  service: ObjectKey,
  packet: Packet,
): Finding | undefined {
  const ports = family.portsOf(service);
  const [first] = ports;
  if (!first) return undefined;
  const { destination } = packet;
  const kind = kindOf(first, destination);
  if (kind !== undefined) return addressMiss(subject, family, kind, ports, packet);
  const checked = ports.find(({ healthCheckNodePort }) => healthCheckNodePort === packet.port);
  if (checked && packet.protocol === 'TCP' && isLocal(destination, family.host))
    return info('health-check-port', `${packet.port}/TCP is the health-check node port of ${service}`, {
      consequence: 'The proxy itself answers there: how many ready endpoints this node has.',
    });
  return undefined;
}

function kindOf(port: ServicePort, address: Ip): Exclude<FrontendKind, 'nodePort'> | undefined {
  if (port.clusterIP === address) return 'clusterIP';
  if (port.loadBalancerIPs.includes(address)) return 'loadBalancerIP';
  return port.externalIPs.includes(address) ? 'externalIP' : undefined;
}

function addressMiss(
  subject: Subject,
  { plan }: FamilySubject,
  kind: Exclude<FrontendKind, 'nodePort'>,
  ports: readonly ServicePort[],
  { destination, protocol, port }: Packet,
): Finding {
  const service = ports[0]?.service ?? '';
  const what = `${destination} is the ${KIND_WORDS[kind]} of ${service}`;
  const asked = ports.find((each) => each.port === port && each.protocol === protocol);
  if (!asked) {
    const same = ports.find((each) => each.port === port);
    const has = `it has ${listed(ports.map((each) => printPort(each)))}`;
    const hint = same ? `; ask for ${hostPort(destination, port)}/${same.protocol.toLowerCase()}` : '';
    return warning(
      'no-such-service-port',
      `${what}, which has no port ${port}/${protocol} there: ${has}${hint}`,
      {
        reference: serviceField(subject, service, 'spec.ports'),
        cure: `Dial a port that it has, or add it: ${kubectl(service, (name) => `edit service ${name}`)}`,
      },
    );
  }
  if (plan.servicePorts.get(asked.id)?.refusedIPs?.includes(destination))
    return warning(
      'address-reserved',
      `${what}, but it is an address of the API server, which no Service may take`,
      {
        consequence: 'It is not served: on this node it would cut off the API server.',
        cure: `Remove it from the Service: ${kubectl(service, (name) => `edit service ${name}`)}`,
      },
    );
  if (kind === 'externalIP' && !plan.view.allowExternalIPs)
    return warning(
      'external-ips-off',
      `${what}, but external IPs are not served (--feature-gates AllowServiceExternalIPs=false)`,
      {
        reference: serviceField(subject, service, 'spec.externalIPs'),
      },
    );
  return warning('not-planned', `${what}, but it is not served there`, {
    evidence: listed(
      plan
        .cutsOf(service)
        .map(({ field, served, count }) => `the first ${served} of ${count} ${field} count`),
    ),
  });
}

function printPort({ portName, port, protocol }: ServicePort): string {
  return portName === '' ? `${port}/${protocol}` : `${port}/${protocol} (${portName})`;
}

function endpointMissAt(
  _: Subject,
  family: FamilySubject,
  service: ObjectKey,
  { destination }: Packet,
): Finding | undefined {
  for (const { endpoints } of family.slicesOf(service))
    for (const { ip, pod } of endpoints)
      if (ip === destination)
        return info(
          'endpoint-address',
          `${destination} is an endpoint of ${service}${pod === undefined ? '' : ` (pod ${pod})`}`,
          {
            consequence: 'A packet to it goes there directly, and no service decides about it.',
          },
        );
  return undefined;
}
