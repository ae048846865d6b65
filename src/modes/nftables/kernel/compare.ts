/** What a sync would change: the table in the kernel, compared with the plan. */
import type { Cidr, Family } from '../../../model/ip.ts';
import type { ServicePortId } from '../../../model/serviceTracker.ts';
import type { SetElement } from '../../../netlink/nftables/elements.ts';
import type { TablePlace } from '../../../netlink/nftables/message.ts';
import { propertiesOf, type SetProperties } from '../../../netlink/nftables/setSpec.ts';
import type { Plan } from '../../../plan/types.ts';
import type { KernelDifference } from '../../kernelRules.ts';
import { lowerRule } from '../lower.ts';
import { printDeclaration } from '../print.ts';
import { compileElements } from '../rules/compile.ts';
import { partsIn, ReferenceCounts } from '../rules/counts.ts';
import { idOf } from '../rules/diff.ts';
import { NFT_SETS, ownerComment } from '../rules/names.ts';
import { byName, type Element, groupBy, type Ruleset, type TableSet } from '../rules/table.ts';
import { baseOf, encodedElements, specOf } from '../sets.ts';
import { fixedElements, type NftFacts, nftSettings, rulesetOf } from '../rules/ruleset.ts';
import { printExpressions } from './ruleText.ts';
import { type ListedRule, type NftSource, tableName, type WholeTable } from './source.ts';
import { printElement, printVerdict } from './values.ts';

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

/** Something of a table, in the kernel or in the plan. */
interface Part {
  /** The same in both. */
  readonly id: string;
  /** What may be different. */
  readonly value: string;
  readonly object: string;
  readonly text: () => string;
  readonly servicePort?: ServicePortId | undefined;
}

/** A flushed table of a large cluster lacks hundreds of thousands of elements. */
const MAX_DIFFERENCES = 20_000;
/** A set or chain that is part of a rule: it is deleted with the rule, and cannot be deleted by itself. */
const ANONYMOUS = /^__(?:set|map|chain)\d/;
const NO_TABLE: WholeTable = { isDormant: false, chains: [], sets: [] };

export async function compareTable(options: CompareOptions): Promise<readonly KernelDifference[]> {
  const { source, place, plan, facts } = options;
  const { family, view } = plan;
  const object = `table ${tableName(place)}`;
  const found = await source.table(place);
  const { sets, chains, isDormant } = found ?? NO_TABLE;
  // What a program beside the proxy does not know is as the kernel has it, which is then no difference.
  const { counters = sets.some(({ expression }) => expression?.kind === 'counter'), serviceCidrs } = facts;
  const hasCidrs = serviceCidrs ? serviceCidrs.length > 0 : byName(sets).has(NFT_SETS.serviceCidrs);
  const settings = nftSettings({ ...facts, counters, serviceCidrs: serviceCidrs ?? [] }, view);
  const counts = new ReferenceCounts();
  // One that nobody uses any more stays for a while: its sets, chains and rules are no difference.
  const parts = partsIn([...sets, ...chains].map(({ name }) => name));
  counts.add({ elements: [], counted: [], parts });
  const wanted: OwnedElement[] = [];
  const shared = new Map<string, ServicePortId>();
  const ids = new Map<string, ServicePortId>();
  for (const port of plan.servicePorts.values()) {
    const fragment = compileElements(port, settings);
    counts.add(fragment);
    ids.set(ownerComment(port.name), port.id);
    for (const element of fragment.elements) wanted.push({ element, owner: port.id });
    for (const element of fragment.counted)
      if (!shared.has(idOf(element))) shared.set(idOf(element), port.id);
  }
  const tableOptions = { ...settings, family, view };
  for (const element of [...counts.elements(), ...fixedElements(tableOptions)])
    wanted.push({ element, owner: shared.get(idOf(element)) });
  const ruleset = rulesetOf(counts.shape(hasCidrs), tableOptions);
  const differences: KernelDifference[] = [
    ...(found ? [] : [{ kind: 'missing', object, text: object } as const]),
    ...(isDormant ? [{ kind: 'different', object, text: 'flags dormant' } as const] : []),
    ...differencesOf(partsOfTable({ sets, chains }), partsOfRuleset(ruleset, family)),
    ...ruleset.chains.flatMap(({ name, rules, isUnordered }) =>
      isUnordered || isInOrder(byName(chains).get(name)?.rules ?? [], lowered(rules, family))
        ? []
        : [{ kind: 'different', object: `chain ${name}`, text: 'its rules are in another order' } as const],
    ),
  ];
  const bySet = groupBy(wanted, ({ element }) => element.set);
  for (const set of ruleset.sets) {
    if (differences.length > MAX_DIFFERENCES) break;
    // Of affinity entries, and of service CIDRs that are not known, nothing is read.
    if (set.dynamicSize !== undefined || (set.name === NFT_SETS.serviceCidrs && !serviceCidrs)) continue;
    const listed = byName(sets).get(set.name);
    const isSame = listed && propertiesIn(listed) === valueOfSet(set, family);
    const raw = isSame ? await source.allElements({ ...place, set: set.name }) : [];
    const partOf = partsOfSet(set, family);
    // By its comment, which may be the name of a service port that is not planned.
    const inKernel = raw.map((each) => partOf(each, ids.get(each.comment ?? '') ?? each.comment));
    const owned = bySet.get(set.name) ?? [];
    const encoded = encodedElements(
      set,
      owned.map(({ element }) => element),
      family,
    );
    const planned = encoded.map((each, index) => partOf(each, owned[index]?.owner));
    for (const each of differencesOf(inKernel, planned)) differences.push(each);
  }
  if (differences.length < MAX_DIFFERENCES) return differences;
  const text = `${MAX_DIFFERENCES} differences, and more`;
  return [...differences.slice(0, MAX_DIFFERENCES), { kind: 'different', object, text }];
}

