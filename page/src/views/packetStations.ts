/** One way of a packet as stations: the hooks of netfilter in their order, with what is planned and what the kernel does. */
import { listed } from '../../../src/explain/finding.ts';
import { stagesOf } from '../../../src/explain/kernelText.ts';
import { masqueradeWords, printFrontend } from '../../../src/explain/packetText.ts';
import type { KernelStep, PacketExplanation } from '../../../src/explain/types.ts';
import { OUTCOME_WORDS, percent } from '../../../src/explain/words.ts';
import type { PacketWay, WayDifference } from './packetWays.ts';

export type StationPoint = 'prerouting' | 'input' | 'forward' | 'output' | 'postrouting' | 'ipvs';

export interface Station {
  readonly id: string;
  readonly point: StationPoint;
  readonly planned: readonly string[];
  /** Rules that matched, by hook and table. */
  readonly stages: readonly (readonly KernelStep[])[];
  readonly differences: readonly WayDifference[];
  /** The packet goes no further. */
  readonly isEnd: boolean;
}

type PointOrder = readonly StationPoint[];
/** IPVS stands among the chains of input, and of output. What it takes goes on as the node's own. */
const FROM_ELSEWHERE: PointOrder = [
  'prerouting',
  'input',
  'ipvs',
  'input',
  'forward',
  'output',
  'postrouting',
];
/** What the node sends to itself comes in again. */
const FROM_NODE: PointOrder = ['output', 'ipvs', 'output', 'postrouting', 'prerouting', 'input'];

interface Slot {
  readonly point: StationPoint;
  readonly steps: readonly KernelStep[];
}

export function stationsOf(answer: PacketExplanation, way: PacketWay): readonly Station[] {
  const steps = way.outcome?.steps ?? [];
  const isStopped = isEnded(way.outcome?.verdict ?? answer.verdict);
  const slots = slotsOf(answer, steps, isStopped && steps.length > 0);
  const at = placesOf(answer, slots, way);
  return slots.map(({ point, steps: own }, index) => ({
    id: `${index}-${point}`,
    point,
    planned: plannedAt(answer, way, index, at),
    stages: stagesOf(own),
    differences: way.differences.filter(({ where }) => at[where] === index),
    isEnd: isStopped && index === at.end,
  }));
}

function isEnded(verdict: PacketExplanation['verdict']): boolean {
  return verdict === 'dropped' || verdict === 'rejected';
}

function pointOf({ hook }: KernelStep): StationPoint {
  const name = hook.split(' ').at(-1);
  return POINTS.find((point) => point === name) ?? 'ipvs';
}

const POINTS: readonly StationPoint[] = ['prerouting', 'input', 'forward', 'output', 'postrouting', 'ipvs'];

/** `isCut`: it ends with its last step. */
function slotsOf(answer: PacketExplanation, steps: readonly KernelStep[], isCut: boolean): readonly Slot[] {
  const { packet, mode, verdict } = answer;
  if (steps.length === 0 && isEnded(verdict)) return wayToEnd(answer).map((point) => ({ point, steps: [] }));
  const isOwn = packet.inInterface === undefined;
  const seen = new Set(steps.map(pointOf));
  const isBalanced = seen.has('ipvs') || (mode === 'ipvs' && verdict === 'forwarded');
  const expected = expectedPoints({ isOwn, isBalanced, isPassed: verdict === 'passed', seen });
  // IPVS sends on what the node sends as if the node had sent it again.
  const isTwice = (point: StationPoint): boolean => isOwn && isBalanced && point === 'output';
  const slots: Slot[] = [];
  let next = 0;
  for (const point of isOwn ? FROM_NODE : FROM_ELSEWHERE) {
    const first = next;
    while (next < steps.length && isAt(steps[next], point)) next++;
    if (next > first) slots.push({ point, steps: steps.slice(first, next) });
    else if (expected.has(point) && (isTwice(point) || !slots.some((slot) => slot.point === point)))
      slots.push({ point, steps: [] });
    if (isCut && next === steps.length) return slots;
  }
  // An order that is not known here is shown as it came.
  for (const step of steps.slice(next)) slots.push({ point: pointOf(step), steps: [step] });
  return slots;
}

