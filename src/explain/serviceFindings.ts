/** What is wrong with a service, or noteworthy: of all its frontends, whoever dials them. */
import { familyOf, type Ip, parseIp } from '../model/ip.ts';
import type { ObjectKey } from '../model/objects.ts';
import type { ServicePort } from '../model/serviceTracker.ts';
import { printCut } from '../plan/capacity.ts';
import { printFrontendKey } from '../plan/claims.ts';
import { isAllowed } from '../plan/decide.ts';
import type { ServicePortPlan } from '../plan/types.ts';
import { refusedByKernel } from './decision.ts';
import { noEndpoints, poolFindings } from './endpointFindings.ts';
import type { PortEndpoints } from './endpoints.ts';
import {
  countOf,
  errorFinding,
  info,
  kubectl,
  listed,
  patchService,
  serviceField,
  warning,
} from './finding.ts';
import type { FamilySubject, PortRange, Subject, UnservedService } from './subject.ts';
import type { Finding } from './types.ts';

/** Of a Service that no proxy serves, or another one. */
export function unservedFinding(service: ObjectKey, unserved: UnservedService): Finding {
  const { code, reason, where } = unserved;
  const details = {
    consequence: CONSEQUENCES[code],
    cure: cureOf(service, code),
    ...(where !== undefined && { reference: { object: `Service ${service}`, field: FIELDS[code], where } }),
  };
  const isMeant = code === 'headless' || code === 'external-name';
  const text = `Service ${service} is not served by this proxy: ${reason}`;
  return isMeant ? warning(code, text, details) : errorFinding(code, text, details);
}

const CONSEQUENCES: Readonly<Record<UnservedService['code'], string>> = {
  headless: 'It has no address of its own: DNS gives its clients the addresses of the pods.',
  'external-name': 'It has no address of its own: DNS gives its clients another name.',
  'other-proxy': 'No rules are written for it; the proxy that the label names has to serve it.',
  'no-cluster-ip': 'It has no address yet, so nothing can be served.',
  'other-family': 'It is reachable at addresses of the other family only.',
  invalid: 'Nothing is served of it until it is corrected.',
};

const FIELDS: Readonly<Record<UnservedService['code'], string>> = {
  headless: 'spec.clusterIP',
  'external-name': 'spec.type',
  'other-proxy': 'metadata.labels',
  'no-cluster-ip': 'spec.clusterIP',
  'other-family': 'spec.ipFamilies',
  invalid: 'spec',
};

function cureOf(service: ObjectKey, code: UnservedService['code']): string {
  switch (code) {
    case 'headless':
      return `If clients should have one address: delete it and create it without clusterIP: None (the field cannot be changed). ${kubectl(service, (name) => `get service ${name} -o yaml`)}`;
    case 'other-proxy':
      return kubectl(service, (name) => `label service ${name} service.kubernetes.io/service-proxy-name-`);
    case 'other-family':
      return patchService(service, { ipFamilyPolicy: 'PreferDualStack' });
    default:
      return kubectl(service, (name) => `describe service ${name}`);
  }
}

export function serviceFindings(subject: Subject, service: ObjectKey): readonly Finding[] {
  return subject.families.flatMap((family) =>
    family.plan.cutsOf(service).map((cut) =>
      warning('beyond-capacity', printCut(cut), {
        consequence: 'The rest is not served, so that other services do not wait for this one.',
        cure: 'Divide it into several Services.',
        reference: serviceField(subject, service, cut.field),
      }),
    ),
  );
}

/** The kernel's default for net.ipv4.ip_local_port_range. */
const EPHEMERAL_PORTS: PortRange = { first: 32_768, last: 60_999 };

export function portFindings(
  subject: Subject,
  family: FamilySubject,
  port: ServicePort,
  endpoints: PortEndpoints,
): readonly Finding[] {
  const planned = family.plan.servicePorts.get(port.id);
  const refusal = family.refused.get(port.id);
  return [
    ...(refusal === undefined ? [] : [refusedByKernel(port.id, refusal)]),
    ...(planned ? endpointFindings(subject, port, planned, endpoints, family) : []),
    ...addressFindings(subject, family, port, planned),
    ...sourceRangeFindings(subject, family, port, planned),
    ...nodePortFindings(subject, port),
  ];
}

