/** What a sync would change: the table in the kernel, compared with the plan. */
import type { Cidr, Family } from '../../../model/ip.ts';
import type { ServicePortId } from '../../../model/serviceTracker.ts';
import type { TablePlace } from '../../../netlink/nftables/message.ts';
import type { Plan, ServicePortPlan } from '../../../plan/types.ts';
import { forEachSliced, type TimeSlice } from '../../../time/timeSlice.ts';
import type { KernelDifference } from '../../kernelReader.ts';
import { ANONYMOUS, baseOf, canonical, isSameSet } from '../comparison.ts';
import { lowerRule } from '../lower.ts';
import { compileElements, compileShared } from '../rules/compile.ts';
import { idOf, sameValue } from '../rules/diff.ts';
import { partsIn } from '../rules/idleParts.ts';
import { ownerComment } from '../rules/names.ts';
import { printDeclaration, printElement, printKey, printNftRule } from '../rules/print.ts';
import { ReferenceCounts } from '../rules/referenceCounts.ts';
import { Elements } from '../rules/resync.ts';
import { fixedElements, type NftSettings, rulesetOf, SERVICE_CIDR_SET } from '../rules/ruleset.ts';
import { byName } from '../rules/table.ts';
import type { ChainSpec, Element, ElementChanges, Ruleset, TableSet, TableState } from '../rules/table.ts';
import { elementsOf } from '../sets.ts';
import { type NftFacts, nftSettings } from '../settings.ts';
import { printExpressions } from './ruleText.ts';
import { tableName } from './source.ts';
import type { ListedSet, NftSource, WholeChain, WholeTable } from './source.ts';
import { printFound } from './values.ts';

/** What is not known is unset. */
export interface KnownFacts extends Pick<NftFacts, 'masqueradeBit' | 'nodeIps'> {
  readonly counters?: boolean | undefined;
  readonly serviceCidrs?: readonly Cidr[] | undefined;
}

interface CompareOptions {
  readonly source: NftSource;
  readonly place: TablePlace;
  readonly plan: Plan;
  readonly facts: KnownFacts;
  readonly timeSlice?: TimeSlice;
}

/** A flushed table of a large cluster lacks hundreds of thousands of elements. */
const MOST_DIFFERENCES = 20_000;

const NO_TABLE: WholeTable = { isDormant: false, chains: [], sets: [] };

export async function compareTable(options: CompareOptions): Promise<readonly KernelDifference[]> {
  const { source, place, plan, timeSlice } = options;
  const name = `table ${tableName(place)}`;
  const found = await source.table(place);
  const table = found ?? NO_TABLE;
  const settings = nftSettings(await factsOf(options, table), plan.view);
  const tableOptions = { ...settings, family: plan.family, view: plan.view };
  const counts = new ReferenceCounts();
  counts.addIdle(partsIn(table.sets.map(nameOf), table.chains.map(nameOf)), 0);
  const count = (port: ServicePortPlan): void => counts.add(compileShared(port, tableOptions));
  await forEachSliced(plan.servicePorts.values(), count, timeSlice);
  const ruleset = rulesetOf(counts.shape(settings.serviceCidrs.length > 0), tableOptions);
  const differences: KernelDifference[] = [
    ...(found ? [] : [{ kind: 'missing', object: name, text: name } as const]),
    ...(table.isDormant ? [{ kind: 'different', object: name, text: 'flags dormant' } as const] : []),
    ...compareSets(table.sets, ruleset.sets, plan.family),
    ...compareChains(table.chains, ruleset.chains, plan.family),
  ];
  const elements = new ElementComparison({ ...options, settings }, differences);
  await elements.read(table, ruleset);
  await elements.compare([...counts.elements(), ...fixedElements(tableOptions)]);
  if (differences.length < MOST_DIFFERENCES) return differences;
  const text = `${MOST_DIFFERENCES} differences, and more`;
  return [...differences.slice(0, MOST_DIFFERENCES), { kind: 'different', object: name, text }];
}

