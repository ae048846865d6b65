/** A service's frontends, endpoints and changes in words: those of `explain`, on a terminal and on the page. */
import { hostPort } from '../model/ip.ts';
import type { SourceClass } from '../plan/types.ts';
import type { Colour } from '../text/paint.ts';
import { countOf, listed } from './finding.ts';
import type {
  ChangeRecord,
  EndpointName,
  EndpointRow,
  PacketExplanation,
  ServiceExplanation,
} from './types.ts';
import { KIND_WORDS, percent } from './words.ts';

/** `OK`, `2 PROBLEMS`, `NOT SERVED` */
export function serviceHeadline({ ports, findings }: ServiceExplanation): {
  readonly text: string;
  readonly colour: Colour;
} {
  if (ports.length === 0) return { text: 'NOT SERVED', colour: 'red' };
  const problems = findings.filter(({ severity }) => severity !== 'info').length;
  if (problems === 0) return { text: 'OK', colour: 'green' };
  return { text: countOf(problems, 'PROBLEM').toUpperCase(), colour: 'yellow' };
}

/** What a packet's class is decided by, on this node; two families may have two words for it. */
export function sourceLines(
  packets: readonly PacketExplanation[],
): readonly { readonly label: SourceClass; readonly text: string }[] {
  const whys = new Map<SourceClass, Set<string>>();
  for (const { source } of packets)
    whys.set(source.class, (whys.get(source.class) ?? new Set()).add(source.why));
  return [...whys].flatMap(([label, texts]) => [...texts].map((text) => ({ label, text })));
}

interface FrontendGroup {
  readonly frontend: { readonly label: string; readonly policy: string };
  readonly rows: readonly SourceFate[];
}

interface SourceFate {
  /** `pod`, or several: `node, outside` */
  readonly sources: string;
  readonly fate: string;
}

/** Sources with one fate stand on one line, and frontends that do the same for all stand together. */
export function groupByFrontend(packets: readonly PacketExplanation[]): readonly FrontendGroup[] {
  const byAddress = new Map<string, PacketExplanation[]>();
  for (const each of packets) {
    const key = `${each.frontend?.kind ?? ''} ${hostPort(each.packet.destination, each.packet.port)}`;
    const before = byAddress.get(key);
    if (before) before.push(each);
    else byAddress.set(key, [each]);
  }
  const groups = new Map<
    string,
    {
      readonly labels: string[];
      readonly policy: string;
      readonly kind: string;
      readonly rows: FrontendGroup['rows'];
    }
  >();
  for (const some of byAddress.values()) {
    const [first] = some;
    if (!first) continue;
    const rows = fatesOf(some);
    const kind = kindWords(first);
    const key = JSON.stringify([kind, rows]);
    const label = hostPort(first.packet.destination, first.packet.port);
    const before = groups.get(key);
    if (before) before.labels.push(label);
    else groups.set(key, { labels: [label], policy: first.frontend?.policy ?? '', kind, rows });
  }
  return [...groups.values()].map(({ labels, policy, kind, rows }) => ({
    frontend: { label: `${kind} ${listed(labels, 3)}`, policy },
    rows,
  }));
}

function kindWords({ frontend }: PacketExplanation): string {
  return frontend ? KIND_WORDS[frontend.kind] : 'address';
}

/** `cluster IP 10.96.0.20:80` */
export function frontendWords(answer: PacketExplanation): string {
  return `${kindWords(answer)} ${hostPort(answer.packet.destination, answer.packet.port)}`;
}

function fatesOf(packets: readonly PacketExplanation[]): FrontendGroup['rows'] {
  const byFate = new Map<string, Set<string>>();
  for (const packet of packets) {
    const fate = fateOf(packet);
    const sources = byFate.get(fate) ?? new Set();
    byFate.set(fate, sources.add(sourceWords(packet, packets)));
  }
  return [...byFate].map(([fate, sources]) => ({ sources: [...sources].join(', '), fate }));
}

/** Where two packets of a class differ, each has its address. */
export function sourceWords(
  { source, packet }: PacketExplanation,
  all: readonly PacketExplanation[],
): string {
  const same = all.filter((other) => other.source.class === source.class);
  return same.length > 1 ? `${source.class} (${packet.source})` : source.class;
}

