/** Differences in meaning: packets that go elsewhere. */
import { differencesFrom, outcomesOf } from '../explain/kernel.ts';
import { type Planned, plannedFor } from '../explain/planned.ts';
import type { FamilySubject, Subject } from '../explain/subject.ts';
import type { KernelOutcome } from '../explain/types.ts';
import { percent, printOutcome } from '../explain/words.ts';
import type { KernelReader } from '../modes/kernelRules.ts';
import type { ServicePortId } from '../model/serviceTracker.ts';
import { type ComparedPacket, packetsOf, type PacketSet, printAsked } from './packets.ts';
import type { MeaningDiff, MeaningSummary } from './types.ts';

export interface Meaning {
  readonly summary: MeaningSummary;
  readonly differences: readonly (MeaningDiff & { readonly service: string })[];
}

const MOST_KERNEL_PACKETS = 10_000;
/**
 * A walk takes from 50 µs to 3 ms, the more endpoints the longer. So many are walked, and others while there is time: as long
 * as it took to read the kernel.
 */
const LEAST_KERNEL_PACKETS = 200;
const LEAST_MS = 1000;
const MOST_PLAN_PACKETS = 200_000;
const MOST_NOTES = 20;

/** What the kernel's rules do with packets, against what is planned. */
export async function kernelMeaning(
  subject: Subject,
  family: FamilySubject,
  reader: KernelReader,
  preferred: ReadonlySet<ServicePortId>,
  readMs: number,
): Promise<Meaning> {
  const asked = packetsOf(family, MOST_KERNEL_PACKETS, preferred);
  const collected = new Collected();
  const until = subject.now() + Math.max(LEAST_MS, readMs);
  let count = 0;
  for (const one of asked.packets) {
    if (count >= LEAST_KERNEL_PACKETS && subject.now() > until) break;
    count += 1;
    const planned = plannedFor(subject, family, one.packet);
    const walked = await reader.walk(one.packet, family.host);
    collected.note(walked.notes);
    const outcomes = outcomesOf(walked);
    if (differencesFrom(planned, outcomes).length > 0)
      collected.add(one, printOutcomes(outcomes), printPlannedWay(planned));
    const waiting = subject.pause?.();
    if (waiting) await waiting;
  }
  const isCut = count < asked.packets.length;
  return collected.finish({ packets: asked.packets.slice(0, count), isSampled: asked.isSampled || isCut });
}

interface PlannedSide {
  readonly subject: Subject;
  readonly family: FamilySubject;
}

/** What two plans do with packets to the frontends of both. */
export function planMeaning(
  from: PlannedSide,
  to: PlannedSide,
  preferred: ReadonlySet<ServicePortId>,
): Meaning {
  const [before, after] = [from, to].map(({ family }) => packetsOf(family, MOST_PLAN_PACKETS / 2, preferred));
  const collected = new Collected();
  const seen = new Set<string>();
  const packets: ComparedPacket[] = [];
  for (const one of [...(after?.packets ?? []), ...(before?.packets ?? [])]) {
    const key = `${printAsked(one.packet)} ${one.packet.inInterface ?? ''}`;
    if (seen.has(key)) continue;
    seen.add(key);
    packets.push(one);
    const [old, now] = [from, to].map(({ subject, family }) => plannedFor(subject, family, one.packet));
    if (!old || !now || wayKey(old) === wayKey(now)) continue;
    collected.add(one, printPlannedWay(old), printPlannedWay(now));
  }
  return collected.finish({ packets, isSampled: before?.isSampled === true || after?.isSampled === true });
}

class Collected {
  readonly #differences: (MeaningDiff & { readonly service: string })[] = [];
  readonly #notes = new Set<string>();
  #notEvaluated = 0;

  note(notes: readonly string[]): void {
    if (notes.length > 0) this.#notEvaluated += 1;
    for (const text of notes) if (this.#notes.size < MOST_NOTES) this.#notes.add(text);
  }

  add({ packet, servicePort, service }: ComparedPacket, from: string, to: string): void {
    this.#differences.push({ service, servicePort, packet: printAsked(packet), from, to });
  }

  finish({ packets, isSampled }: PacketSet): Meaning {
    return {
      differences: this.#differences,
      summary: {
        packets: packets.length,
        isSampled,
        different: this.#differences.length,
        notEvaluated: this.#notEvaluated,
        notes: [...this.#notes],
      },
    };
  }
}

/** Two plans may list the same endpoints in another order. */
function wayKey({ verdict, targets, decision }: Planned): string {
  const ends = targets.map(({ endpoint, masquerade }) => `${endpoint.key} ${masquerade}`).sort();
  const affinity = 'servicePort' in decision ? (decision.servicePort.affinitySeconds ?? '') : '';
  return `${verdict} ${affinity} ${ends.join(',')}`;
}

/** How many endpoints a line names. */
const MOST_NAMED = 3;

function printPlannedWay({ verdict, targets, decision, deviation }: Planned): string {
  const reason = deviation ? ` (${deviation.reason})` : 'reason' in decision ? ` (${decision.reason})` : '';
  if (verdict !== 'forwarded') return `${verdict === 'passed' ? 'no service answers' : verdict}${reason}`;
  const ends = targets.map(({ endpoint, masquerade }) => ({ to: endpoint.key, masquerade }));
  const affinity = 'servicePort' in decision ? decision.servicePort.affinitySeconds : undefined;
  return `forwarded to ${printEnds(ends)}${affinity === undefined ? '' : `, affinity ${affinity} s`}`;
}

function printOutcomes(outcomes: readonly KernelOutcome[]): string {
  const [first] = outcomes;
  if (!first) return 'nothing';
  const isEven = outcomes.every(
    ({ verdict, probability }) => verdict === 'forwarded' && Math.abs(probability - first.probability) < 1e-3,
  );
  if (isEven) {
    const ends = outcomes.map(({ to = '', masquerade }) => ({ to, masquerade: masquerade === true }));
    return `forwarded to ${printEnds(ends)}`;
  }
  if (outcomes.length === 1) return first.verdict === 'passed' ? 'no service answers' : printOutcome(first);
  return shortened(
    outcomes.map((each) => `${percent(each.probability)} ${printOutcome(each)}`),
    '; ',
  );
}

interface End {
  readonly to: string;
  readonly masquerade: boolean;
}

function printEnds(ends: readonly End[]): string {
  const isAll = ends.every(({ masquerade }) => masquerade);
  const texts = ends.map(({ to, masquerade }) => (masquerade && !isAll ? `${to} (masqueraded)` : to));
  return `${shortened(texts)}${isAll ? ', masqueraded' : ''}`;
}

function shortened(ends: readonly string[], separator = ' or '): string {
  const named = ends.slice(0, MOST_NAMED).join(separator);
  return ends.length > MOST_NAMED ? `${named} and ${ends.length - MOST_NAMED} more` : named;
}
