/** Each thing that can become of a packet: as planned, and as the kernel does it. */
import { masqueradeWords } from '../../../src/explain/packetText.ts';
import { placeWords } from '../../../src/explain/serviceWords.ts';
import type { ChosenEndpoint, KernelOutcome, PacketExplanation } from '../../../src/explain/types.ts';
import { OUTCOME_WORDS, percent, printMasquerade, printOutcome } from '../../../src/explain/words.ts';

export interface PacketWay {
  /** In the address of the page: `10.244.1.11:8081`, `dropped`. */
  readonly key: string;
  /** `50 %` */
  readonly share: string;
  /** `10.244.1.11:8081`, `dropped` */
  readonly end: string;
  /** `pod-a, this node` */
  readonly place: string;
  /** Unset: the plan does not send it there. */
  readonly planned?: ChosenEndpoint;
  /** Unset: the kernel does not, or was not asked. */
  readonly outcome?: KernelOutcome;
  readonly differences: readonly WayDifference[];
}

/** `where`: the rule that chooses the endpoint, the one that masquerades, or the one that ends the way. */
export interface WayDifference {
  readonly where: 'choice' | 'masquerade' | 'end';
  readonly expected: string;
  readonly found: string;
}

/** As many steps as the kernel's random numbers have: what is nearer than this is the same share. */
const TOLERANCE = 1e-4;
const NOTHING = 'nothing of the kind';

export function waysOf(answer: PacketExplanation): readonly PacketWay[] {
  const { kernel, endpoints } = answer;
  const outcomes = kernel?.outcomes ?? [];
  const isAsked = kernel?.asPlanned !== undefined;
  // A client with an affinity entry goes to one endpoint, whatever their number.
  const byAffinity = outcomes.length > 0 && outcomes.every((each) => each.byAffinity === true);
  const byEnd = outcomesByEnd(outcomes);
  const left = new Set(outcomes);
  const ways: PacketWay[] = [];
  for (const planned of endpoints) {
    const same = byEnd.get(planned.address) ?? [];
    for (const outcome of same) left.delete(outcome);
    if (same.length === 0 && byAffinity) continue;
    const choice = isAsked && !byAffinity ? choiceDifference(planned, same) : [];
    if (same.length === 0) ways.push(wayTo(planned, undefined, choice));
    for (const outcome of same)
      ways.push(wayTo(planned, outcome, [...choice, ...masqueradeDifference(planned, outcome)]));
  }
  for (const outcome of left) ways.push(otherWay(answer, outcome));
  if (ways.length > 0) return distinct(ways);
  return [{ key: answer.verdict, share: '', end: answer.verdict, place: '', differences: [] }];
}

/** A service may have a thousand endpoints. */
function outcomesByEnd(
  outcomes: readonly KernelOutcome[],
): ReadonlyMap<string | undefined, readonly KernelOutcome[]> {
  const byEnd = new Map<string | undefined, KernelOutcome[]>();
  for (const outcome of outcomes) {
    const before = byEnd.get(outcome.to);
    if (before) before.push(outcome);
    else byEnd.set(outcome.to, [outcome]);
  }
  return byEnd;
}

function wayTo(
  planned: ChosenEndpoint,
  outcome: KernelOutcome | undefined,
  differences: readonly WayDifference[],
): PacketWay {
  return {
    key: planned.address,
    share: percent(outcome?.probability ?? planned.probability),
    end: planned.address,
    place: placeWords(planned),
    planned,
    ...(outcome && { outcome }),
    differences,
  };
}

/** One that no endpoint of the plan has. */
function otherWay(answer: PacketExplanation, outcome: KernelOutcome): PacketWay {
  const end = outcome.to ?? outcome.verdict;
  return {
    key: end,
    share: percent(outcome.probability),
    end,
    place: '',
    outcome,
    differences: isPlanned(answer, outcome) ? [] : [verdictDifference(answer, outcome)],
  };
}

function isPlanned({ verdict, kernel, unlisted }: PacketExplanation, outcome: KernelOutcome): boolean {
  if (kernel?.asPlanned === true) return true;
  if (outcome.verdict !== verdict) return false;
  return verdict !== 'forwarded' || (unlisted?.endpoints ?? 0) > 0;
}

function verdictDifference(answer: PacketExplanation, outcome: KernelOutcome): WayDifference {
  const isStopped = outcome.verdict === 'dropped' || outcome.verdict === 'rejected';
  const share = outcome.probability < 1 - TOLERANCE ? `${percent(outcome.probability)} ` : '';
  const found = `${share}${printOutcome(outcome)}`;
  const expected =
    outcome.verdict === 'forwarded' && answer.verdict === 'forwarded' ? NOTHING : printPlan(answer);
  return { where: isStopped ? 'end' : 'choice', expected, found };
}

/** How many endpoints a sentence names. */
const MOST_NAMED = 3;

function printPlan({ verdict, endpoints, unlisted }: PacketExplanation): string {
  if (verdict !== 'forwarded') return OUTCOME_WORDS[verdict];
  const named = endpoints.slice(0, MOST_NAMED).map(({ address }) => address);
  const others = endpoints.length - named.length + (unlisted?.endpoints ?? 0);
  return `forwarded to ${named.join(', ')}${others > 0 ? ` and ${others} more` : ''}`;
}

function choiceDifference(planned: ChosenEndpoint, same: readonly KernelOutcome[]): readonly WayDifference[] {
  const sum = same.reduce((total, { probability }) => total + probability, 0);
  if (Math.abs(sum - planned.probability) <= TOLERANCE) return [];
  const expected = `${percent(planned.probability)} forwarded to ${planned.address}`;
  return [{ where: 'choice', expected, found: same.length === 0 ? 'none' : percent(sum) }];
}

function masqueradeDifference(planned: ChosenEndpoint, outcome: KernelOutcome): readonly WayDifference[] {
  if (outcome.masquerade === planned.masquerade) return [];
  return [
    {
      where: 'masquerade',
      expected: masqueradeWords(planned),
      found: printMasquerade(outcome.masquerade),
    },
  ];
}

/** Two ways to one end differ in something else. */
function distinct(ways: readonly PacketWay[]): readonly PacketWay[] {
  const counts = new Map<string, number>();
  return ways.map((way) => {
    const count = (counts.get(way.key) ?? 0) + 1;
    counts.set(way.key, count);
    return count === 1 ? way : { ...way, key: `${way.key} ${count}` };
  });
}

/** The one that is asked for; or the first that is not as planned, best with what the kernel does instead. */
export function chosenWay(ways: readonly PacketWay[], key: string | undefined): PacketWay | undefined {
  const wrong = ways.filter(({ differences }) => differences.length > 0);
  return ways.find((way) => way.key === key) ?? wrong.find(({ outcome }) => outcome) ?? wrong[0] ?? ways[0];
}
