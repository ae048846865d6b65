/** The answer about a packet, for people: the verdict first, then why, then the kernel's word. */
import type { Colour } from '../text/paint.ts';
import {
  deviationText,
  endpointTable,
  factsOf,
  headlineOf,
  ifAllowedFact,
  leftOutTable,
  titleOf,
} from './packetText.ts';
import { putKernel } from './printKernel.ts';
import { type PrintStyle, Sheet } from './sheet.ts';
import type { Finding, PacketExplanation } from './types.ts';

const MARKS: Readonly<Record<Finding['severity'], string>> = { error: '✗', warning: '!', info: '→' };
const MARK_COLOURS: Readonly<Record<Finding['severity'], Colour>> = {
  error: 'red',
  warning: 'yellow',
  info: 'cyan',
};

export function printPacket(answer: PacketExplanation, style: PrintStyle): string {
  const sheet = new Sheet(style);
  putPacket(sheet, answer, style.now);
  return sheet.text;
}

function putPacket(sheet: Sheet, answer: PacketExplanation, now: number | undefined): void {
  const { isWide } = sheet;
  const headline = headlineOf(answer);
  sheet.heading(titleOf(answer), headline.text, headline.colour);
  for (const { label, text, aside } of factsOf(answer, isWide)) sheet.row(label, text, { aside });
  if (answer.verdict === 'passed') sheet.row('→', answer.reason, { width: 2 });
  putTable(sheet, 'endpoints', endpointTable(answer, isWide), ['bold', undefined, undefined, 'dim']);
  for (const finding of answer.findings) putFinding(sheet, finding, isWide);
  const deviation = deviationText(answer);
  if (deviation !== undefined) sheet.row('!', deviation, { width: 2, labelColour: 'yellow' });
  putTable(sheet, 'left out', leftOutTable(answer, isWide), [undefined, undefined, 'yellow']);
  if (answer.kernel) putKernel(sheet, answer.kernel, now);
  const allowed = ifAllowedFact(answer);
  if (allowed) sheet.row(allowed.label, allowed.text);
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

const INDENT = 4;

function putTable(
  sheet: Sheet,
  label: string,
  table: ReturnType<typeof endpointTable>,
  colours: readonly (Colour | undefined)[],
): void {
  if (!table) return;
  sheet.row(label, table.text);
  sheet.table(table.rows, INDENT, colours);
  if (table.more !== undefined) sheet.row('', table.more, { indent: INDENT, width: 0 });
}