function endpointFindings(
  subject: Subject,
  port: ServicePort,
  planned: ServicePortPlan,
  endpoints: PortEndpoints,
  family: FamilySubject,
): readonly Finding[] {
  if (planned.internal.pod.verdict === 'reject') return [noEndpoints(port, endpoints)];
  const findings: Finding[] = [];
  const { nodeName } = family.plan.view;
  const nowhere = (field: string, what: string): Finding =>
    warning(
      'no-local-endpoints',
      `${field} is Local, and no endpoint of ${port.service} on ${nodeName} can serve`,
      {
        consequence: `On this node, ${what} dropped in silence.`,
        cure: patchService(port.service, { [field]: 'Cluster' }),
        reference: serviceField(subject, port.service, `spec.${field}`),
      },
    );
  if (planned.internal.pod.verdict === 'drop')
    findings.push(nowhere('internalTrafficPolicy', 'everything that is sent to its cluster IP is'));
  const isOutside = planned.frontends.some(({ kind }) => kind !== 'clusterIP');
  if (isOutside && planned.external.outside.verdict === 'drop')
    findings.push(
      nowhere(
        port.externalPolicyLocal ? 'externalTrafficPolicy' : 'internalTrafficPolicy',
        'what clients outside send to its node ports, external and load-balancer IPs is',
      ),
    );
  const pools = port.internalPolicyLocal ? (['local'] as const) : (['cluster'] as const);
  for (const pool of pools) findings.push(...poolFindings(port, endpoints, pool));
  return [...findings, ...unusedFindings(port, endpoints)];
}

function unusedFindings(
  { service, portName, protocol }: ServicePort,
  endpoints: PortEndpoints,
): readonly Finding[] {
  const findings: Finding[] = [];
  const unported = endpoints.unusable.filter(({ reason }) => reason === 'no-such-port');
  if (unported.length > 0)
    findings.push(
      warning(
        'no-such-port',
        `${countOf(unported.length, 'endpoint')} of ${service} ${unported.length === 1 ? 'has' : 'have'} no ${protocol} port ${portName}`,
        {
          evidence: listed(unported.map(({ endpoint }) => endpoint.pod ?? endpoint.ip)),
          consequence: 'They get nothing of this port.',
          cure: `Give a container of these pods a port with the name that spec.ports[].targetPort has: ${kubectl(service, (name) => `get service ${name} -o yaml`)}`,
        },
      ),
    );
  const unready = endpoints.all.filter(({ ready, terminating }) => !ready && !terminating);
  if (unready.length > 0)
    findings.push(
      info(
        'not-ready',
        `${countOf(unready.length, 'endpoint')} of ${endpoints.all.length} of ${service} ${unready.length === 1 ? 'is' : 'are'} not ready`,
        {
          evidence: listed(unready.map((each) => endpoints.nameOf(each).pod ?? each.key)),
          consequence: 'They get nothing until they are.',
          cure: kubectl(service, () =>
            `describe pod ${unready.flatMap((each) => endpoints.nameOf(each).pod ?? [])[0] ?? ''}`.trim(),
          ),
        },
      ),
    );
  return findings;
}

