/** The differences of one family, by service. */
import type { FamilySubject, Subject } from '../explain/subject.ts';
import type { ObjectKey } from '../model/objects.ts';
import type { ServicePortId } from '../model/serviceTracker.ts';
import type { KernelDifference, KernelReader } from '../modes/kernelRules.ts';
import { kernelMeaning, type Meaning, planMeaning } from './meaning.ts';
import { planDifferences } from './plans.ts';
import { printedDifferences, type PrintedObjects, ServiceOfLine } from './printed.ts';
import type { FamilyDiff, RuleDiff, ServiceDiff } from './types.ts';

const SIGNS = { missing: '+', extra: '-', different: '~' } as const;

/** What is in the kernel against what is planned: `-` is in the kernel, `+` is planned. */
export async function diffKernel(
  subject: Subject,
  family: FamilySubject,
  reader: KernelReader,
  /** How long the kernel took to be read. */
  readMs: number,
): Promise<FamilyDiff> {
  const found = await reader.compare(family.plan);
  const ports = new Set(found.flatMap(({ servicePort }) => servicePort ?? []));
  const meaning = await kernelMeaning(subject, family, reader, ports, readMs);
  const groups = new Groups(meaning);
  for (const difference of found) {
    const { kind, object } = difference;
    const service = serviceOf(difference, family);
    for (const text of linesOf(difference)) groups.rule(service, { sign: SIGNS[kind], object, text });
  }
  return groups.finish(family, true);
}

/** A chain that is missing comes with its rules; its name is in the object already. */
function linesOf({ object, text }: KernelDifference): readonly string[] {
  const lines = text.split('\n');
  if (!object.startsWith('chain ')) return lines;
  const rules = lines.filter((line) => !/^-N \S+$/.test(line)).map((line) => line.replace(/^-A \S+ /, ''));
  return rules.length === 0 ? [''] : rules;
}

/** What is not planned at all is known by its comment. */
const COMMENT = /comment "?([a-z0-9-]+\/[a-z0-9-]+)(?=[:" ]|$)/;

function serviceOf({ servicePort, text }: KernelDifference, { plan }: FamilySubject): ObjectKey | undefined {
  if (servicePort === undefined) return COMMENT.exec(text)?.[1];
  // One that is not planned any more has its name in its id: namespace/name:port/TCP.
  return plan.servicePorts.get(servicePort)?.service ?? servicePort.replace(/(?::[^/]*)?\/[A-Z]+$/, '');
}

export interface PlanSide {
  readonly subject: Subject;
  readonly family: FamilySubject;
  /** The mode's text of the rules, of these service ports alone; `undefined`: of all. */
  print(ports: ReadonlySet<ServicePortId> | undefined): PrintedObjects;
}

interface PlanDiffOptions {
  /** The rules of all service ports may differ: other options of the mode. */
  readonly isWhole: boolean;
  /** Rules of two modes have nothing in common. */
  readonly comparesRules: boolean;
}

/** One plan against another: `-` is of the first, `+` of the second. */
export function diffPlans(from: PlanSide, to: PlanSide, options: PlanDiffOptions): FamilyDiff {
  const { ports, byService } = planDifferences(from.family.plan, to.family.plan);
  const groups = new Groups(planMeaning(from, to, ports));
  for (const [service, words] of byService) if (words.length > 0) groups.change(service, words);
  if (options.comparesRules && (options.isWhole || ports.size > 0)) {
    const [before, after] = [from, to].map((side) => side.print(options.isWhole ? undefined : ports));
    if (before && after) {
      const owner = new ServiceOfLine([from.family.plan, to.family.plan], [before, after]);
      for (const rule of printedDifferences(before, after)) groups.rule(owner.of(rule), rule);
    }
  }
  return groups.finish(to.family, options.comparesRules);
}

interface Group {
  readonly changes: string[];
  readonly rules: RuleDiff[];
  readonly meaning: ServiceDiff['meaning'][number][];
}

class Groups {
  readonly #meaning: Meaning;
  readonly #services = new Map<ObjectKey, Group>();
  readonly #shared: RuleDiff[] = [];
  readonly #counts = { '+': 0, '-': 0, '~': 0 };

  constructor(meaning: Meaning) {
    this.#meaning = meaning;
    for (const { service, ...difference } of meaning.differences)
      this.#group(service).meaning.push(difference);
  }

  change(service: ObjectKey, words: readonly string[]): void {
    this.#group(service).changes.push(...words);
  }

  rule(service: ObjectKey | undefined, rule: RuleDiff): void {
    this.#counts[rule.sign] += 1;
    if (service === undefined) this.#shared.push(rule);
    else this.#group(service).rules.push(rule);
  }

  finish({ family }: FamilySubject, isCompared: boolean): FamilyDiff {
    const services = [...this.#services]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([service, group]): ServiceDiff => ({ service, ...group }));
    return {
      family,
      isSame: services.length === 0 && this.#shared.length === 0,
      rules: {
        added: this.#counts['+'],
        removed: this.#counts['-'],
        changed: this.#counts['~'],
        isCompared,
      },
      services,
      shared: this.#shared,
      meaning: this.#meaning.summary,
    };
  }

  #group(service: ObjectKey): Group {
    let group = this.#services.get(service);
    if (!group) this.#services.set(service, (group = { changes: [], rules: [], meaning: [] }));
    return group;
  }
}
