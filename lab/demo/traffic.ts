/** Sends a probe's requests, and compares what came of them with what the plan says. */
import type { Lab } from '../lab.ts';
import type { Outcome, Reply } from '../protocol.ts';
import { ADDRESSES } from '../topology.ts';
import type { Ip } from '../../src/model/ip.ts';
import type { Decision, ForwardTarget, Packet } from '../../src/plan/decide.ts';
import type { Plan } from '../../src/plan/types.ts';
import { decideOnNode1 } from './expectation.ts';
import {
  hostOf,
  planOf,
  type Probe,
  probeKey,
  probesFor,
  sourceOf,
  type Target,
  targetOf,
} from './probes.ts';

export interface Row {
  readonly probe: Probe;
  readonly target: Target;
  readonly source: Ip;
  readonly decision: Decision;
  readonly outcomes: readonly Outcome[];
  /** What went otherwise than planned; empty when nothing did. */
  readonly surprises: readonly string[];
}

const REQUESTS = 12;
/** Silence is known only after the whole time limit, and a second try shows nothing new. */
const REQUESTS_INTO_SILENCE = 2;
/** Where no answer is expected; answers come within milliseconds. */
const SILENCE_MS = 600;

/** `before`: an address that no longer exists is still dialled, to show that nobody answers there. */
export async function sendAll(
  lab: Lab,
  plans: readonly Plan[],
  before: readonly Row[] = [],
): Promise<readonly Row[]> {
  const lastTargets = new Map(before.map(({ probe, target }) => [probeKey(probe), target]));
  const probes = new Map(
    [...before.map(({ probe }) => probe), ...probesFor(plans)].map((probe) => [probeKey(probe), probe]),
  );
  const rows = await Promise.all(
    [...probes].map(async ([key, probe]) => {
      const plan = planOf(probe, plans);
      const target = targetOf(probe, plan) ?? lastTargets.get(key);
      return target && sendProbe(lab, probe, target, plan);
    }),
  );
  return rows.filter((row) => row !== undefined);
}

async function sendProbe(lab: Lab, probe: Probe, target: Target, plan: Plan): Promise<Row> {
  const source = sourceOf(probe, target);
  const decision = decideOnNode1(plan, packetOf(probe, source, target));
  const outcomes = await request(lab, probe, target, decision);
  const sent = { probe, target, source, decision, outcomes };
  return { ...sent, surprises: findSurprises(sent) };
}

function packetOf({ from, transport }: Probe, source: Ip, { address, port }: Target): Packet {
  const inInterface = {
    node1: undefined,
    client: 'eth1',
    'far client': 'eth1',
    'pod-a': 'cni0',
    'pod-b': 'cni0',
  };
  return {
    source,
    destination: address,
    protocol: transport === 'tcp' ? 'TCP' : 'UDP',
    port,
    inInterface: inInterface[from],
  };
}

async function request(
  lab: Lab,
  { from, transport }: Probe,
  { address, port }: Target,
  decision: Decision,
): Promise<readonly Outcome[]> {
  const isSilent = decision.verdict === 'drop' || decision.verdict === 'pass';
  const host = lab.host(hostOf(from));
  const options = {
    ...(from === 'far client' && { source: ADDRESSES.client.IPv4[1] ?? '' }),
    ...(isSilent && { timeoutMs: SILENCE_MS }),
  };
  const ask = (): Promise<Outcome> => host.request(transport, address, port, options);
  const count = isSilent ? REQUESTS_INTO_SILENCE : REQUESTS;
  if (!isSticky(decision)) return Promise.all(Array.from({ length: count }, ask));
  const outcomes: Outcome[] = [];
  for (let sent = 0; sent < count; sent++) outcomes.push(await ask()); // affinity is about who comes back
  return outcomes;
}

function isSticky(decision: Decision): boolean {
  return decision.verdict === 'forward' && decision.servicePort.affinitySeconds !== undefined;
}

type Sent = Omit<Row, 'surprises'>;

function findSurprises(sent: Sent): readonly string[] {
  const { decision, outcomes } = sent;
  const surprises = outcomes.flatMap((outcome) => surpriseIn(outcome, sent));
  if (isSticky(decision) && answeringHosts(outcomes).size > 1) {
    surprises.push('expected one pod to answer all requests, for session affinity');
  }
  return [...new Set(surprises)];
}

function surpriseIn(outcome: Outcome, { decision, source }: Sent): readonly string[] {
  if (decision.verdict === 'forward') {
    if (outcome.outcome !== 'answer') return [`expected an answer from ${printTargets(decision.targets)}`];
    return surpriseInReply(outcome.reply, decision.targets, source);
  }
  if (decision.verdict === 'reject') {
    return outcome.outcome === 'refused' ? [] : [`expected to be refused: ${decision.reason}`];
  }
  if (decision.verdict === 'drop') {
    return outcome.outcome === 'timeout' ? [] : [`expected no answer: ${decision.reason}`];
  }
  return outcome.outcome === 'answer' ? ['expected nobody to answer: no service has this address'] : [];
}

function surpriseInReply(reply: Reply, targets: readonly ForwardTarget[], source: Ip): readonly string[] {
  const target = targets.find(
    ({ endpoint }) => endpoint.ip === reply.address && endpoint.port === reply.port,
  );
  if (!target) return [`expected an answer from ${printTargets(targets)}`];
  const isFromNode1 = isNode1(reply.peer);
  if (target.masquerade) return isFromNode1 ? [] : [`expected ${reply.host} to see node1's address`];
  return reply.peer === source ? [] : [`expected ${reply.host} to see ${source}`];
}

export function isNode1(address: string): boolean {
  return Object.values(ADDRESSES.node1).some((addresses) => addresses.some((own) => own === address));
}

export function answeringHosts(outcomes: readonly Outcome[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const outcome of outcomes) {
    if (outcome.outcome !== 'answer') continue;
    counts.set(outcome.reply.host, (counts.get(outcome.reply.host) ?? 0) + 1);
  }
  return new Map([...counts].sort(([one], [other]) => (one < other ? -1 : 1)));
}

function printTargets(targets: readonly ForwardTarget[]): string {
  return targets.map(({ endpoint }) => `${endpoint.ip}:${endpoint.port}`).join(' or ');
}

/** Equal for two rows of which the plan says the same; who of several answered how often is chance. */
export function meaningOf({ target, decision, surprises }: Row): string {
  const targets =
    decision.verdict === 'forward'
      ? decision.targets.map(({ endpoint, masquerade }) => [endpoint.ip, endpoint.port, masquerade])
      : [];
  return JSON.stringify([target, decision.verdict, targets, surprises]);
}