function addressFindings(
  subject: Subject,
  { plan, host }: FamilySubject,
  port: ServicePort,
  planned: ServicePortPlan | undefined,
): readonly Finding[] {
  const edit = kubectl(port.service, (name) => `edit service ${name}`);
  const findings: Finding[] = plan.denied(port.id).map(({ key, owner }) =>
    errorFinding('address-taken', `${printFrontendKey(key)} belongs to ${owner}`, {
      consequence: `It is not served for ${port.id}: the cluster IP, then the older Service, keeps an address.`,
      cure: `Give one of the two another address or port: ${edit}`,
    }),
  );
  const own = new Set<Ip>(host.addresses);
  const claimed = new Map<Ip, string>([
    ...port.externalIPs.map((ip) => [ip, 'spec.externalIPs'] as const),
    ...port.loadBalancerIPs.map((ip) => [ip, 'status.loadBalancer.ingress'] as const),
  ]);
  for (const [ip, field] of claimed) {
    const reference = serviceField(subject, port.service, field);
    if (planned?.refusedIPs?.includes(ip))
      findings.push(
        errorFinding('address-reserved', `${ip} is an address of the API server, which no Service may take`, {
          consequence: 'It is not served: on this node it would cut off the API server.',
          cure: `Remove it: ${edit}`,
          reference,
        }),
      );
    else if (own.has(ip))
      findings.push(
        warning('address-of-node', `${ip} is an address of this node too`, {
          consequence: `Port ${port.port} of the node itself is not reached there: the Service answers.`,
          cure: `Remove it from the Service, or use its node port: ${edit}`,
          reference,
        }),
      );
  }
  if (port.externalIPs.length > 0 && !plan.view.allowExternalIPs)
    findings.push(
      warning(
        'external-ips-off',
        'external IPs are not served: --feature-gates AllowServiceExternalIPs=false',
        {
          evidence: listed(port.externalIPs),
          reference: serviceField(subject, port.service, 'spec.externalIPs'),
        },
      ),
    );
  if (port.type === 'LoadBalancer' && port.loadBalancerIPs.length === 0)
    findings.push(
      info('no-load-balancer-ip', 'the load balancer has no address that a proxy serves', {
        consequence: 'Clients reach it by its node ports, or through a load balancer that dials them.',
        cure: kubectl(port.service, (name) => `get service ${name} -o jsonpath={.status.loadBalancer}`),
        reference: serviceField(subject, port.service, 'status.loadBalancer.ingress'),
      }),
    );
  return findings;
}

/** Health checks of the node, of pods, and of load balancers that dial with the node's address. */
function sourceRangeFindings(
  subject: Subject,
  { plan, family }: FamilySubject,
  port: ServicePort,
  planned: ServicePortPlan | undefined,
): readonly Finding[] {
  const allowed = planned?.frontends.find(({ allowedSources }) => allowedSources)?.allowedSources;
  if (!allowed) return [];
  const { nodeIp, localDetector } = plan.view;
  const shutOut: string[] = [];
  if (nodeIp !== undefined && familyOf(nodeIp) === family && !isAllowed(allowed, nodeIp))
    shutOut.push(`this node (${nodeIp})`);
  if (localDetector.kind === 'cidr') {
    const first = parseIp(localDetector.cidr.slice(0, localDetector.cidr.indexOf('/')));
    if (first !== undefined && !isAllowed(allowed, first)) shutOut.push(`pods (${localDetector.cidr})`);
  }
  if (shutOut.length === 0) return [];
  return [
    info(
      'source-ranges',
      `loadBalancerSourceRanges ${listed(allowed.ranges)} shut out ${shutOut.join(' and ')}`,
      {
        consequence: 'What they send to its load-balancer IPs is dropped in silence, health checks too.',
        cure: `Add their addresses, if they should reach it there: ${kubectl(port.service, (name) => `edit service ${name}`)}`,
        reference: serviceField(subject, port.service, 'spec.loadBalancerSourceRanges'),
      },
    ),
  ];
}

function nodePortFindings(subject: Subject, port: ServicePort): readonly Finding[] {
  const { first, last } = subject.ephemeralPorts ?? EPHEMERAL_PORTS;
  if (port.nodePort < first || port.nodePort > last) return [];
  return [
    warning(
      'ephemeral-node-port',
      `node port ${port.nodePort} is in the range from which the kernel gives ports to programs`,
      {
        evidence: `net.ipv4.ip_local_port_range = ${first} ${last}`,
        consequence: 'A program of this node that got this port is not reached: the Service answers instead.',
        cure: `sysctl -w net.ipv4.ip_local_reserved_ports=${port.nodePort}`,
        reference: serviceField(subject, port.service, 'spec.ports'),
      },
    ),
  ];
}
