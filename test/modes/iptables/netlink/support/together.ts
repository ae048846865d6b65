/**
 * Many cases written as one: a start of each program that writes or prints serves all of them. Chains of a case get its number, and
 * rules of the kernel's chains follow each other.
 */
import {
  type ParsedChain,
  type ParsedRule,
  parseSave,
  type Tables,
} from '../../../../../src/modes/iptables/rules/parse.ts';
import { printTables } from '../../rules/fakeKernel.ts';
import type { RestoreCase } from './compareRules.ts';

export function together(cases: readonly RestoreCase[]): readonly RestoreCase[] {
  const [first] = cases;
  if (!first) return [];
  const merged = new Map<string, Map<string, ParsedChain>>();
  for (const [index, { text }] of cases.entries()) add(merged, parseSave(text), number(index));
  return [{ name: `${cases.length} cases`, family: first.family, text: printTables(merged) }];
}

/** With the name of the case after each chain that has its number. */
export function withNames(difference: string, cases: readonly RestoreCase[]): string {
  return difference.replaceAll(
    /(KUBE-\S+-)(\w\w)\b/g,
    (chain, _, digits: string) => `${chain} (${cases[Number.parseInt(digits, 36)]?.name})`,
  );
}

/** Two characters: the longest name of ours has room for three more. */
function number(index: number): string {
  return `-${index.toString(36).toUpperCase().padStart(2, '0')}`;
}

function add(merged: Map<string, Map<string, ParsedChain>>, given: Tables, suffix: string): void {
  for (const [table, chains] of given) {
    const target = merged.get(table) ?? new Map<string, ParsedChain>();
    merged.set(table, target);
    const own = new Set([...chains].flatMap(([name, { policy }]) => (policy === undefined ? [name] : [])));
    const renamed = (name: string): string => (own.has(name) ? `${name}${suffix}` : name);
    for (const [name, { policy, rules }] of chains) {
      const before = target.get(renamed(name))?.rules ?? [];
      target.set(renamed(name), {
        ...(policy !== undefined && { policy }),
        rules: [...before, ...rules.map((rule) => jumpingTo(renamed, rule))],
      });
    }
  }
}

function jumpingTo(renamed: (name: string) => string, rule: ParsedRule): ParsedRule {
  const { target } = rule;
  return target?.kind === 'jump' ? { ...rule, target: { ...target, chain: renamed(target.chain) } } : rule;
}