/** What a program beside the proxy does not know is taken from the kernel, and is then no difference. */
async function factsOf(
  { facts, source, place, plan }: CompareOptions,
  { sets }: WholeTable,
): Promise<NftFacts> {
  const { counters = sets.some(({ expression }) => expression?.kind === 'counter') } = facts;
  if (facts.serviceCidrs) return { ...facts, counters, serviceCidrs: facts.serviceCidrs };
  const listed = sets.some(({ name }) => name === SERVICE_CIDR_SET.name);
  const raw = listed ? await source.allElements({ ...place, set: SERVICE_CIDR_SET.name }) : [];
  const { elements } = elementsOf(SERVICE_CIDR_SET, raw, plan.family);
  return { ...facts, counters, serviceCidrs: elements.flatMap(({ key }) => key.range ?? []).sort() };
}

function nameOf({ name }: { readonly name: string }): string {
  return name;
}

function compareSets(
  found: readonly ListedSet[],
  wanted: readonly TableSet[],
  family: Family,
): readonly KernelDifference[] {
  const [inKernel, planned] = [byName(found), byName(wanted)];
  const of = (kind: KernelDifference['kind'], set: TableSet): KernelDifference => ({
    kind,
    object: `set ${set.name}`,
    text: printDeclaration(set, family),
  });
  return [
    ...wanted.flatMap((set) => {
      const listed = inKernel.get(set.name);
      if (!listed) return [of('missing', set)];
      return isSameSet(set, listed, family) ? [] : [of('different', set)];
    }),
    ...found
      .filter(({ name }) => !planned.has(name) && !ANONYMOUS.test(name))
      .map(({ name }): KernelDifference => ({ kind: 'extra', object: `set ${name}`, text: `set ${name}` })),
  ];
}

function compareChains(
  found: readonly WholeChain[],
  wanted: readonly ChainSpec[],
  family: Family,
): readonly KernelDifference[] {
  const [inKernel, planned] = [byName(found), byName(wanted)];
  const extra = found.filter(({ name }) => !planned.has(name) && !ANONYMOUS.test(name));
  return [
    ...wanted.flatMap((chain): readonly KernelDifference[] => {
      const listed = inKernel.get(chain.name);
      const object = `chain ${chain.name}`;
      const text = printDeclaration(chain, family);
      if (!listed) return [{ kind: 'missing', object, text }, ...compareRules(chain, [], family)];
      const isSame = canonical(listed.base) === canonical(chain.hook && baseOf(chain.hook));
      return [
        ...(isSame ? [] : [{ kind: 'different', object, text } as const]),
        ...compareRules(chain, listed.rules, family),
      ];
    }),
    ...extra.flatMap(({ name, rules }): readonly KernelDifference[] => [
      { kind: 'extra', object: `chain ${name}`, text: `chain ${name}` },
      ...compareRules({ name, rules: [] }, rules, family),
    ]),
  ];
}

function compareRules(
  { name, rules, isUnordered }: ChainSpec,
  found: WholeChain['rules'],
  family: Family,
): readonly KernelDifference[] {
  const object = `rule of chain ${name}`;
  const left = found.map(({ expressions }) => ({ expressions, text: canonical(expressions) }));
  const missing: KernelDifference[] = [];
  const order: string[] = [];
  for (const rule of rules) {
    const text = canonical(lowerRule(rule, family));
    const index = left.findIndex((each) => each.text === text);
    if (index < 0) missing.push({ kind: 'missing', object, text: printNftRule(rule, family) });
    else order.push(...left.splice(index, 1).map((each) => each.text));
  }
  const extra = left.map(
    ({ expressions }): KernelDifference => ({ kind: 'extra', object, text: printExpressions(expressions) }),
  );
  const kept = new Set(order);
  const inKernel = found.map(({ expressions }) => canonical(expressions)).filter((text) => kept.has(text));
  if (isUnordered || canonical(inKernel) === canonical(order)) return [...missing, ...extra];
  const text = 'its rules are in another order';
  return [...missing, ...extra, { kind: 'different', object: `chain ${name}`, text }];
}

interface ElementOptions extends CompareOptions {
  readonly settings: NftSettings;
}

class ElementComparison {
  readonly #options: ElementOptions;
  readonly #differences: KernelDifference[];
  #elements: Elements | undefined;

