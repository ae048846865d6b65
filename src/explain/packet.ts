/** `explain --from … --to …`: what becomes of a packet, and why. */
import { classifySource, type ForwardTarget, type Packet } from '../plan/decide.ts';
import { hostPort } from '../model/ip.ts';
import type { Frontend, ServicePortPlan } from '../plan/types.ts';
import type { ServicePort } from '../model/serviceTracker.ts';
import { type Answered, decisionFindings, ifAllowed, policyOf, poolOf } from './decision.ts';
import { PortEndpoints } from './endpoints.ts';
import { countOf, info } from './finding.ts';
import { explainKernel } from './kernel.ts';
import { kernelFindings } from './kernelFindings.ts';
import { masqueradeReason } from './masquerade.ts';
import { loopbackMisses, nearMisses } from './nearMiss.ts';
import { type Planned, plannedFor } from './planned.ts';
import { QuestionError } from './question.ts';
import { type ResolvedPacket, resolvePackets } from './resolve.ts';
import { explainSource } from './source.ts';
import type { FamilySubject, Subject } from './subject.ts';
import type { ChosenEndpoint, Finding, FrontendName, PacketExplanation } from './types.ts';
import { KIND_WORDS } from './words.ts';

export interface PacketQuestion {
  readonly from: string;
  readonly to: string;
}

/** One answer for each packet that is meant: a Service may have several ports, and addresses of two families. */
export async function explainPackets(
  subject: Subject,
  question: PacketQuestion,
): Promise<readonly PacketExplanation[]> {
  const asked = await resolvePackets(subject, question);
  const answers: PacketExplanation[] = [];
  for (const each of asked) {
    answers.push(await explainPacket(subject, each));
    const pause = subject.pause?.();
    if (pause) await pause;
  }
  return answers;
}

interface ExplainOptions {
  /** Of a service port that is explained for several packets. */
  readonly endpoints?: PortEndpoints;
  /** How many endpoints, and how many left out, are listed. */
  readonly most?: number;
}

const MOST_ENDPOINTS = 1000;

export async function explainPacket(
  subject: Subject,
  asked: ResolvedPacket,
  options: ExplainOptions = {},
): Promise<PacketExplanation> {
  const { family, packet } = asked;
  const planned = plannedFor(subject, family, packet);
  const { verdict, deviation, decision } = planned;
  const port = decision.verdict === 'pass' ? undefined : portOf(family, decision.servicePort);
  const answer = await (decision.verdict === 'pass' || !port
    ? explainPassed(subject, family, packet, planned)
    : explainAnswered(
        {
          subject,
          family,
          packet,
          decision,
          sourceClass: classifySource(family.plan.view.localDetector, packet, family.host),
          port,
          endpoints: options.endpoints ?? new PortEndpoints(subject, family, port),
        },
        planned,
        options.most ?? MOST_ENDPOINTS,
      ));
  const kernel = await explainKernel(subject, family, packet, planned);
  return {
    node: subject.nodeName,
    mode: subject.mode,
    family: family.family,
    packet: packetOf(asked),
    source: explainSource(subject, family, packet),
    verdict,
    ...answer,
    findings: [...kernelFindings(family.family, kernel), ...answer.findings],
    ...(deviation && { deviation: deviation.reason }),
    ...(kernel && { kernel }),
  };
}

function packetOf({ packet, sourceName }: ResolvedPacket): PacketExplanation['packet'] {
  const { source, destination, port, protocol, inInterface } = packet;
  return {
    source,
    ...(sourceName !== undefined && { sourceName }),
    destination,
    port,
    protocol,
    ...(inInterface !== undefined && { inInterface }),
  };
}

function portOf(family: FamilySubject, { service, id }: ServicePortPlan): ServicePort {
  const found = family.portsOf(service).find((port) => port.id === id);
  if (found) return found;
  throw new QuestionError(`Service ${service} changes just now`, 'Ask again.');
}

type Answer = Pick<
  PacketExplanation,
  | 'reason'
  | 'frontend'
  | 'pool'
  | 'affinitySeconds'
  | 'findings'
  | 'endpoints'
  | 'leftOut'
  | 'unlisted'
  | 'ifAllowed'
>;

async function explainPassed(
  subject: Subject,
  family: FamilySubject,
  packet: Packet,
  { verdict, deviation }: Planned,
): Promise<Answer> {
  const findings = await nearMisses(subject, family, packet);
  const { destination, port, protocol } = packet;
  const reason =
    verdict === 'passed'
      ? `no service answers at ${destination}, port ${port}/${protocol}: the packet goes where it would go without a proxy`
      : (deviation?.reason ?? '');
  return { reason, findings, endpoints: [], leftOut: [] };
}

