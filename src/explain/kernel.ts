/** What the rules in the kernel do with a packet, compared with what is planned. */
import { messageOf } from '../errors.ts';
import { hostPort } from '../model/ip.ts';
import type { TraceStep, WalkOutcome, WalkResult } from '../modes/kernelRules.ts';
import type { Packet } from '../plan/decide.ts';
import { type Planned, VERDICT_OF } from './planned.ts';
import type { FamilySubject, Subject } from './subject.ts';
import type { KernelExplanation, KernelOutcome, KernelStep, Verdict } from './types.ts';
import { OUTCOME_WORDS, percent, printMasquerade, printOutcome } from './words.ts';

/** `undefined` where no kernel is asked. */
export async function explainKernel(
  subject: Pick<Subject, 'mode' | 'now'>,
  { kernel, host, plan }: FamilySubject,
  packet: Packet,
  planned: Planned,
): Promise<KernelExplanation | undefined> {
  if (!kernel) return undefined;
  const { mode } = subject;
  const startedAt = subject.now();
  const times = (): Pick<KernelExplanation, 'readAt' | 'readMs'> => {
    const endedAt = subject.now();
    return { readAt: kernel.readAt ?? endedAt, readMs: Math.max(0, endedAt - startedAt) };
  };
  try {
    const walked = await kernel.walk(packet, { ...host, nodeIp: plan.view.nodeIp });
    const outcomes = outcomesOf(walked);
    const differences = differencesFrom(planned, outcomes);
    const { notes } = walked;
    return { mode, ...times(), asPlanned: differences.length === 0, differences, outcomes, notes };
  } catch (error) {
    const notes = [`not evaluated: the rules could not be read: ${messageOf(error)}`];
    return { mode, ...times(), differences: [], outcomes: [], notes };
  }
}

/** Equal ends are one outcome, with the way of the first. */
export function outcomesOf({ outcomes }: WalkResult): readonly KernelOutcome[] {
  const merged = new Map<string, KernelOutcome>();
  for (const outcome of outcomes) {
    const one = outcomeOf(outcome);
    const key = `${one.verdict} ${one.to ?? ''} ${one.masquerade ?? ''}`;
    const before = merged.get(key);
    merged.set(key, before ? { ...before, probability: before.probability + one.probability } : one);
  }
  return [...merged.values()];
}

function outcomeOf(outcome: WalkOutcome): KernelOutcome {
  return {
    verdict: VERDICT_OF[outcome.kind],
    ...(outcome.kind === 'forward' && {
      to: hostPort(outcome.to, outcome.port),
      masquerade: outcome.masqueraded,
    }),
    probability: outcome.probability,
    ...(outcome.byAffinity && { byAffinity: true }),
    steps: outcome.path.map(stepOf),
  };
}

function stepOf({ hook, table, chain, text, found, packets, isForeign }: TraceStep): KernelStep {
  return {
    hook,
    table,
    chain,
    rule: text,
    found,
    ...(packets !== undefined && { packets }),
    ...(isForeign === true && { isForeign }),
  };
}

/** A rule's probability is one of 2^31 steps, and as many rules as endpoints add up. */
const TOLERANCE = 1e-4;

interface Expected {
  readonly verdict: Verdict;
  readonly masquerade?: boolean;
  readonly probability: number;
}

/** In words; empty where the kernel does what is planned. */
export function differencesFrom(planned: Planned, outcomes: readonly KernelOutcome[]): readonly string[] {
  const expected = expectedOf(planned);
  const isStopped = outcomes.every(({ verdict }) => verdict !== 'forwarded');
  if (planned.verdict !== 'forwarded' || isStopped) return verdictDifferences(planned, outcomes);
  const found = new Map<string, KernelOutcome[]>();
  for (const outcome of outcomes) {
    const key = outcome.to ?? '';
    const before = found.get(key);
    if (before) before.push(outcome);
    else found.set(key, [outcome]);
  }
  // A client with an affinity entry is sent to one of the endpoints, whatever their number.
  const byAffinity = outcomes.every((outcome) => outcome.byAffinity === true);
  const differences: string[] = [];
  for (const [to, planForAll] of expected) {
    const wanted = byAffinity ? { ...planForAll, probability: 1 } : planForAll;
    const kernel = found.get(to) ?? [];
    found.delete(to);
    if (byAffinity && kernel.length === 0) continue;
    differences.push(...targetDifferences(to, wanted, kernel));
  }
  for (const others of found.values())
    for (const other of others)
      differences.push(
        `planned: nothing of the kind; kernel: ${percent(other.probability)} ${printOutcome(other)}`,
      );
  return differences;
}

function expectedOf({ targets }: Planned): ReadonlyMap<string, Expected> {
  const expected = new Map<string, Expected>();
  for (const { endpoint, masquerade } of targets)
    expected.set(endpoint.key, { verdict: 'forwarded', masquerade, probability: 1 / targets.length });
  return expected;
}

function verdictDifferences(planned: Planned, outcomes: readonly KernelOutcome[]): readonly string[] {
  const others = outcomes.filter(({ verdict }) => verdict !== planned.verdict);
  return others.map((other) => {
    const share = other.probability < 1 - TOLERANCE ? `${percent(other.probability)} ` : '';
    return `planned: ${printPlanned(planned)}; kernel: ${share}${printOutcome(other)}`;
  });
}

function targetDifferences(
  to: string,
  wanted: Expected,
  kernel: readonly KernelOutcome[],
): readonly string[] {
  const [one, ...more] = kernel;
  if (!one) return [`planned: ${percent(wanted.probability)} forwarded to ${to}; kernel: none`];
  const differences: string[] = [];
  const sum = kernel.reduce((total, { probability }) => total + probability, 0);
  if (Math.abs(sum - wanted.probability) > TOLERANCE)
    differences.push(`planned: ${percent(wanted.probability)} forwarded to ${to}; kernel: ${percent(sum)}`);
  for (const { masquerade } of [one, ...more]) {
    if (masquerade === wanted.masquerade) continue;
    differences.push(
      `planned: ${to} ${printMasquerade(wanted.masquerade)}; kernel: ${printMasquerade(masquerade)}`,
    );
  }
  return differences;
}

/** How many endpoints a sentence names. */
const MOST_NAMED = 3;

function printPlanned({ verdict, targets }: Planned): string {
  if (verdict !== 'forwarded') return OUTCOME_WORDS[verdict];
  const named = targets.slice(0, MOST_NAMED).map(({ endpoint }) => endpoint.key);
  const more = targets.length > MOST_NAMED ? ` and ${targets.length - MOST_NAMED} more` : '';
  return `forwarded to ${named.join(', ')}${more}`;
}
