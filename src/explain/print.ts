/** The answer about a packet, for people: the verdict first, then why, then the kernel's word. */
import { hostPort } from '../model/ip.ts';
import type { Colour } from '../text/paint.ts';
import { countOf, group, listed } from './finding.ts';
import { percent } from './kernel.ts';
import { KIND_WORDS } from './nearMiss.ts';
import { putKernel } from './printKernel.ts';
import { placeOf } from './serviceWords.ts';
import { type PrintStyle, Sheet } from './sheet.ts';
import type {
  ChosenEndpoint,
  Finding,
  FrontendName,
  LeftOutEndpoint,
  PacketExplanation,
  Verdict,
} from './types.ts';

const VERDICT_WORDS: Readonly<Record<Verdict, string>> = {
  forwarded: 'FORWARDED',
  rejected: 'REJECTED',
  dropped: 'DROPPED',
  passed: 'NOT A SERVICE',
};
const VERDICT_COLOURS: Readonly<Record<Verdict, Colour>> = {
  forwarded: 'green',
  rejected: 'red',
  dropped: 'red',
  passed: 'yellow',
};
const MARKS: Readonly<Record<Finding['severity'], string>> = { error: '✗', warning: '!', info: '→' };
const MARK_COLOURS: Readonly<Record<Finding['severity'], Colour>> = {
  error: 'red',
  warning: 'yellow',
  info: 'cyan',
};

export function printPacket(answer: PacketExplanation, style: PrintStyle): string {
  const sheet = new Sheet(style);
  putPacket(sheet, answer, style);
  return sheet.text;
}

function putPacket(sheet: Sheet, answer: PacketExplanation, style: PrintStyle): void {
  const { verdict, packet, source, frontend, findings } = answer;
  const headline = headlineOf(answer);
  sheet.heading(`${printWay(answer)} on ${answer.node}`, headline.text, headline.colour);
  if (frontend) sheet.row('frontend', printFrontend(frontend), { aside: frontend.policy });
  if (frontend && frontend.others.length > 0) sheet.row('also at', listed(frontend.others, 4));
  const via = packet.inInterface === undefined ? '' : `, in through ${packet.inInterface}`;
  sheet.row('source', `${source.class} (${source.why})${style.isWide === true ? via : ''}`);
  if (answer.affinitySeconds !== undefined)
    sheet.row('affinity', `a client stays with its endpoint for ${group(answer.affinitySeconds)} s`);
  if (verdict === 'passed') sheet.row('→', answer.reason, { width: 2 });
  putEndpoints(sheet, answer.endpoints, answer.unlisted?.endpoints ?? 0);
  for (const finding of findings) putFinding(sheet, finding, sheet.isWide);
  if (answer.deviation !== undefined && !(verdict === 'passed' && answer.deviation === answer.reason))
    sheet.row('!', answer.deviation, { width: 2, labelColour: 'yellow' });
  const isStopped = findings.some(({ code }) => code === 'source-not-allowed');
  if (!isStopped || sheet.isWide) putLeftOut(sheet, answer.leftOut, answer.unlisted?.leftOut ?? 0);
  if (answer.kernel) putKernel(sheet, answer.kernel, style.now);
  if (answer.ifAllowed) putIfAllowed(sheet, answer.ifAllowed);
}

/** What really becomes of it stands first: the kernel decides, whatever was planned. */
function headlineOf({ verdict, kernel }: PacketExplanation): {
  readonly text: string;
  readonly colour: Colour;
} {
  const planned = VERDICT_WORDS[verdict];
  if (kernel?.asPlanned !== false) return { text: planned, colour: VERDICT_COLOURS[verdict] };
  const [one, ...others] = new Set(kernel.outcomes.map((outcome) => outcome.verdict));
  if (one === undefined || one === verdict || others.length > 0)
    return { text: `${planned}, BUT NOT AS PLANNED`, colour: 'red' };
  return { text: `${VERDICT_WORDS[one]}, PLANNED: ${planned}`, colour: 'red' };
}

