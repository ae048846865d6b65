/** The kernel's word on a packet, for people. */
import { countOf } from './finding.ts';
import { percent, printOutcome } from './kernel.ts';
import type { Sheet } from './sheet.ts';
import type { KernelExplanation, KernelOutcome, KernelStep } from './types.ts';

export function putKernel(sheet: Sheet, kernel: KernelExplanation, now: number | undefined): void {
  const { mode, asPlanned, differences, outcomes, notes } = kernel;
  const state = asPlanned === undefined ? 'not evaluated' : asPlanned ? 'as planned' : 'NOT as planned';
  const age =
    now === undefined ? `in ${printMs(kernel.readMs)}` : `${printMs(Math.max(0, now - kernel.readAt))} ago`;
  const colour = asPlanned === false ? 'red' : undefined;
  sheet.row('', `in the kernel (${mode}, read ${age}: ${state})`, { width: 0, colour });
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
    sheet.row('', `${percent(outcome.probability)} ${printOutcome(outcome)}${others}`);
  }
  if (outcome.byAffinity === true) sheet.row('', 'where its affinity entry sends this client');
  if (outcome.steps.length === 0) sheet.row('', 'no rule matches');
  if (sheet.isWide) for (const step of outcome.steps) sheet.row('', printStep(step), { width: 13 });
  else for (const stage of stagesOf(outcome.steps)) sheet.row('', stage);
}

function printStep(step: KernelStep): string {
  const found = step.found.length === 0 ? '' : ` [${step.found.join('; ')}]`;
  return `${step.hook}: ${step.table} ${step.chain}: ${step.rule}${found}${remarks(step)}`;
}

/** `nat prerouting: PREROUTING → KUBE-SERVICES → KUBE-SEP-…: DNAT … (12 packets)` */
function stagesOf(steps: readonly KernelStep[]): readonly string[] {
  const stages: KernelStep[][] = [];
  for (const step of steps) {
    const stage = stages.at(-1);
    if (stage?.[0]?.hook === step.hook && stage[0].table === step.table) stage.push(step);
    else stages.push([step]);
  }
  return stages.map(printStage);
}

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
  const found = last.found.length === 0 ? '' : ` [${last.found.join('; ')}]`;
  return `${first.hook}: ${chains.join(' → ')}${endOf(last.rule)}${found}${remarks(last)}${marked}`;
}

function remarks({ packets, isForeign }: KernelStep): string {
  const all = [
    ...(packets === undefined ? [] : [countOf(packets, 'packet')]),
    ...(isForeign === true ? ["another program's rule"] : []),
  ];
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

function printMs(ms: number): string {
  if (ms < 1) return '1 ms';
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 120_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`;
  return ms < 7_200_000 ? `${Math.round(ms / 60_000)} min` : `${Math.round(ms / 3_600_000)} h`;
}
