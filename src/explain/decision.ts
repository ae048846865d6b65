/** What decided about a packet at a frontend of ours, and where it would go without that. */
import { hostCidr } from '../model/ip.ts';
import type { ServicePort } from '../model/serviceTracker.ts';
import { type Decision, type ForwardTarget, isLocal, type Packet, targetsOf } from '../plan/decide.ts';
import { selectEndpoints } from '../plan/servicePortPlan.ts';
import type { PoolName, SourceClass } from '../plan/types.ts';
import { noEndpoints, poolFindings } from './endpointFindings.ts';
import type { PortEndpoints } from './endpoints.ts';
import { errorFinding, kubectl, listed, patchService, serviceField, warning } from './finding.ts';
import type { FamilySubject, Subject } from './subject.ts';
import type { Finding, Verdict } from './types.ts';

/** A packet that a frontend answers. */
export interface Answered {
  readonly subject: Subject;
  readonly family: FamilySubject;
  readonly packet: Packet;
  readonly decision: Exclude<Decision, { readonly verdict: 'pass' }>;
  readonly sourceClass: SourceClass;
  readonly port: ServicePort;
  readonly endpoints: PortEndpoints;
}

interface IfAllowed {
  readonly condition: string;
  readonly targets: readonly ForwardTarget[];
}

/** The policy's field of a frontend. */
export function policyOf(
  { frontend }: Pick<Answered['decision'], 'frontend'>,
  port: ServicePort,
): {
  readonly field: 'internalTrafficPolicy' | 'externalTrafficPolicy';
  readonly isLocal: boolean;
} {
  return frontend.kind === 'clusterIP'
    ? { field: 'internalTrafficPolicy', isLocal: port.internalPolicyLocal }
    : { field: 'externalTrafficPolicy', isLocal: port.externalPolicyLocal };
}

/** The pool that the packet's route uses, or would if it had endpoints. */
export function poolOf({ decision, sourceClass, port }: Answered): PoolName {
  const route = decision.frontend.routes[sourceClass];
  if (route.verdict === 'forward') return route.pool;
  const policy = policyOf(decision, port);
  if (!policy.isLocal) return 'cluster';
  return decision.frontend.kind === 'clusterIP' || sourceClass === 'outside' ? 'local' : 'cluster';
}

/** What decided, first; then what is noteworthy. */
export function decisionFindings(answered: Answered, verdict: Verdict): readonly Finding[] {
  const { decision, endpoints, port } = answered;
  const noteworthy = [...poolFindings(port, endpoints, poolOf(answered)), ...frontendFindings(answered)];
  switch (decision.verdict) {
    case 'forward':
      return noteworthy;
    case 'reject':
      return [
        // Where a mode asks for the source first.
        ...(verdict === 'dropped' ? [sourceNotAllowed(answered)] : []),
        noEndpoints(port, endpoints),
        ...frontendFindings(answered),
      ];
    case 'drop':
      return [
        decision.reason === 'source not allowed' ? sourceNotAllowed(answered) : noLocalEndpoints(answered),
        ...noteworthy,
      ];
  }
}

function sourceNotAllowed({ subject, packet, decision, port }: Answered): Finding {
  const ranges = decision.frontend.allowedSources?.ranges ?? [];
  const { service } = port;
  const patch = [{ op: 'add', path: '/spec/loadBalancerSourceRanges/-', value: hostCidr(packet.source) }];
  return errorFinding(
    'source-not-allowed',
    `loadBalancerSourceRanges ${listed(ranges)} do not contain ${packet.source}`,
    {
      consequence: 'Packets of this source are dropped in silence, at the load-balancer IPs.',
      cure: kubectl(service, (name) => `patch service ${name} --type=json -p '${JSON.stringify(patch)}'`),
      reference: serviceField(subject, service, 'spec.loadBalancerSourceRanges'),
    },
  );
}

function noLocalEndpoints({ subject, family, decision, port, endpoints }: Answered): Finding {
  const { field } = policyOf(decision, port);
  const elsewhere = new Set(
    endpoints.all.flatMap((endpoint) =>
      endpoint.ready ? [endpoints.nameOf(endpoint).node ?? 'no node'] : [],
    ),
  );
  return errorFinding(
    'no-local-endpoints',
    `${field} is Local, and no endpoint of ${port.service} on ${family.plan.view.nodeName} can serve`,
    {
      evidence:
        elsewhere.size === 0
          ? 'no endpoint is ready on any node'
          : `ready endpoints are on ${listed([...elsewhere].sort())}`,
      consequence: 'Packets are dropped in silence on this node; load balancers see its health check fail.',
      cure: patchService(port.service, { [field]: 'Cluster' }),
      reference: serviceField(subject, port.service, `spec.${field}`),
    },
  );
}

function frontendFindings({ family, decision, port, packet }: Answered): readonly Finding[] {
  const { frontend, servicePort } = decision;
  const findings: Finding[] = [];
  const refusal = family.refused.get(servicePort.id);
  if (refusal !== undefined) findings.push(refusedByKernel(servicePort.id, refusal));
  const waiting = family.plan.waitingFor(frontend.address, servicePort.protocol, frontend.port);
  if (waiting.length > 0)
    findings.push(
      warning(
        'address-shared',
        `${listed(waiting)} asked for this address and port too, and did not get it`,
        {
          consequence: `Everything that is sent here goes to ${servicePort.id}: the older one keeps an address.`,
          cure: 'Give one of the Services another address or port.',
        },
      ),
    );
  if (
    frontend.kind !== 'nodePort' &&
    frontend.kind !== 'clusterIP' &&
    isLocal(packet.destination, family.host)
  )
    findings.push(addressOfNode(packet, port));
  return findings;
}

export function refusedByKernel(id: string, refusal: string): Finding {
  return errorFinding('refused-by-kernel', `the kernel refused ${id}`, {
    evidence: refusal,
    consequence: 'What it had before stays in force; it is tried again with each sync.',
    cure: 'Read what the kernel said; `junction doctor` checks modules and limits.',
  });
}

function addressOfNode({ destination }: Packet, port: ServicePort): Finding {
  return warning('address-of-node', `${destination} is an address of this node too`, {
    consequence: `Port ${port.port} of the node itself is not reached there: the Service answers.`,
    cure: `Remove it from the addresses of the Service: ${kubectl(port.service, (name) => `edit service ${name}`)}`,
  });
}

/** Where a packet would go if what stops it were not there. */
export function ifAllowed({
  decision,
  sourceClass,
  packet,
  family,
  port,
  endpoints,
}: Answered): IfAllowed | undefined {
  if (decision.verdict !== 'drop') return undefined;
  const { frontend, servicePort } = decision;
  if (decision.reason === 'source not allowed') {
    const route = frontend.routes[sourceClass];
    if (route.verdict !== 'forward') return undefined;
    return { condition: 'if allowed', targets: targetsOf(servicePort, route, packet, family.host) };
  }
  const { field } = policyOf(decision, port);
  const { view } = family.plan;
  const isMasqueraded =
    frontend.kind !== 'clusterIP' ||
    view.masqueradeAll ||
    (sourceClass !== 'pod' && view.localDetector.kind !== 'none');
  const everywhere = { ...port, internalPolicyLocal: false, externalPolicyLocal: false };
  const pools = { cluster: selectEndpoints(everywhere, endpoints.all, view).cluster };
  const route = { verdict: 'forward', pool: 'cluster', masquerade: isMasqueraded } as const;
  const targets = targetsOf({ pools }, route, packet, family.host);
  return targets.length === 0 ? undefined : { condition: `with ${field}: Cluster`, targets };
}
