/** What a sync would change: the table in the kernel, compared with the plan. */
import type { Cidr, Family } from '../../../model/ip.ts';
import type { ServicePortId } from '../../../model/serviceTracker.ts';
import type { TablePlace } from '../../../netlink/nftables/message.ts';
import type { Plan } from '../../../plan/types.ts';
import type { KernelDifference } from '../../kernelRules.ts';
import { ANONYMOUS, baseOf, canonical, isSameSet } from '../comparison.ts';
import { lowerRule } from '../lower.ts';
import { compileElements, compileShared } from '../rules/compile.ts';
import { idOf, sameValue } from '../rules/diff.ts';
import { partsIn } from '../rules/idleParts.ts';
import { ownerComment } from '../rules/names.ts';
import { printDeclaration, printElement, printKey, printNftRule } from '../rules/print.ts';
import { ReferenceCounts } from '../rules/referenceCounts.ts';
import { fixedElements, type NftSettings, rulesetOf, SERVICE_CIDR_SET } from '../rules/ruleset.ts';
import { byName, type ChainSpec, type Element, groupBy, type TableSet } from '../rules/table.ts';
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
}

/** A flushed table of a large cluster lacks hundreds of thousands of elements. */
const MAX_DIFFERENCES = 20_000;

const NO_TABLE: WholeTable = { isDormant: false, chains: [], sets: [] };

export async function compareTable(options: CompareOptions): Promise<readonly KernelDifference[]> {
  const { source, place, plan } = options;
  const name = `table ${tableName(place)}`;
  const found = await source.table(place);
  const table = found ?? NO_TABLE;
  const settings = nftSettings(await factsOf(options, table), plan.view);
  const tableOptions = { ...settings, family: plan.family, view: plan.view };
  const counts = new ReferenceCounts();
  counts.addIdle(partsIn(table.sets.map(nameOf), table.chains.map(nameOf)), 0);
  const wanted: WantedElement[] = [];
  for (const port of plan.servicePorts.values()) {
    const fragment = compileElements(port, settings);
    counts.add(fragment);
    for (const element of fragment.elements) wanted.push({ element, owner: port.id });
  }
  for (const element of [...counts.elements(), ...fixedElements(tableOptions)]) wanted.push({ element });
  const ruleset = rulesetOf(counts.shape(settings.serviceCidrs.length > 0), tableOptions);
  const elements = await compareElements(options, table, ruleset.sets, wanted);
  const differences: readonly KernelDifference[] = [
    ...(found ? [] : [{ kind: 'missing', object: name, text: name } as const]),
    ...(table.isDormant ? [{ kind: 'different', object: name, text: 'flags dormant' } as const] : []),
    ...compareSets(table.sets, ruleset.sets, plan.family),
    ...compareChains(table.chains, ruleset.chains, plan.family),
    ...withOwners(elements, plan, settings),
  ];
  if (differences.length < MAX_DIFFERENCES) return differences;
  const text = `${MAX_DIFFERENCES} differences, and more`;
  return [...differences.slice(0, MAX_DIFFERENCES), { kind: 'different', object: name, text }];
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

interface WantedElement {
  readonly element: Element;
  /** Unset where several service ports share it. */
  readonly owner?: ServicePortId;
}

interface ElementDifference extends Pick<KernelDifference, 'kind' | 'text'> {
  readonly set: string;
  readonly owner?: ServicePortId | undefined;
  /** That is planned. */
  readonly element?: Element;
  /** Of one that is not planned. */
  readonly comment?: string | undefined;
}

/** Of a set that differs, and of affinity entries, nothing is read. */
async function compareElements(
  { source, place, plan: { family } }: CompareOptions,
  table: WholeTable,
  sets: readonly TableSet[],
  wanted: readonly WantedElement[],
): Promise<readonly ElementDifference[]> {
  const differences: ElementDifference[] = [];
  const listed = byName(table.sets);
  const bySet = groupBy(wanted, ({ element }) => element.set);
  for (const set of sets) {
    const { name } = set;
    const known = listed.get(name);
    const isRead = known && isSameSet(set, known, family) && set.dynamicSize === undefined;
    const raw = isRead ? await source.allElements({ ...place, set: name }) : [];
    const { elements, unknown } = elementsOf(set, raw, family);
    const left = new Map(elements.map((element) => [printKey(element.key), element]));
    for (const { element, owner } of bySet.get(name) ?? []) {
      const key = printKey(element.key);
      const there = left.get(key);
      left.delete(key);
      // Where an element passed from one service port to another, its comment stays.
      if (there && sameValue(there, element)) continue;
      const text = `${there ? `${printElement(there)}, not ` : ''}${printElement(element)}`;
      differences.push({ kind: there ? 'different' : 'missing', set: name, text, owner, element });
    }
    for (const element of left.values())
      differences.push({ kind: 'extra', set: name, text: printElement(element), comment: element.comment });
    if (known)
      for (const element of unknown) {
        const text = printFound({ set: known, element });
        differences.push({ kind: 'extra', set: name, text, comment: element.comment });
      }
    if (differences.length > MAX_DIFFERENCES) break;
  }
  return differences;
}

/** Whose elements they are: by the plan, or by the comment, which may be the name of a service port that is not planned. */
function withOwners(
  differences: readonly ElementDifference[],
  { servicePorts }: Plan,
  settings: NftSettings,
): readonly KernelDifference[] {
  if (differences.length === 0) return [];
  const ids = new Map(Array.from(servicePorts.values(), ({ id, name }) => [ownerComment(name), id]));
  const shared = new Map<string, ServicePortId>();
  for (const port of servicePorts.values())
    for (const element of compileShared(port, settings).counted)
      if (!shared.has(idOf(element))) shared.set(idOf(element), port.id);
  return differences.map(({ kind, set, text, owner, element, comment }) => {
    const planned = owner ?? (element && shared.get(idOf(element)));
    const servicePort = planned ?? (comment === undefined ? undefined : (ids.get(comment) ?? comment));
    return { kind, object: `element ${set}`, text, ...(servicePort !== undefined && { servicePort }) };
  });
}