  constructor(options: ElementOptions, differences: KernelDifference[]) {
    this.#options = options;
    this.#differences = differences;
  }

  /** One set after the other. Of a set that differs, and of affinity entries, nothing is read. */
  async read(table: WholeTable, ruleset: Ruleset): Promise<void> {
    const { source, place, plan } = this.#options;
    const listed = byName(table.sets);
    const sets = new Map<string, 'same'>();
    const elements = new Map<string, ReadonlyMap<string, Element>>();
    for (const set of ruleset.sets) {
      const known = listed.get(set.name);
      if (!known || !isSameSet(set, known, plan.family)) continue;
      sets.set(set.name, 'same');
      if (set.dynamicSize !== undefined) continue;
      const raw = await source.allElements({ ...place, set: set.name });
      const { elements: read, unknown } = elementsOf(set, raw, plan.family);
      elements.set(set.name, new Map(read.map((element) => [printKey(element.key), element])));
      for (const element of unknown)
        this.#note('extra', `element ${set.name}`, printFound({ set: known, element }), element.comment);
    }
    const state: Pick<TableState, 'sets' | 'elements'> = { sets, elements };
    this.#elements = new Elements(state, ruleset);
  }

  async compare(shared: readonly Element[]): Promise<void> {
    const elements = this.#elements;
    if (!elements) return;
    const { plan, settings, timeSlice } = this.#options;
    await this.#noteShared(elements.editFor(undefined, shared));
    const compare = (port: ServicePortPlan): void =>
      this.#noteChanges(elements.editFor(port.id, compileElements(port, settings).elements), () => port.id);
    await forEachSliced(plan.servicePorts.values(), compare, timeSlice);
    for (const element of elements.stale([]))
      this.#note('extra', `element ${element.set}`, printElement(element), element.comment);
  }

  /** Whose they are is found only where some differ. */
  async #noteShared(changes: ElementChanges): Promise<void> {
    const wanted = new Set([...changes.adds, ...changes.removes].map(idOf));
    if (wanted.size === 0) return;
    const { plan, settings, timeSlice } = this.#options;
    const owners = new Map<string, ServicePortId>();
    const look = (port: ServicePortPlan): void => {
      for (const element of compileShared(port, settings).counted) {
        const id = idOf(element);
        if (wanted.has(id) && !owners.has(id)) owners.set(id, port.id);
      }
    };
    await forEachSliced(plan.servicePorts.values(), look, timeSlice);
    this.#noteChanges(changes, (element) => owners.get(idOf(element)));
  }

  #noteChanges(
    { removes, adds }: ElementChanges,
    ownerOf: (element: Element) => ServicePortId | undefined,
  ): void {
    const left = new Map(removes.map((element) => [idOf(element), element]));
    for (const element of adds) {
      const object = `element ${element.set}`;
      const before = left.get(idOf(element));
      left.delete(idOf(element));
      // Where an element passed from one service port to another, its comment stays until the next resync.
      if (before && sameValue(before, element)) continue;
      const text = before ? `${printElement(before)}, not ${printElement(element)}` : printElement(element);
      this.#add(before ? 'different' : 'missing', object, text, ownerOf(element));
    }
    for (const element of left.values())
      this.#add('extra', `element ${element.set}`, printElement(element), ownerOf(element));
  }

  /** By its comment, which may be the name of a service port that is no longer planned. */
  #note(kind: KernelDifference['kind'], object: string, text: string, comment: string | undefined): void {
    this.#add(kind, object, text, comment === undefined ? undefined : this.#idOf(comment));
  }

  #idsByComment: ReadonlyMap<string, ServicePortId> | undefined;

  #idOf(comment: string): ServicePortId {
    this.#idsByComment ??= new Map(
      Array.from(this.#options.plan.servicePorts.values(), ({ id, name }) => [ownerComment(name), id]),
    );
    return this.#idsByComment.get(comment) ?? comment;
  }

  #add(
    kind: KernelDifference['kind'],
    object: string,
    text: string,
    servicePort: ServicePortId | undefined,
  ): void {
    if (this.#differences.length > MOST_DIFFERENCES) return;
    this.#differences.push({ kind, object, text, ...(servicePort !== undefined && { servicePort }) });
  }
}
