/** `junction diff`: the kernel against the plan, or one plan against another. Exit code 1: they differ. */
import type { ParsedFlags } from '../config/commandLine.ts';
import type { Settings } from '../config/settings.ts';
import { diffKernel, diffPlans, type PlanSide } from '../diff/family.ts';
import { printDiff } from '../diff/print.ts';
import { printedObjects } from '../diff/printed.ts';
import type { DiffReport, DiffSide, FamilyDiff } from '../diff/types.ts';
import { isJunctionError, messageOf } from '../errors.ts';
import type { FamilySubject, Subject } from '../explain/subject.ts';
import type { Cidr, Family } from '../model/ip.ts';
import { printRestore } from '../modes/iptables/print.ts';
import { printIpvsPlan } from '../modes/ipvs/print.ts';
import { openReader, readerOfDump } from '../modes/openReader.ts';
import type { KernelReader } from '../modes/kernelRules.ts';
import { printNftPlan } from '../modes/nftables/print.ts';
import { nodeIpsOf } from '../system/interfaces.ts';
import type { Plan } from '../plan/types.ts';
import { ownField, ownText } from '../text/cursor.ts';
import { deepEqual } from '../model/equal.ts';
import { showAnswer } from './answerOutput.ts';
import { type DiffInput, openInput, proposedInput, subjectOf } from './diffSides.ts';
import type { Output } from './output.ts';
import { type QuestionSource, questionSource } from './questionSource.ts';

export async function diffCommand(
  parsed: ParsedFlags,
  output: Output,
  families: readonly Family[],
): Promise<number> {
  const source = await questionSource(parsed);
  return showAnswer(parsed, output, async () => {
    const report = await compare(source, parsed, output, families);
    return {
      answer: report,
      exitCode: report.isSame ? 0 : 1,
      text: ({ paint, isWide }) => printDiff(report, { paint, isWide }),
    };
  });
}

async function compare(
  source: QuestionSource,
  parsed: ParsedFlags,
  output: Output,
  asked: readonly Family[],
): Promise<DiffReport> {
  const base = await openInput(source, parsed, output);
  const served = base.addresses ? [...base.addresses.keys()] : asked;
  const families = asked.filter((family) => served.includes(family));
  const proposed = await proposedInput(base, source, parsed, output);
  return proposed ? comparePlans(base, proposed, families) : compareKernel(source, base, families);
}

async function compareKernel(
  source: QuestionSource,
  base: DiffInput,
  families: readonly Family[],
): Promise<DiffReport> {
  // Of another source, this machine is the node.
  const addresses = base.addresses ?? new Map(families.map((family) => [family, nodeIpsOf(family)]));
  const subject = subjectOf({ ...base, addresses }, families);
  const { nodeName: node, mode } = base.settings;
  const notes: string[] = [];
  const diffs: FamilyDiff[] = [];
  for (const family of subject.families) {
    const begunAt = Date.now();
    const reader = await readKernel(base, family.family, notes);
    if (reader) diffs.push(await diffKernel(subject, family, reader, Date.now() - begunAt));
  }
  const name = source.kind === 'bundle' ? `the kernel in bundle ${source.file}` : 'the kernel';
  return reportOf({ kind: 'kernel', name, node, mode }, sideOf(base), diffs, notes, families.length);
}

/** Everything at one time: what is compared and what is walked through are the same. */
async function readKernel(
  { settings, kernel }: DiffInput,
  family: Family,
  notes: string[],
): Promise<KernelReader | undefined> {
  const missing = (reason: string): undefined => {
    notes.push(`${family} is not compared: ${reason}`);
    return undefined;
  };
  const { mode } = settings;
  if (kernel) {
    const dump = kernel.get(family);
    return (dump && readerOfDump(mode, family, dump.dump)) ?? missing('the bundle has nothing of the kernel');
  }
  try {
    const reader = await openReader(family, settings);
    if (!reader) return missing(`the ${mode} mode cannot be read from here`);
    try {
      const dump = await reader.dump();
      notes.push(...foreignTables(dump));
      return readerOfDump(mode, family, dump);
    } finally {
      await reader.close();
    }
  } catch (error) {
    if (!isJunctionError(error)) throw error;
    return missing(messageOf(error));
  }
}

/** What kube-proxy has in nftables mode is another program's: packets pass it, and nothing here changes it. */
function foreignTables(dump: unknown): readonly string[] {
  const tables = ownField(dump, 'tables');
  return (Array.isArray(tables) ? (tables as readonly unknown[]) : []).flatMap((each) => {
    if (ownText(each, 'table') !== KUBE_PROXY_TABLE) return [];
    const name = `${ownText(each, 'family')} ${KUBE_PROXY_TABLE}`;
    return `table ${name} is kube-proxy's: Junction writes a table of its own beside it; once kube-proxy is gone, junction cleanup removes it`;
  });
}

const KUBE_PROXY_TABLE = 'kube-proxy';

function comparePlans(base: DiffInput, proposed: DiffInput, families: readonly Family[]): DiffReport {
  const from = subjectOf(base, families);
  const to = subjectOf(proposed, families);
  const comparesRules = from.mode === to.mode && from.layout === to.layout;
  const diffs = from.families.flatMap((family, index): readonly FamilyDiff[] => {
    const other = to.families[index];
    if (!other) return [];
    const isWhole = !deepEqual(rulesDependOn(base, family), rulesDependOn(proposed, other));
    const sides = [planSide(base, from, family), planSide(proposed, to, other)] as const;
    return [diffPlans(...sides, { comparesRules, isWhole })];
  });
  return reportOf(sideOf(base), sideOf(proposed), diffs, [], families.length);
}

/** What the rules of all services depend on. */
function rulesDependOn({ settings, input }: DiffInput, { plan }: FamilySubject): unknown {
  const { masqueradeBit, scheduler, counters } = settings;
  return { masqueradeBit, scheduler, counters, view: plan.view, serviceCidrs: input.serviceCidrs };
}

function planSide({ settings, input }: DiffInput, subject: Subject, family: FamilySubject): PlanSide {
  return {
    subject,
    family,
    print: (ports) => {
      const { plan } = family;
      const servicePorts = ports
        ? new Map([...plan.servicePorts].filter(([id]) => ports.has(id)))
        : plan.servicePorts;
      const part: Plan = {
        family: plan.family,
        view: plan.view,
        servicePorts,
        endpointCount: plan.endpointCount,
        find: (...where) => plan.find(...where),
        portsAt: (address) => plan.portsAt(address),
      };
      return printedObjects(PRINTERS[settings.mode](part, settings, input.serviceCidrs));
    },
  };
}

const PRINTERS: Readonly<
  Record<Settings['mode'], (plan: Plan, settings: Settings, serviceCidrs: readonly Cidr[]) => string>
> = {
  iptables: printRestore,
  ipvs: printIpvsPlan,
  nftables: printNftPlan,
};

function sideOf({ name, settings }: DiffInput): DiffSide {
  return { kind: 'plan', name, node: settings.nodeName, mode: settings.mode };
}

function reportOf(
  from: DiffSide,
  to: DiffSide,
  families: readonly FamilyDiff[],
  notes: readonly string[],
  asked: number,
): DiffReport {
  // What could not be compared is not known to be the same.
  const isSame = families.length === asked && families.every((family) => family.isSame);
  return { node: to.node, from, to, isSame, families, notes };
}