interface OwnedElement {
  readonly element: Element;
  readonly owner: ServicePortId | undefined;
}

function* differencesOf(found: readonly Part[], wanted: readonly Part[]): Generator<KernelDifference> {
  const left = new Map(found.map((part) => [part.id, part]));
  for (const part of wanted) {
    const there = left.get(part.id);
    left.delete(part.id);
    if (!there) yield difference('missing', part);
    else if (there.value !== part.value) {
      const text = there.text() === part.object ? part.text() : `${there.text()}, not ${part.text()}`;
      yield { ...difference('different', part), text };
    }
  }
  for (const part of left.values()) yield difference('extra', part);
}

function difference(kind: KernelDifference['kind'], { object, text, servicePort }: Part): KernelDifference {
  return { kind, object, text: text(), ...(servicePort !== undefined && { servicePort }) };
}

function partsOfTable({ sets, chains }: Pick<WholeTable, 'sets' | 'chains'>): readonly Part[] {
  return [
    ...sets.map((set) => part('set', set.name, propertiesIn(set))),
    ...chains.flatMap(({ name, base, rules }) => [
      part('chain', name, canonical(base)),
      ...partsOfRules(name, rules),
    ]),
  ].filter(({ object }) => !ANONYMOUS.test(object.slice(object.lastIndexOf(' ') + 1)));
}

function partsOfRuleset({ sets, chains }: Ruleset, family: Family): readonly Part[] {
  return [
    ...sets.map((set) => part('set', set.name, valueOfSet(set, family), () => printDeclaration(set, family))),
    ...chains.flatMap((chain) => [
      part('chain', chain.name, canonical(chain.hook && baseOf(chain.hook)), () =>
        printDeclaration(chain, family),
      ),
      ...partsOfRules(chain.name, lowered(chain.rules, family)),
    ]),
  ];
}

function part(kind: 'set' | 'chain', name: string, value: string, text?: () => string): Part {
  const object = `${kind} ${name}`;
  return { id: object, object, value, text: text ?? (() => object) };
}

/** Equal rules are told apart by which of them it is. */
function partsOfRules(chain: string, rules: readonly ListedRule[]): readonly Part[] {
  const seen = new Map<string, number>();
  return rules.map(({ expressions }) => {
    const rule = canonical(expressions);
    const count = (seen.get(rule) ?? 0) + 1;
    seen.set(rule, count);
    const object = `rule of chain ${chain}`;
    return { id: `${object} ${rule} ${count}`, object, value: '', text: () => printExpressions(expressions) };
  });
}

function lowered(rules: Ruleset['chains'][number]['rules'], family: Family): readonly ListedRule[] {
  return rules.map((rule) => ({ expressions: lowerRule(rule, family) }));
}

/** Those that are in both. */
function isInOrder(found: readonly ListedRule[], wanted: readonly ListedRule[]): boolean {
  const [here, there] = [found, wanted].map((rules) =>
    rules.map(({ expressions }) => canonical(expressions)),
  );
  const inBoth = here?.filter((rule) => there?.includes(rule));
  return canonical(inBoth) === canonical(there?.filter((rule) => here?.includes(rule)));
}

function partsOfSet(set: TableSet, family: Family): (element: SetElement, owner?: ServicePortId) => Part {
  const { name } = set;
  const listed = { name, ...propertiesOf(specOf(set, family)) };
  return (element, servicePort) => {
    const { key, keyEnd = key, isIntervalEnd, data, verdict } = element;
    return {
      id: `${hex(key)} ${hex(keyEnd)} ${isIntervalEnd}`,
      // Where an element passed from one service port to another, its comment stays.
      value: verdict ? printVerdict(verdict) : data ? hex(data) : '',
      object: `element ${name}`,
      text: () => printElement({ set: listed, element }),
      servicePort,
    };
  };
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}

function valueOfSet(set: TableSet, family: Family): string {
  return propertiesIn(propertiesOf(specOf(set, family)));
}

/** Those that the kernel compares. */
function propertiesIn(set: SetProperties): string {
  const { flags, keyType, keyBytes, dataType, dataBytes, description, timeoutMs, expression, userData } = set;
  const sizes = [flags, keyType, keyBytes, dataType, dataBytes, timeoutMs];
  return canonical([...sizes, description, expression, userData]);
}

/** Equal text for equal values, bytes and large numbers included, whatever the order of their parts. */
function canonical(value: unknown): string {
  return (
    JSON.stringify(value, (_, each: unknown) => {
      if (each instanceof Uint8Array) return hex(each);
      if (typeof each === 'bigint') return each.toString();
      if (typeof each !== 'object' || each === null || Array.isArray(each)) return each;
      return Object.fromEntries(Object.entries(each).sort(([a], [b]) => (a < b ? -1 : 1)));
    }) ?? ''
  );
}