const STOPPED: Readonly<Record<string, string>> = {
  'source-not-allowed': 'not in loadBalancerSourceRanges',
  'no-local-endpoints': 'no endpoint on this node',
};

/** `forwarded to 2 endpoints, 50 % each, client address kept` */
export function fateOf({ verdict, endpoints, findings, unlisted, deviation }: PacketExplanation): string {
  const remark = deviation === undefined ? '' : ` (${deviation})`;
  if (verdict === 'passed') return `not answered${remark}`;
  if (verdict !== 'forwarded') {
    const code = findings.find(({ severity }) => severity === 'error')?.code;
    return `${verdict}${code === undefined ? '' : `: ${STOPPED[code] ?? 'no usable endpoint'}`}${remark}`;
  }
  const count = endpoints.length + (unlisted?.endpoints ?? 0);
  const masqueraded = endpoints.filter(({ masquerade }) => masquerade).length;
  const how =
    masqueraded === 0
      ? 'client address kept'
      : masqueraded === endpoints.length
        ? 'masqueraded'
        : 'partly masqueraded';
  const [first] = endpoints;
  const to =
    count === 1 ? (first?.address ?? '') : `${countOf(count, 'endpoint')}, ${percent(1 / count)} each`;
  return `forwarded to ${to}, ${how}${remark}`;
}

/** What becomes of the packets in the kernel; `undefined` where none was asked. */
export function kernelWords(
  packets: readonly PacketExplanation[],
): { readonly text: string; readonly isWrong: boolean } | undefined {
  const walked = packets.flatMap(({ kernel }) => kernel ?? []);
  if (walked.length === 0) return undefined;
  const wrong = walked.filter(({ asPlanned }) => asPlanned === false).length;
  const unread = walked.filter(({ asPlanned }) => asPlanned === undefined).length;
  const text =
    wrong > 0
      ? `${wrong} of ${walked.length} packets are NOT treated as planned`
      : `${countOf(walked.length - unread, 'packet')} walked: as planned`;
  return { text, isWrong: wrong > 0 };
}

/** `198.51.100.1 → 203.0.113.10:80: …`, of a packet that the kernel treats otherwise. */
export function differenceWords({ packet, kernel }: PacketExplanation): readonly string[] {
  if (kernel?.asPlanned !== false) return [];
  const way = `${packet.source} → ${hostPort(packet.destination, packet.port)}`;
  return kernel.differences.map((difference) => `${way}: ${difference}`);
}

/** `pod-a, this node` */
export function placeWords({ pod, node, isLocal }: EndpointName): string {
  const place = isLocal ? 'this node' : (node ?? 'no known node');
  return pod === undefined ? place : `${pod}, ${place}`;
}

/** `ready, in cluster and local` */
export function endpointWords(row: EndpointRow): string {
  return row.leftOut ? `left out: ${row.leftOut.text}` : conditionOf(row);
}

function conditionOf({ ready, terminating, pools }: EndpointRow): string {
  const condition = ready ? 'ready' : terminating ? 'terminating' : 'not ready';
  return `${condition}, in ${pools.join(' and ')}`;
}

/** `terminating, serving` */
export function endpointState({ ready, serving, terminating }: EndpointRow): string {
  if (terminating) return serving ? 'terminating, serving' : 'terminating';
  return ready ? 'ready' : 'not ready';
}

/** `cluster, local`; `not used: not ready` */
export function usedFor({ pools, leftOut }: EndpointRow): string {
  return pools.length > 0 ? pools.join(', ') : `not used: ${leftOut?.text ?? ''}`;
}

/** `planned 3 ms later, committed 12 ms later` */
export function changeTimes({ seenAt, plannedAt, committedAt, refused }: ChangeRecord): string {
  const committed =
    committedAt === undefined
      ? 'not committed yet'
      : `committed ${Math.round(committedAt - seenAt)} ms later`;
  const end = refused === undefined ? committed : `refused: ${refused}`;
  return `planned ${Math.round(plannedAt - seenAt)} ms later, ${end}`;
}
