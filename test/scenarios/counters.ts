/** Which rules have counted packets meanwhile, compared with the rules on the ways of those packets. */
import { expect } from 'vitest';
import type { Family } from '../../src/model/ip.ts';
import type { TextRule } from '../../src/modes/iptables/rules/textRule.ts';
import type { MemoryTables } from '../modes/iptables/rules/tables.ts';
import type { TraceStep, WalkResult } from '../../src/modes/kernelRules.ts';
import type { Row } from './packets.ts';

export interface RuleCount {
  readonly rule: TextRule;
  readonly packets: number;
}

/** By `IPv4 nat KUBE-SERVICES 3: -d …`. */
export type Counts = ReadonlyMap<string, RuleCount>;

export interface Walk {
  readonly row: Row;
  readonly result: WalkResult;
  /** Sent to one endpoint alone. */
  readonly isSticky: boolean;
}

export function countsOf(family: Family, tables: MemoryTables): Counts {
  const counts = new Map<string, RuleCount>();
  for (const [table, chains] of tables)
    for (const [chain, { rules }] of chains)
      for (const [index, rule] of rules.entries())
        counts.set(keyOf(family, { table, chain, ruleIndex: index }), {
          rule,
          packets: rule.packets ?? 0,
        });
  return counts;
}

function keyOf(
  family: Family,
  { table, chain, ruleIndex }: Pick<TraceStep, 'table' | 'chain' | 'ruleIndex'>,
): string {
  return `${family} ${table} ${chain} ${ruleIndex}`;
}

/**
 * In nat, which sees the first packet of each connection alone, exactly the rules on the ways have counted. In filter all
 * of those, and besides them only rules that packets of a known connection match.
 */
export function expectPathsCounted(before: Counts, after: Counts, walks: readonly Walk[]): void {
  const counted = new Set(
    [...after].flatMap(([key, { packets }]) => (packets > (before.get(key)?.packets ?? 0) ? [key] : [])),
  );
  if (walks.length > 0) expect(counted.size).toBeGreaterThan(0);
  const walked = stepsOf(walks);
  const certain = stepsOf(walks.filter(({ isSticky }) => !isSticky));
  const name = (keys: Iterable<string>): readonly string[] =>
    [...keys].map((key) => `${key}: ${printed(after.get(key)?.rule)}`).sort();
  const wrong = [...counted].filter(
    (key) => !walked.has(key) && !isOfLaterPackets(after.get(key)?.rule, key),
  );
  expect(name(wrong), 'counted, and not on the way').toEqual([]);
  const silent = [...certain].filter((key) => !counted.has(key));
  expect(name(silent), 'on the way, and not counted').toEqual([]);
}

function printed(rule: TextRule | undefined): string {
  return rule?.text ?? 'no such rule';
}

function stepsOf(walks: readonly Walk[]): ReadonlySet<string> {
  const steps = new Set<string>();
  for (const { row, result } of walks)
    for (const { path } of result.outcomes)
      for (const step of path) if (step.text !== 'policy drop') steps.add(keyOf(row.family, step));
  return steps;
}

/** Of an established connection in filter; in nat, of a client that a list knows by then. */
function isOfLaterPackets(rule: TextRule | undefined, key: string): boolean {
  if (!rule) return false;
  if (key.includes(' nat ')) return rule.text.includes(' --rcheck ');
  const isForNew = /--ctstate \S*NEW/.test(rule.text);
  return !isForNew && rule.target[1] !== 'DROP' && rule.target[1] !== 'REJECT';
}
