/** The answer about a service, for people: what is wrong, then who gets where, then its endpoints and changes. */
import type { Colour } from '../text/paint.ts';
import { printRfc3339 } from '../text/time.ts';
import { countOf, group, listed } from './finding.ts';
import { putFinding } from './print.ts';
import {
  changeTimes,
  differenceWords,
  endpointWords,
  groupByFrontend,
  kernelWords,
  placeWords,
  serviceHeadline,
  sourceLines,
} from './serviceWords.ts';
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
  const { text, colour } = serviceHeadline(answer);
  sheet.heading(`${service}${type === undefined ? '' : ` (${type})`} on ${node}, ${mode} mode`, text, colour);
  for (const finding of findings) putFinding(sheet, finding, true);
  putSources(sheet, ports);
  for (const port of ports) putPort(sheet, port);
  putChanges(sheet, changes);
  return sheet.text;
}

/** What the classes are, on this node. */
function putSources(sheet: Sheet, ports: readonly ServicePortExplanation[]): void {
  const lines = sourceLines(ports.flatMap(({ packets }) => packets));
  for (const [index, { label, text }] of lines.entries())
    sheet.row(index === 0 ? 'sources' : '', `${label}: ${text}`);
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

function putKernel(sheet: Sheet, packets: readonly PacketExplanation[]): void {
  const kernel = kernelWords(packets);
  if (!kernel) return;
  sheet.row('kernel', kernel.text, { colour: kernel.isWrong ? 'red' : undefined });
  for (const difference of packets.flatMap(differenceWords))
    sheet.row('✗', difference, { width: 2, labelColour: 'red' });
  for (const note of new Set(packets.flatMap((each) => each.kernel?.notes ?? []))) sheet.row('note', note);
}

const MOST_SHOWN = 20;

function putEndpoints(sheet: Sheet, endpoints: readonly EndpointRow[]): void {
  sheet.row('endpoints', endpoints.length === 0 ? 'none' : countOf(endpoints.length, 'endpoint'));
  const shown = sheet.isWide ? endpoints : endpoints.slice(0, MOST_SHOWN);
  sheet.table(
    shown.map((row) => [row.address, placeWords(row), endpointWords(row)]),
    INDENT,
  );
  if (endpoints.length > shown.length)
    sheet.row('', `and ${group(endpoints.length - shown.length)} more`, { indent: INDENT, width: 0 });
}

const MOST_CHANGES = 5;

function putChanges(sheet: Sheet, changes: readonly ChangeRecord[]): void {
  if (changes.length === 0) return;
  sheet.blank();
  sheet.heading('last changes', '', 'dim');
  for (const change of changes.slice(0, MOST_CHANGES)) {
    const { seenAt, causes, family } = change;
    sheet.row(printRfc3339(seenAt), `${family}: ${listed(causes, 2)}; ${changeTimes(change)}`, { width: 26 });
  }
}