function isAt(step: KernelStep | undefined, point: StationPoint): boolean {
  return step !== undefined && pointOf(step) === point;
}

/** Hooks that the packet passes, whether a rule matches there or not. */
function expectedPoints({
  isOwn,
  isBalanced,
  isPassed,
  seen,
}: {
  readonly isOwn: boolean;
  readonly isBalanced: boolean;
  readonly isPassed: boolean;
  readonly seen: ReadonlySet<StationPoint>;
}): ReadonlySet<StationPoint> {
  const onward: PointOrder = isBalanced ? ['output', 'ipvs', 'postrouting'] : ['output', 'postrouting'];
  if (isOwn) return new Set(seen.has('input') ? [...onward, 'prerouting'] : onward);
  // IPVS may choose an endpoint that is this node itself.
  if (seen.has('ipvs') && !seen.has('output') && !seen.has('postrouting'))
    return new Set(['prerouting', 'input', 'ipvs']);
  if (isBalanced) return new Set(['prerouting', 'input', 'ipvs', 'output', 'postrouting']);
  if (seen.has('input')) return new Set(['prerouting', 'input']);
  // Where nobody answers, only routing knows whether it is for this node.
  if (isPassed && !seen.has('forward') && !seen.has('postrouting')) return new Set(['prerouting']);
  return new Set(['prerouting', 'forward', 'postrouting']);
}

/** Indexes of stations. */
type Places = Readonly<Record<WayDifference['where'], number>>;

function placesOf(answer: PacketExplanation, slots: readonly Slot[], way: PacketWay): Places {
  const balancer = slots.findIndex(({ point }) => point === 'ipvs');
  const choice = Math.max(0, balancer);
  const postrouting = slots.findLastIndex(({ point }) => point === 'postrouting');
  const masquerade = postrouting < 0 ? slots.length - 1 : postrouting;
  const lastSeen = slots.findLastIndex(({ steps }) => steps.length > 0);
  if (way.outcome && isEnded(way.outcome.verdict)) return { choice, masquerade, end: Math.max(0, lastSeen) };
  const endPoint = wayToEnd(answer).at(-1);
  const end = slots.findLastIndex(({ point }) => point === endPoint);
  return { choice, masquerade, end: Math.max(0, end) };
}

/** Where a mode stops packets: iptables can reject and drop in the table filter alone, and IPVS rejects by itself. */
function wayToEnd({ mode, packet, verdict, frontend }: PacketExplanation): PointOrder {
  const isOwn = packet.inInterface === undefined;
  const isByIpvs = mode === 'ipvs' && verdict === 'rejected' && frontend !== undefined;
  if (isOwn && mode === 'ipvs' && frontend)
    return isByIpvs ? ['output', 'ipvs'] : ['output', 'ipvs', 'output'];
  if (isOwn) return ['output'];
  if (mode === 'nftables') return ['prerouting'];
  if (mode === 'ipvs') return isByIpvs ? ['prerouting', 'input', 'ipvs'] : ['prerouting', 'input'];
  const isForNode = !frontend || frontend.kind === 'nodePort';
  return ['prerouting', isForNode ? 'input' : 'forward'];
}

/** How many endpoints a line names. */
const MOST_NAMED = 3;

/** In the words of `explain`. */
function plannedAt(answer: PacketExplanation, way: PacketWay, index: number, at: Places): readonly string[] {
  const { frontend, verdict, reason } = answer;
  const lines: string[] = [];
  if (index === 0 && frontend) lines.push(printFrontend(frontend));
  if (index === 0 && verdict === 'passed') lines.push(reason);
  if (index === at.end && isEnded(verdict)) lines.push(`${OUTCOME_WORDS[verdict]}: ${reason}`);
  if (verdict !== 'forwarded') return lines;
  const { planned } = way;
  if (index === at.choice)
    lines.push(
      planned
        ? `${percent(planned.probability)} forwarded to ${planned.address}`
        : answer.endpoints.length > 0
          ? `forwarded to ${listed(
              answer.endpoints.map(({ address }) => address),
              MOST_NAMED,
            )}`
          : reason,
    );
  if (index === at.masquerade && planned) lines.push(masqueradeWords(planned));
  return lines;
}
