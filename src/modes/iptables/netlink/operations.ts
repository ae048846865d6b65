/** A step as the changes that the kernel makes in it, in the order in which `printStep` prints them. */
import type { Step } from '../rules/edit.ts';
import type { ParsedRule } from '../rules/parse.ts';
import { appendLine, chainLine, printRule } from '../rules/print.ts';

export type StepOperation =
  | { readonly kind: 'addTable' }
  /** Unless it is there. */
  | { readonly kind: 'addChain' | 'addBaseChain' | 'flushChain' | 'deleteChain'; readonly chain: string }
  | RuleOperation;

export interface RuleOperation {
  readonly kind: 'appendRule' | 'insertRule' | 'deleteRule';
  readonly chain: string;
  readonly rule: ParsedRule;
}

export function operationsOf({ pieces }: Step): readonly StepOperation[] {
  const chains: StepOperation[] = [];
  const rules: StepOperation[] = [];
  const removes: StepOperation[] = [];
  const heads: StepOperation[] = [];
  const ends: StepOperation[] = [];
  const deletes: StepOperation[] = [];
  for (const each of pieces) {
    for (const { name: chain, rules: written } of each.writes) {
      chains.push({ kind: 'addChain', chain }, { kind: 'flushChain', chain });
      for (const rule of written) rules.push({ kind: 'appendRule', chain, rule });
    }
    for (const chain of each.deletes) {
      // A chain that is gone already is as good as deleted, as it is for iptables-restore.
      chains.push({ kind: 'addChain', chain }, { kind: 'flushChain', chain });
      deletes.push({ kind: 'deleteChain', chain });
    }
    for (const { chain, rule } of each.removes) removes.push({ kind: 'deleteRule', chain, rule });
    for (const { chain, rule, place } of each.adds)
      if (place === 'end') ends.push({ kind: 'appendRule', chain, rule });
      else heads.push({ kind: 'insertRule', chain, rule });
  }
  return [...chains, ...rules, ...removes, ...heads.reverse(), ...ends, ...deletes];
}

/** As a line of a restore. */
export function printOperation(operation: StepOperation): string {
  switch (operation.kind) {
    case 'addTable':
      return 'the table';
    case 'addChain':
    case 'addBaseChain':
      return chainLine(operation.chain);
    case 'flushChain':
      return `-F ${operation.chain}`;
    case 'deleteChain':
      return `-X ${operation.chain}`;
    case 'appendRule':
      return appendLine(operation.chain, operation.rule);
    case 'insertRule':
      return `-I ${operation.chain} ${printRule(operation.rule)}`;
    case 'deleteRule':
      return `-D ${operation.chain} ${printRule(operation.rule)}`;
  }
}