function explainAnswered(answered: Answered, planned: Planned, most: number): Answer {
  const { decision, port, endpoints } = answered;
  const { servicePort } = decision;
  const pool = usedPool(answered, planned);
  const isPassed = planned.verdict === 'passed';
  const findings = [
    ...(isPassed ? loopbackMisses(answered.subject, answered.packet, servicePort) : []),
    ...decisionFindings(answered, planned.verdict),
    ...sourceFindings(answered),
  ];
  const chosen = chosenOf(answered, planned, planned.targets, most);
  const leftOut = isPassed ? [] : endpoints.leftOutOf(pool);
  const allowed =
    planned.verdict === 'dropped' || planned.verdict === 'rejected' ? ifAllowed(answered) : undefined;
  const unlisted = {
    endpoints: planned.targets.length - chosen.length,
    leftOut: Math.max(0, leftOut.length - most),
  };
  return {
    reason: reasonOf(answered, planned, findings),
    frontend: frontendName(answered),
    ...(planned.verdict === 'forwarded' && { pool }),
    ...(servicePort.affinitySeconds !== undefined && { affinitySeconds: servicePort.affinitySeconds }),
    findings,
    endpoints: chosen,
    leftOut: leftOut.slice(0, most),
    ...(unlisted.endpoints + unlisted.leftOut > 0 && { unlisted }),
    ...(allowed && {
      ifAllowed: {
        condition: allowed.condition,
        endpoints: chosenOf(answered, planned, allowed.targets, most),
      },
    }),
  };

  function frontendName({ packet }: Answered): FrontendName {
    const { frontend } = decision;
    const policy = policyOf(decision, port);
    return {
      kind: frontend.kind,
      address: frontend.address ?? packet.destination,
      port: frontend.port,
      service: servicePort.service,
      servicePort: servicePort.id,
      policy: `${policy.field}: ${policy.isLocal ? 'Local' : 'Cluster'}`,
      others: servicePort.frontends
        .filter((other) => other !== frontend)
        .slice(0, MOST_FRONTENDS)
        .map(frontendWords),
    };
  }
}

/** A service may have thousands. */
const MOST_FRONTENDS = 20;

function frontendWords({ kind, address, port }: Frontend): string {
  return `${KIND_WORDS[kind]} ${address === undefined ? port : hostPort(address, port)}`;
}

function usedPool(answered: Answered, { deviation }: Planned): ReturnType<typeof poolOf> {
  if (deviation && typeof deviation.instead !== 'string') return deviation.instead.pool;
  return poolOf(answered);
}

function chosenOf(
  { decision, family, packet, sourceClass, port, endpoints }: Answered,
  { deviation }: Planned,
  targets: readonly ForwardTarget[],
  most: number,
): readonly ChosenEndpoint[] {
  const at = {
    frontend: decision.frontend,
    view: family.plan.view,
    packet,
    host: family.host,
    sourceClass,
    preservesClientIP: port.externalPolicyLocal,
    deviation: deviation?.reason,
  };
  return targets.slice(0, most).map((target) => ({
    ...endpoints.nameOf(target.endpoint),
    probability: 1 / targets.length,
    masquerade: target.masquerade,
    masqueradeReason: masqueradeReason(at, target),
  }));
}

function reasonOf(
  { decision, port }: Answered,
  { verdict, targets, deviation }: Planned,
  findings: readonly Finding[],
): string {
  if (deviation && verdict !== 'forwarded') return deviation.reason;
  const what = `${KIND_WORDS[decision.frontend.kind]} of ${port.name}`;
  if (verdict === 'forwarded')
    return `the ${what} forwards to ${targets.length === 1 ? 'one endpoint' : `one of ${countOf(targets.length, 'endpoint')}`}`;
  return findings[0]?.text ?? `the ${what} has nowhere to send it`;
}

/** A pod of another node is served by its own node's proxy. */
function sourceFindings({ endpoints, packet, family }: Answered): readonly Finding[] {
  const sender = endpoints.all.find(({ ip }) => ip === packet.source);
  if (!sender || sender.isLocal) return [];
  const { node, pod } = endpoints.nameOf(sender);
  if (node === undefined) return [];
  return [
    info(
      'other-node',
      `the source ${pod ?? packet.source} is on ${node}, whose own proxy handles what it sends`,
      {
        consequence: `This is what ${family.plan.view.nodeName} would do with it.`,
      },
    ),
  ];
}
