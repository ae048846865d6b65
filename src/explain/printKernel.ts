/** The kernel's word on a packet, for people. */
import {
  BY_AFFINITY,
  kernelTitle,
  NO_RULE,
  outcomeTitle,
  foundWords,
  remarksOf,
  stagesOf,
} from './kernelText.ts';
import type { Sheet } from './sheet.ts';
import type { KernelExplanation, KernelOutcome, KernelStep } from './types.ts';

export function putKernel(sheet: Sheet, kernel: KernelExplanation, now: number | undefined): void {
  const { asPlanned, differences, outcomes, notes } = kernel;
  const colour = asPlanned === false ? 'red' : undefined;
  sheet.row('', kernelTitle(kernel, now), { width: 0, colour });
  for (const difference of differences)
    sheet.row('✗', difference, { width: 2, colour: 'red', labelColour: 'red' });
  for (const outcome of shownOutcomes(sheet, outcomes)) putOutcome(sheet, outcome, outcomes.length);
  for (const note of notes) sheet.row('note', note);
}

/** Ways that differ in their last rule alone are shown once. */
function shownOutcomes(sheet: Sheet, outcomes: readonly KernelOutcome[]): readonly KernelOutcome[] {
  if (sheet.isWide) return outcomes;
  const forwarded = outcomes.find(({ verdict }) => verdict === 'forwarded');
  return [...(forwarded ? [forwarded] : []), ...outcomes.filter(({ verdict }) => verdict !== 'forwarded')];
}

function putOutcome(sheet: Sheet, outcome: KernelOutcome, count: number): void {
  if (sheet.isWide || count > 1) {
    const others = sheet.isWide ? '' : outcome.verdict === 'forwarded' ? ', for example' : '';
    sheet.row('', `${outcomeTitle(outcome)}${others}`);
  }
  if (outcome.byAffinity === true) sheet.row('', BY_AFFINITY);
  if (outcome.steps.length === 0) sheet.row('', NO_RULE);
  if (sheet.isWide) for (const step of outcome.steps) sheet.row('', printStep(step), { width: 13 });
  else for (const stage of stagesOf(outcome.steps)) sheet.row('', printStage(stage));
}

function printStep(step: KernelStep): string {
  return `${step.hook}: ${step.table} ${step.chain}: ${step.rule}${behind(step)}${remarks(step)}`;
}

/** `nat prerouting: PREROUTING → KUBE-SERVICES → KUBE-SEP-…: DNAT … (12 packets)` */
function printStage(stage: readonly KernelStep[]): string {
  const [first] = stage;
  const last = stage.at(-1);
  if (!first || !last) return '';
  const names = stage.map(({ chain }) => chain).filter((chain, index, all) => chain !== all[index - 1]);
  const point = first.hook.split(' ').at(-1) ?? '';
  // Where the way begins is in the hook's name already.
  const isBase = names.length > 1 && names[0]?.toLowerCase() === point;
  const chains = isBase ? names.slice(1) : names;
  const foreign = stage.find(({ isForeign }) => isForeign === true);
  const marked = foreign && foreign !== last ? `; ${foreign.chain}: ${foreign.rule}${remarks(foreign)}` : '';
  return `${first.hook}: ${chains.join(' → ')}${endOf(last.rule)}${behind(last)}${remarks(last)}${marked}`;
}

function behind(step: KernelStep): string {
  return step.found.length === 0 ? '' : ` ${foundWords(step)}`;
}

function remarks(step: KernelStep): string {
  const all = remarksOf(step);
  return all.length === 0 ? '' : ` (${all.join(', ')})`;
}

/** Targets of iptables after which no rule of the chain follows; another one is a chain, and the packet came back from it. */
const FINAL = /^(?:ACCEPT|DROP|REJECT|RETURN|QUEUE|NFQUEUE|DNAT|SNAT|MASQUERADE|REDIRECT|NETMAP|TPROXY)\b/;

/** Of a rule of iptables, what it does; of others, all. */
function endOf(rule: string): string {
  if (!rule.startsWith('-')) return `: ${rule}`;
  const [, target] = /(?:^| )-[jg] (.*)$/s.exec(rule) ?? [];
  if (target === undefined) return ' → return';
  return FINAL.test(target) ? `: ${target}` : ` → ${target} → return`;
}
