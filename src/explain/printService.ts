/** The answer about a service, for people: what is wrong, then who gets where, then its endpoints and changes. */
import { hostPort } from '../model/ip.ts';
import type { Colour } from '../text/paint.ts';
import { printRfc3339 } from '../text/time.ts';
import { countOf, group, listed } from './finding.ts';
import { percent } from './kernel.ts';
import { KIND_WORDS } from './nearMiss.ts';
import { putFinding } from './print.ts';
import { type PrintStyle, Sheet } from './sheet.ts';
import type {
  ChangeRecord,
  EndpointRow,
  PacketExplanation,
  ServiceExplanation,
  ServicePortExplanation,
  ServiceState,
} from './types.ts';

const STATE_COLOURS: Readonly<Record<ServiceState, Colour>> = {
  ok: 'green',
  'partly served': 'yellow',
  'no endpoints': 'red',
  'not served': 'red',
  refused: 'red',
};

export function printService(answer: ServiceExplanation, style: PrintStyle): string {
  const sheet = new Sheet(style);
  const { service, type, node, mode, findings, ports, changes } = answer;
  const problems = findings.filter(({ severity }) => severity !== 'info').length;
  const word =
    ports.length === 0 ? 'NOT SERVED' : problems === 0 ? 'OK' : countOf(problems, 'PROBLEM').toUpperCase();
  const colour = ports.length === 0 ? 'red' : problems === 0 ? 'green' : 'yellow';
  sheet.heading(`${service}${type === undefined ? '' : ` (${type})`} on ${node}, ${mode} mode`, word, colour);
  for (const finding of findings) putFinding(sheet, finding, true);
  putSources(sheet, ports);
  for (const port of ports) putPort(sheet, port);
  putChanges(sheet, changes);
  return sheet.text;
}

/** What the classes are, on this node. */
function putSources(sheet: Sheet, ports: readonly ServicePortExplanation[]): void {
  const whys = new Map(
    ports.flatMap(({ packets }) => packets.map(({ source }) => [source.class, source.why] as const)),
  );
  for (const [index, [sourceClass, why]] of [...whys].entries())
    sheet.row(index === 0 ? 'sources' : '', `${sourceClass}: ${why}`);
}

function putPort(sheet: Sheet, port: ServicePortExplanation): void {
  const { servicePort, family, state, packets, endpoints, moreFrontends = 0 } = port;
  sheet.blank();
  sheet.heading(`${servicePort}, ${family}`, state, STATE_COLOURS[state]);
  for (const { frontend, rows } of groupByFrontend(packets)) {
    sheet.row(frontend.label, frontend.policy, { width: 34, labelColour: 'bold' });
    sheet.table(
      rows.map(({ sources, fate }) => [sources, fate]),
      INDENT,
      ['dim', undefined],
    );
  }
  if (moreFrontends > 0)
    sheet.row('', `and ${countOf(moreFrontends, 'more frontend')}, with the same routes`, { width: 0 });
  putKernel(sheet, packets);
  putEndpoints(sheet, endpoints);
}

const INDENT = 4;

interface FrontendGroup {
  readonly frontend: { readonly label: string; readonly policy: string };
  readonly rows: readonly { readonly sources: string; readonly fate: string }[];
}

/** Sources with one fate stand on one line, and frontends that do the same for all stand together. */
function groupByFrontend(packets: readonly PacketExplanation[]): readonly FrontendGroup[] {
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
    const kind = first.frontend ? KIND_WORDS[first.frontend.kind] : 'address';
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
function sourceWords({ source, packet }: PacketExplanation, all: readonly PacketExplanation[]): string {
  const same = all.filter((other) => other.source.class === source.class);
  return same.length > 1 ? `${source.class} (${packet.source})` : source.class;
}

const STOPPED: Readonly<Record<string, string>> = {
  'source-not-allowed': 'not in loadBalancerSourceRanges',
  'no-local-endpoints': 'no endpoint on this node',
};

function fateOf({ verdict, endpoints, findings, unlisted, deviation }: PacketExplanation): string {
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

function putKernel(sheet: Sheet, packets: readonly PacketExplanation[]): void {
  const walked = packets.flatMap(({ kernel }) => kernel ?? []);
  if (walked.length === 0) return;
  const wrong = packets.filter(({ kernel }) => kernel?.asPlanned === false);
  const unread = walked.filter(({ asPlanned }) => asPlanned === undefined);
  const state =
    wrong.length > 0
      ? `${wrong.length} of ${walked.length} packets are NOT treated as planned`
      : `${countOf(walked.length - unread.length, 'packet')} walked: as planned`;
  sheet.row('kernel', state, { colour: wrong.length > 0 ? 'red' : undefined });
  for (const { packet, kernel } of wrong)
    for (const difference of kernel?.differences ?? [])
      sheet.row('✗', `${packet.source} → ${hostPort(packet.destination, packet.port)}: ${difference}`, {
        width: 2,
        labelColour: 'red',
      });
  for (const note of new Set(walked.flatMap(({ notes }) => notes))) sheet.row('note', note);
}

const MOST_SHOWN = 20;

function putEndpoints(sheet: Sheet, endpoints: readonly EndpointRow[]): void {
  sheet.row('endpoints', endpoints.length === 0 ? 'none' : countOf(endpoints.length, 'endpoint'));
  const shown = sheet.isWide ? endpoints : endpoints.slice(0, MOST_SHOWN);
  sheet.table(shown.map(endpointCells), INDENT);
  if (endpoints.length > shown.length)
    sheet.row('', `and ${group(endpoints.length - shown.length)} more`, { indent: INDENT, width: 0 });
}

function endpointCells(row: EndpointRow): readonly string[] {
  const place = row.isLocal ? 'this node' : (row.node ?? 'no known node');
  const name = row.pod === undefined ? place : `${row.pod}, ${place}`;
  const flows = row.flows === undefined ? [] : [countOf(row.flows, 'flow')];
  const state = row.leftOut ? `left out: ${row.leftOut.text}` : conditionOf(row);
  return [row.address, name, [state, ...flows].join(', ')];
}

function conditionOf({ ready, terminating, pools }: EndpointRow): string {
  const condition = ready ? 'ready' : terminating ? 'terminating' : 'not ready';
  return `${condition}, in ${pools.join(' and ')}`;
}

const MOST_CHANGES = 5;

function putChanges(sheet: Sheet, changes: readonly ChangeRecord[]): void {
  if (changes.length === 0) return;
  sheet.blank();
  sheet.heading('last changes', '', 'dim');
  for (const { seenAt, plannedAt, committedAt, causes, refused, family } of changes.slice(0, MOST_CHANGES)) {
    const committed =
      committedAt === undefined
        ? 'not committed yet'
        : `committed ${Math.round(committedAt - seenAt)} ms later`;
    const end = refused === undefined ? committed : `refused: ${refused}`;
    sheet.row(
      printRfc3339(seenAt),
      `${family}: ${listed(causes, 2)}; planned ${Math.round(plannedAt - seenAt)} ms later, ${end}`,
      { width: 26 },
    );
  }
}