function printWay({ packet }: PacketExplanation): string {
  const { source, sourceName, destination, port, protocol } = packet;
  const name = sourceName === undefined ? '' : ` (${sourceName})`;
  return `${source}${name} → ${hostPort(destination, port)}/${protocol}`;
}

export function printFrontend({ kind, port, servicePort }: FrontendName): string {
  const name = servicePort.slice(0, servicePort.lastIndexOf('/'));
  return kind === 'nodePort' ? `node port ${port} of ${name}` : `${KIND_WORDS[kind]} of ${name}`;
}

/** What follows from an error is the verdict, which stands above. */
export function putFinding(sheet: Sheet, finding: Finding, isComplete: boolean): void {
  const { severity, text, evidence, consequence, cure, reference } = finding;
  const aside = reference?.where;
  sheet.row(MARKS[severity], text, { width: 2, labelColour: MARK_COLOURS[severity], aside });
  const below = { indent: 4, width: 13, labelColour: 'dim' } as const;
  if (evidence !== undefined && evidence !== '') sheet.row('evidence', evidence, below);
  if (consequence !== undefined && (isComplete || severity !== 'error'))
    sheet.row('consequence', consequence, below);
  if (cure !== undefined) sheet.row('cure', cure, { ...below, isWhole: true });
}

function putEndpoints(sheet: Sheet, endpoints: readonly ChosenEndpoint[], unlisted: number): void {
  if (endpoints.length === 0) return;
  const shown = sheet.isWide ? endpoints : endpoints.slice(0, MOST_SHOWN);
  const hidden = endpoints.length - shown.length + unlisted;
  const masquerades = new Set(endpoints.map(masqueradeWords));
  const [common] = masquerades.size === 1 ? masquerades : [];
  const count = countOf(endpoints.length + unlisted, 'endpoint');
  sheet.row('endpoints', common === undefined ? count : `${count}, ${common}`);
  sheet.table(
    shown.map((each) => [
      percent(each.probability),
      each.address,
      placeOf(each),
      ...(common === undefined ? [masqueradeWords(each)] : []),
    ]),
    INDENT,
    ['bold', undefined, undefined, 'dim'],
  );
  if (hidden > 0) sheet.row('', `and ${group(hidden)} more`, { indent: INDENT, width: 0 });
}

const INDENT = 4;
const MOST_SHOWN = 10;

function masqueradeWords({ masquerade, masqueradeReason }: ChosenEndpoint): string {
  const what = masquerade ? 'masqueraded' : 'client address kept';
  return masqueradeReason === '' ? what : `${what}: ${masqueradeReason}`;
}

function putLeftOut(sheet: Sheet, leftOut: readonly LeftOutEndpoint[], unlisted: number): void {
  if (leftOut.length === 0) return;
  const shown = sheet.isWide ? leftOut : leftOut.slice(0, MOST_SHOWN);
  const hidden = leftOut.length - shown.length + unlisted;
  sheet.row('left out', countOf(leftOut.length + unlisted, 'endpoint'));
  sheet.table(
    shown.map((each) => [each.address, placeOf(each), each.text]),
    INDENT,
    [undefined, undefined, 'yellow'],
  );
  if (hidden > 0) sheet.row('', `and ${group(hidden)} more`, { indent: INDENT, width: 0 });
}

function putIfAllowed(
  sheet: Sheet,
  { condition, endpoints }: Required<PacketExplanation>['ifAllowed'],
): void {
  const [first] = endpoints;
  if (!first) return;
  const more = endpoints.length > 1 ? `, or ${countOf(endpoints.length - 1, 'other endpoint')}` : '';
  const kept = first.masquerade ? 'masqueraded' : 'client address kept';
  sheet.row(condition, `${first.address} (${placeOf(first)})${more}, ${kept}`);
}
