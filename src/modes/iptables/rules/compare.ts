/** What a sync would change, as differences between the kernel and the plan: chain by chain, rule by rule. Changes nothing. */
import type { ServicePortId } from '../../../model/serviceTracker.ts';
import type { ServicePortPlan } from '../../../plan/types.ts';
import type { KernelDifference } from '../../kernelRules.ts';
import { namesOf, ownChains } from './cleanup.ts';
import { addTo, isSameList } from './edit.ts';
import { type CompileOptions, compileAll, isSameChain, type Layout, type OwnChain } from './fragment.ts';
import { hash16 } from './names.ts';
import { keyOfRule, printRule } from './print.ts';
import { type Rule, type Table, TABLES } from './rule.ts';
import type { Tables } from './textRule.ts';
import { ruleKey } from './words.ts';

type ServicePorts = ReadonlyMap<ServicePortId, ServicePortPlan>;

/** Digests of the chains that the plan compiles to, one service port at a time. */
export function* plannedChains(
  layout: Layout,
  servicePorts: ServicePorts,
  options: CompileOptions,
): Generator<void, ReadonlySet<string>> {
  const digests = new Set<string>();
  for (const [, { chains }] of compileAll(layout, servicePorts, options)) {
    for (const { name, rules } of chains) digests.add(digestChain(name, rules.map(keyOfRule)));
    yield;
  }
  return digests;
}

/** 100,000 chains are compared by it, which would take much memory as text. */
export function digestChain(name: string, keys: readonly string[]): string {
  return hash16([name, ...keys].join('\n'));
}

interface Planned {
  readonly layout: Layout;
  readonly servicePorts: ServicePorts;
  readonly options: CompileOptions;
}

/** One service port at a time. */
export function* compareWithPlan(
  state: Tables,
  { layout, servicePorts, options }: Planned,
): Generator<readonly KernelDifference[]> {
  const base = layout.base(options);
  const names = namesOf(state);
  const extra = new Map(TABLES.map((table) => [table, ownChains(names, table)]));
  const compare = ({ table, name, rules }: OwnChain, owner?: ServicePortId): readonly KernelDifference[] => {
    extra.get(table)?.delete(name);
    return chainDifferences(
      state,
      table,
      name,
      rules.map((rule) => ({ rule, owner })),
    );
  };
  for (const chain of base.chains) yield compare(chain);
  const shared = new Map<string, OwnedRule[]>();
  for (const [owner, fragment] of compileAll(layout, servicePorts, options)) {
    for (const { table, chain, rule } of fragment.shared) addTo(shared, `${table} ${chain}`, { rule, owner });
    yield fragment.chains.flatMap((chain) => compare(chain, owner));
  }
  for (const { table, chain } of layout.sharedChains) {
    extra.get(table)?.delete(chain);
    const tail = base.tail.filter((each) => isSameChain(each, { table, chain }));
    yield chainDifferences(state, table, chain, [...(shared.get(`${table} ${chain}`) ?? []), ...tail], true);
  }
  for (const { table, chain } of layout.foreignChains) extra.get(table)?.delete(chain);
  for (const { table, chain, rule } of [...base.foreign, ...layout.jumps]) {
    const key = keyOfRule(rule);
    const rules = state.get(table)?.get(chain)?.rules ?? [];
    if (!rules.some((each) => each.key === key))
      yield [difference('missing', [table, chain], `-A ${chain} ${printRule(rule)}`, undefined)];
  }
  for (const [table, chains] of extra) yield [...chains].map((name) => extraChain(state, table, name));
}

interface OwnedRule {
  readonly rule: Rule;
  readonly owner?: ServicePortId | undefined;
}

interface RuleChange {
  readonly kind: 'missing' | 'extra';
  readonly owner: ServicePortId | undefined;
  readonly text: string;
}

function difference(
  kind: KernelDifference['kind'],
  place: readonly [table: string, chain: string],
  text: string,
  owner: ServicePortId | undefined,
): KernelDifference {
  return {
    kind,
    object: `chain ${place.join(' ')}`,
    text,
    ...(owner !== undefined && { servicePort: owner }),
  };
}

/** `inAnyOrder`: what changed was written behind what stayed. */
function chainDifferences(
  state: Tables,
  table: Table,
  name: string,
  rules: readonly OwnedRule[],
  inAnyOrder = false,
): readonly KernelDifference[] {
  const existing = state.get(table)?.get(name);
  if (existing?.isAsPlanned) return [];
  const keys = rules.map(({ rule }) => keyOfRule(rule));
  const found = existing?.rules.map(({ key }) => key) ?? [];
  if (existing && isSameList(keys, found)) return [];
  if (existing && inAnyOrder && isSameList([...keys].sort(), [...found].sort())) return [];
  const texts = rules.map(({ rule }) => printRule(rule));
  if (!existing) return [difference('missing', [table, name], chainText(name, texts), rules[0]?.owner)];
  const changes: RuleChange[] = [
    ...existing.rules.map(
      (rule): RuleChange => ({
        kind: 'extra',
        owner: inAnyOrder ? undefined : rules[0]?.owner,
        text: rule.text,
      }),
    ),
    ...rules.map(({ owner }, at): RuleChange => ({ kind: 'missing', owner, text: texts[at] ?? '' })),
  ];
  return ruleDifferences(table, name, changes);
}

/** What is both there and planned is no difference; if nothing else is, the rules are in another order. */
function ruleDifferences(
  table: Table,
  chain: string,
  changes: readonly RuleChange[],
): readonly KernelDifference[] {
  const keys = changes.map(({ text }) => ruleKey(text));
  const count = (kind: RuleChange['kind']): Map<string, number> => {
    const counts = new Map<string, number>();
    for (const [index, change] of changes.entries()) {
      const key = keys[index] ?? '';
      if (change.kind === kind) counts.set(key, (counts.get(key) ?? 0) + 1);
    }
    return counts;
  };
  const others = { missing: count('extra'), extra: count('missing') };
  const left = changes.filter(({ kind }, index) => {
    const key = keys[index] ?? '';
    const balance = others[kind].get(key) ?? 0;
    others[kind].set(key, balance - 1);
    return balance <= 0;
  });
  if (left.length > 0)
    return left.map(({ kind, owner, text }) =>
      difference(kind, [table, chain], `-A ${chain} ${text}`.trimEnd(), owner),
    );
  const owner = changes.find((change) => change.owner !== undefined)?.owner;
  return [difference('different', [table, chain], `the rules of ${chain} are in another order`, owner)];
}

function extraChain(state: Tables, table: Table, name: string): KernelDifference {
  const rules = state.get(table)?.get(name)?.rules ?? [];
  return difference(
    'extra',
    [table, name],
    chainText(
      name,
      rules.map(({ text }) => text),
    ),
    undefined,
  );
}

/** The lines that would make the chain. */
function chainText(name: string, rules: readonly string[]): string {
  return [`-N ${name}`, ...rules.map((rule) => `-A ${name} ${rule}`.trimEnd())].join('\n');
}
