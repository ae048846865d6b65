/** The differences for people, as diffs look: what is of the first with `-`, what is of the second with `+`. */
import type { Paint } from '../text/paint.ts';
import { printableLine } from '../text/printable.ts';
import type { DiffReport, DiffSide, FamilyDiff, MeaningDiff, RuleDiff, ServiceDiff } from './types.ts';

interface PrintOptions {
  readonly paint: Paint;
  /** Everything, however long. */
  readonly isWide: boolean;
}

/** Of one service, where not everything is wanted. */
const MOST_LINES = 12;
const MOST_SERVICES = 50;

export function* printDiff(report: DiffReport, options: PrintOptions): Generator<string> {
  const { paint } = options;
  const { from, to } = report;
  yield `${paint('bold', printableLine(`--- ${sideName(from)}`))}\n`;
  yield `${paint('bold', printableLine(`+++ ${sideName(to)}`))}\n`;
  for (const family of report.families) yield* printFamily(family, report, options);
  for (const note of report.notes) yield `${paint('yellow', printableLine(`! ${note}`))}\n`;
}

function sideName({ kind, name, node, mode }: DiffSide): string {
  return kind === 'kernel' ? `${name} of ${node}, ${mode}` : `${name}, for ${node}, ${mode} mode`;
}

function* printFamily(diff: FamilyDiff, report: DiffReport, options: PrintOptions): Generator<string> {
  const { paint, isWide } = options;
  yield `${paint('cyan', `@@ ${diff.family}: ${summary(diff)} @@`)}\n`;
  yield* printRules('', diff.shared, options);
  const shown = isWide ? diff.services : diff.services.slice(0, MOST_SERVICES);
  for (const service of shown) yield* printService(service, report, options);
  const more = diff.services.length - shown.length;
  if (more > 0) yield `… and ${more} more services; --output wide shows all\n`;
  for (const note of diff.meaning.notes)
    yield `${paint('yellow', printableLine(`! not evaluated: ${note}`))}\n`;
}

function summary({ isSame, rules, services, meaning }: FamilyDiff): string {
  const packets = `${meaning.packets} packets asked${meaning.isSampled ? ', a sample' : ''}`;
  if (isSame && rules.isCompared) return `no difference; ${packets}`;
  const counts = [
    ...(rules.added > 0 ? [`+${rules.added}`] : []),
    ...(rules.removed > 0 ? [`-${rules.removed}`] : []),
    ...(rules.changed > 0 ? [`~${rules.changed}`] : []),
  ].join(' ');
  const text = rules.isCompared ? `rules ${counts || 'the same'}` : 'rules of two modes are not compared';
  const where = `${services.length} service${services.length === 1 ? '' : 's'}`;
  const goes = meaning.different === 1 ? 'packet goes' : 'packets go';
  const meant =
    meaning.different === 0
      ? `same meaning for ${meaning.packets} packets${meaning.isSampled ? ' (a sample)' : ''}`
      : `${meaning.different} ${goes} elsewhere, of ${packets}`;
  return `${text}; ${where}; ${meant}`;
}

function* printService(diff: ServiceDiff, report: DiffReport, options: PrintOptions): Generator<string> {
  const { paint } = options;
  const same = diff.meaning.length === 0 ? paint('dim', ' (same meaning)') : '';
  yield `${paint('bold', printableLine(diff.service))}${same}\n`;
  for (const text of diff.changes) yield `  ${paint('yellow', printableLine(text))}\n`;
  yield* printRules('  ', diff.rules, options);
  yield* printMeaning(diff.meaning, report, options);
}

const COLOURS = { '+': 'green', '-': 'red', '~': 'yellow' } as const;

function* printRules(
  indent: string,
  rules: readonly RuleDiff[],
  { paint, isWide }: PrintOptions,
): Generator<string> {
  const shown = isWide ? rules : rules.slice(0, MOST_LINES);
  for (const { sign, object, text } of shown)
    yield `${indent}${paint(COLOURS[sign], printableLine(`${sign} ${object}${text === '' ? '' : `: ${text}`}`))}\n`;
  if (rules.length > shown.length) yield `${indent}… and ${rules.length - shown.length} more rules\n`;
}

function* printMeaning(
  meaning: readonly MeaningDiff[],
  { from, to }: DiffReport,
  { paint, isWide }: PrintOptions,
): Generator<string> {
  const groups = isWide ? meaning : together(meaning);
  const shown = isWide ? groups : groups.slice(0, MOST_LINES);
  for (const { packet, from: before, to: after } of shown) {
    yield `  ${printableLine(packet)}\n`;
    yield `    ${paint('red', printableLine(`- ${from.kind}: ${before}`))}\n`;
    yield `    ${paint('green', printableLine(`+ ${to.kind}: ${after}`))}\n`;
  }
  if (groups.length > shown.length)
    yield `  … and ${groups.length - shown.length} more differences in meaning\n`;
}

const ARROW = ' → ';
/** Sources that a line names. */
const MOST_SOURCES = 4;

/** Packets to one address that differ in the same way are one line. */
function together(meaning: readonly MeaningDiff[]): readonly Omit<MeaningDiff, 'servicePort'>[] {
  const groups = new Map<string, { readonly first: MeaningDiff; readonly sources: string[] }>();
  for (const each of meaning) {
    const [source = '', destination = ''] = each.packet.split(ARROW);
    const key = [destination, each.from, each.to].join('\n');
    const group = groups.get(key);
    if (group) group.sources.push(source);
    else groups.set(key, { first: each, sources: [source] });
  }
  return [...groups.values()].map(({ first, sources }) => {
    const more = sources.length > MOST_SOURCES ? ` and ${sources.length - MOST_SOURCES} more` : '';
    const named = `${sources.slice(0, MOST_SOURCES).join(', ')}${more}`;
    return { ...first, packet: `${named}${ARROW}${first.packet.split(ARROW)[1] ?? ''}` };
  });
}
