/** What a sync would change, as differences between the kernel and the plan: chain by chain, rule by rule. Changes nothing. */
import type { ServicePortId } from '../../../model/serviceTracker.ts';
import type { ServicePortPlan } from '../../../plan/types.ts';
import type { KernelDifference } from '../../kernelReader.ts';
import { addTo, type ChainWrite, type Step } from './edit.ts';
import { type CompileOptions, compileAll, type Layout } from './fragment.ts';
import { digestChain, type ParsedChain, type Tables, tokenize, type WantedChains } from './parse.ts';
import { parseRule } from './parseRule.ts';
import { printRule, ruleKey } from './print.ts';
import { fullSteps } from './resync.ts';
import type { Rule, Table } from './rule.ts';

type ServicePorts = ReadonlyMap<ServicePortId, ServicePortPlan>;

/** Both ways to write endpoints: each service port keeps the comments that it was written with. */
const WITH_AND_WITHOUT = [true, false];

/** Digests of the chains that the plan compiles to, one service port at a time. */
export function* plannedChains(
  layout: Layout,
  servicePorts: ServicePorts,
  options: CompileOptions,
): Generator<void, WantedChains> {
  const wanted = new Set<number>();
  for (const endpointComments of WITH_AND_WITHOUT)
    for (const [, { chains }] of compileAll(layout, servicePorts, { ...options, endpointComments })) {
      for (const { name, rules } of chains) wanted.add(digestChain(name, rules));
      yield;
    }
  return wanted;
}

interface Planned {
  readonly layout: Layout;
  readonly servicePorts: ServicePorts;
  readonly options: CompileOptions;
}

/** One step at a time. `state`: with the chains that are as planned as `IN_PLACE`. */
export function* compareWithPlan(
  state: Tables,
  { layout, servicePorts, options }: Planned,
): Generator<readonly KernelDifference[]> {
  const fragments = compileAll(layout, servicePorts, options);
  for (const step of fullSteps(state, { layout, options, fragments }))
    yield step ? differencesOf(state, step) : [];
}

interface RuleChange {
  readonly kind: 'missing' | 'extra';
  readonly owner: ServicePortId | undefined;
  readonly text: string;
}

function differencesOf(state: Tables, { table, pieces }: Step): readonly KernelDifference[] {
  const differences: KernelDifference[] = [];
  /** By chain: rules in chains that others have rules in too. */
  const shared = new Map<string, RuleChange[]>();
  for (const { owner, writes, removes, adds, deletes } of pieces) {
    for (const write of writes) differences.push(...chainDifferences(state, table, write, owner));
    for (const name of deletes) differences.push(extraChain(state, table, name));
    for (const { chain, rule } of removes)
      addTo(shared, chain, { kind: 'extra', owner, text: safeText(rule) });
    for (const { chain, rule } of adds)
      addTo(shared, chain, { kind: 'missing', owner, text: printRule(rule) });
  }
  for (const [chain, changes] of shared) differences.push(...ruleDifferences(table, chain, changes));
  return differences;
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

function chainDifferences(
  state: Tables,
  table: Table,
  { name, rules }: ChainWrite,
  owner: ServicePortId | undefined,
): readonly KernelDifference[] {
  const existing = state.get(table)?.get(name);
  const texts = rules.map(printRule);
  if (!existing) return [difference('missing', [table, name], chainText(name, texts), owner)];
  const changes: RuleChange[] = [
    ...existing.rules.map((rule): RuleChange => ({ kind: 'extra', owner, text: safeText(rule) })),
    ...texts.map((text): RuleChange => ({ kind: 'missing', owner, text })),
  ];
  return ruleDifferences(table, name, changes);
}

/** What is both there and planned is no difference; if nothing else is, the rules are in another order. */
function ruleDifferences(
  table: Table,
  chain: string,
  changes: readonly RuleChange[],
): readonly KernelDifference[] {
  const keys = changes.map(({ text }) => keyOf(text));
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
  const existing: ParsedChain | undefined = state.get(table)?.get(name);
  return difference('extra', [table, name], chainText(name, existing?.rules.map(safeText) ?? []), undefined);
}

/** The lines that would make the chain. */
function chainText(name: string, rules: readonly string[]): string {
  return [`-N ${name}`, ...rules.map((rule) => `-A ${name} ${rule}`.trimEnd())].join('\n');
}

/** Another program's rule may have what we never print. */
function safeText(rule: Rule): string {
  try {
    return printRule(rule);
  } catch {
    return `(not printable) ${JSON.stringify(rule.matches)}`;
  }
}

function keyOf(text: string): string {
  try {
    return ruleKey(parseRule(tokenize(text) ?? [text]));
  } catch {
    return text;
  }
}
