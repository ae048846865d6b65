/** What a scenario's rows say, as text, and what `decide` and the rules make of them, as the same text. */
import { deviationOf, type Mechanism } from '../../src/modes/deviations.ts';
import type { PacketPlace, WalkOutcome, WalkResult } from '../../src/modes/kernelRules.ts';
import type { MemoryTables } from '../modes/iptables/rules/tables.ts';
import { walkIptables } from '../modes/iptables/rules/textWalk.ts';
import { decide, type ForwardTarget } from '../../src/plan/decide.ts';
import type { Plan } from '../../src/plan/types.ts';
import {
  type Fate,
  printRow,
  printTarget,
  type Row,
  type Subject,
  type Target,
  targetAt,
} from './packets.ts';
import { NODE1 } from './scenario.ts';

/** The row, or what a mechanism is known to do instead. */
export function expectedIn(mechanism: Mechanism, plan: Plan, row: Row): Fate {
  return insteadIn(mechanism, plan, row) ?? row.fate;
}

export function insteadIn(mechanism: Mechanism, plan: Plan, row: Subject): Fate | undefined {
  const decision = decide(plan, row.packet, NODE1);
  const instead = deviationOf(mechanism, plan, row.packet, NODE1, { decision })?.instead;
  if (instead === undefined) return undefined;
  if (typeof instead === 'string') return { verdict: instead };
  const sticky = decision.verdict !== 'pass' && decision.servicePort.affinitySeconds !== undefined;
  return { verdict: 'forward', sticky, targets: namedTargets(row, instead.targets) };
}

export function decided(plan: Plan, row: Subject): string {
  const decision = decide(plan, row.packet, NODE1);
  if (decision.verdict !== 'forward') return printRow(row, decision);
  return printRow(row, {
    verdict: 'forward',
    sticky: decision.servicePort.affinitySeconds !== undefined,
    targets: namedTargets(row, decision.targets),
  });
}

function namedTargets(row: Subject, targets: readonly ForwardTarget[]): readonly Target[] {
  return targets.map(({ endpoint, masquerade }) => targetAt(row, endpoint.ip, endpoint.port, masquerade));
}

const TOLERANCE = 1e-4;

export function walked(tables: MemoryTables, row: Subject): string {
  const result = walkIptables(tables, row.packet, NODE1, placeOf(row));
  const remembering = result.outcomes.filter(({ learned }) => learned.length > 0);
  if (!remembering.every((outcome) => isRemembered(tables, row, outcome)))
    return printRow(row, 'forgets its client');
  return printWalk(row, result);
}

function placeOf({ packet }: Subject): PacketPlace {
  return { viaBridge: packet.inInterface === 'cni0' };
}

/** Where it may go to several endpoints, to each as likely as to the others. */
export function printWalk(row: Subject, { outcomes, notes }: WalkResult): string {
  const [note] = notes;
  if (note !== undefined) return printRow(row, note);
  const verdicts = new Set(outcomes.map(({ kind }) => kind));
  const [verdict = 'pass'] = verdicts;
  if (verdicts.size > 1) return printRow(row, [...verdicts].join(' or '));
  if (verdict !== 'forward') return printRow(row, { verdict });
  const targets = outcomes.map((outcome) => target(row, outcome));
  const unfair = outcomes.find(({ probability }) => Math.abs(probability * outcomes.length - 1) > TOLERANCE);
  if (unfair) return printRow(row, `${printWay(row, unfair)} with ${unfair.probability}`);
  return printRow(row, { verdict, targets, sticky: outcomes.every(({ learned }) => learned.length > 0) });
}

export function printWay(row: Subject, outcome: WalkOutcome): string {
  return printTarget(target(row, outcome));
}

function target(row: Subject, outcome: WalkOutcome): Target {
  if (outcome.kind !== 'forward') throw new Error('not forwarded');
  return targetAt(row, outcome.to, outcome.port, outcome.masqueraded);
}

/** Whether a client that was sent to an endpoint once is sent there again, and nowhere else. */
function isRemembered(tables: MemoryTables, row: Subject, first: WalkOutcome): boolean {
  const again = walkIptables(tables, row.packet, NODE1, {
    ...placeOf(row),
    remembers: (list) => first.learned.some(({ name }) => name === list),
  });
  const [only] = again.outcomes;
  return again.outcomes.length === 1 && only !== undefined && printWay(row, only) === printWay(row, first);
}
