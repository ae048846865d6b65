/**
 * What is in the kernel, as text that is the same for two states that mean the same: in a chain that services share,
 * it matters how the rules of one service follow each other, and that the way to the node ports comes last.
 */
import type { ChainRef, Layout } from '../../src/modes/iptables/rules/fragment.ts';
import { martianRule } from '../../src/modes/iptables/rules/layouts/common.ts';
import { CHAINS } from '../../src/modes/iptables/rules/names.ts';
import { keyOfRule } from '../../src/modes/iptables/rules/print.ts';
import type { TextRule } from '../../src/modes/iptables/rules/textRule.ts';
import type { MemoryTables } from '../modes/iptables/rules/tables.ts';

const TABLES = ['filter', 'nat'];
/** All their rules drop. */
const ANY_ORDER: ReadonlySet<string> = new Set(['KUBE-IPVS-OUT-FILTER']);
const GUARD = printKey(keyOfRule(martianRule().rule));

/**
 * `anyOrder` for chains that are not ours alone, the kernel's and kubelet's: a rule that was there before a restart
 * stays where it stands.
 */
export function describeState(
  tables: MemoryTables,
  layout: Layout,
  jumps: 'inOrder' | 'anyOrder' = 'inOrder',
): readonly string[] {
  const lines: string[] = [];
  for (const table of TABLES) {
    const named = (refs: readonly ChainRef[]): ReadonlySet<string> =>
      new Set(refs.filter((ref) => ref.table === table).map(({ chain }) => chain));
    const shared = named(layout.sharedChains);
    const adopted = named(layout.foreignChains);
    for (const [name, { policy, rules }] of [...(tables.get(table) ?? [])].sort(byName)) {
      const ordered = shared.has(name) ? byOwner(rules) : rules;
      const texts = ordered.map((rule) => `${table} ${name}: ${printKey(rule.key)}`);
      const isOurs = policy === undefined && !adopted.has(name) && !ANY_ORDER.has(name);
      lines.push(`${table} ${name} ${policy ?? '-'}`);
      lines.push(...(isOurs || jumps === 'inOrder' ? texts : texts.sort()));
    }
  }
  return lines;
}

/**
 * The state without a localnet guard that the expected state lacks. Settings that came before may have written it, and
 * nothing but a clean-up removes it.
 */
export function describeStateAfterOthers(
  tables: MemoryTables,
  layout: Layout,
  expected: readonly string[],
): readonly string[] {
  const isGuard = (line: string): boolean => line === `filter ${CHAINS.firewall}: ${GUARD}`;
  return describeState(tables, layout, 'anyOrder').filter(
    (line) => !isGuard(line) || expected.includes(line),
  );
}

/** Sorted by owner, if what has no owner comes last, as it should. */
function byOwner(rules: readonly TextRule[]): readonly TextRule[] {
  const owned = rules.filter((rule) => ownerOf(rule) !== undefined);
  const tail = rules.slice(owned.length);
  if (tail.some((rule) => ownerOf(rule) !== undefined)) return rules;
  return [...owned.sort((a, b) => compare(ownerOf(a) ?? '', ownerOf(b) ?? '')), ...tail];
}

/** Rules of services name theirs first in the comment; those of nobody have other comments, or none. */
function ownerOf({ options }: TextRule): string | undefined {
  const valueOf = (name: string): string | undefined =>
    options.find((option) => option.name === name)?.values[0];
  const [protocol, comment] = [valueOf('-p'), valueOf('--comment')];
  if (protocol === undefined || comment === undefined) return undefined;
  return `${comment.split(' ', 1)[0] ?? ''}/${protocol}`;
}

function printKey(key: string): string {
  return key.replaceAll('\n', ' | ');
}

function byName([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return compare(a, b);
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
