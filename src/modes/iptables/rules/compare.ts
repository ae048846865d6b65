/** What a sync would change, as differences between the kernel and the plan: chain by chain, rule by rule. Changes nothing. */
import type { ServicePortId } from '../../../model/serviceTracker.ts';
import type { ServicePortPlans } from '../../../plan/types.ts';
import type { KernelDifference } from '../../kernelRules.ts';
import { namesOf, ownChains } from './cleanup.ts';
import { addTo } from './edit.ts';
import { type CompileOptions, compileAll, isSameChain, type Layout, type OwnChain } from './fragment.ts';
import { hash16 } from './names.ts';
import { keyOfRule, printRule } from './print.ts';
import { type Rule, type Table, TABLES } from './rule.ts';
import type { Tables } from './textRule.ts';
import { ruleKey } from './words.ts';

/** Digests of the chains that the plan compiles to, one service port at a time. */
export function* plannedChains(
  layout: Layout,
  servicePorts: ServicePortPlans,
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
  readonly servicePorts: ServicePortPlans;
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
      yield [difference('missing', `chain ${table} ${chain}`, `-A ${chain} ${printRule(rule)}`)];
  }
  for (const [table, chains] of extra)
    yield [...chains].map((name) => {
      const text = chainText(name, state.get(table)?.get(name)?.rules ?? []);
      return difference('extra', `chain ${table} ${name}`, text);
    });
}

interface OwnedRule {
  readonly rule: Rule;
  readonly owner?: ServicePortId | undefined;
}

interface ComparedRule {
  readonly key: string;
  readonly text: string;
  readonly owner: ServicePortId | undefined;
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
  const object = `chain ${table} ${name}`;
  const servicePort = rules[0]?.owner;
  const planned = rules.map(({ rule, owner }): ComparedRule => {
    const text = printRule(rule);
    return { key: ruleKey(text), text, owner };
  });
  if (!existing) return [difference('missing', object, chainText(name, planned), servicePort)];
  const owner = inAnyOrder ? undefined : servicePort;
  const found = existing.rules.map(({ key, text }): ComparedRule => ({ key, text, owner }));
  const changes = [
    ...without(found, planned).map((each) => ruleDifference('extra', object, name, each)),
    ...without(planned, found).map((each) => ruleDifference('missing', object, name, each)),
  ];
  if (changes.length > 0 || inAnyOrder || found.every(({ key }, at) => key === planned[at]?.key))
    return changes;
  return [difference('different', object, `the rules of ${name} are in another order`, servicePort)];
}

/** Those that the others lack, equal ones counted. */
function without(rules: readonly ComparedRule[], others: readonly ComparedRule[]): readonly ComparedRule[] {
  const counts = new Map<string, number>();
  for (const { key } of others) counts.set(key, (counts.get(key) ?? 0) + 1);
  return rules.filter(({ key }) => {
    const left = (counts.get(key) ?? 0) - 1;
    counts.set(key, left);
    return left < 0;
  });
}

function ruleDifference(
  kind: 'missing' | 'extra',
  object: string,
  chain: string,
  { text, owner }: ComparedRule,
): KernelDifference {
  return difference(kind, object, `-A ${chain} ${text}`.trimEnd(), owner);
}

function difference(
  kind: KernelDifference['kind'],
  object: string,
  text: string,
  servicePort?: ServicePortId,
): KernelDifference {
  return { kind, object, text, ...(servicePort !== undefined && { servicePort }) };
}

/** The lines that would make the chain. */
function chainText(name: string, rules: readonly { readonly text: string }[]): string {
  return [`-N ${name}`, ...rules.map(({ text }) => `-A ${name} ${text}`.trimEnd())].join('\n');
}
