/**
 * What is in the kernel, as text that is the same for two states that mean the same: in a chain that services share,
 * it matters how the rules of one service follow each other, and that the way to the node ports comes last.
 */
import type { Layout } from '../../src/backends/iptables/fragment.ts';
import { ruleKey } from '../../src/backends/iptables/normalise.ts';
import type { ParsedRule, Tables } from '../../src/backends/iptables/parse.ts';

const TABLES = ['filter', 'nat'];

export function describeState(tables: Tables, layout: Layout): readonly string[] {
  const lines: string[] = [];
  for (const table of TABLES) {
    const shared = new Set(
      [...layout.sharedChains, ...layout.adoptedChains]
        .filter((ref) => ref.table === table)
        .map(({ chain }) => chain),
    );
    for (const [name, { policy, rules }] of [...(tables.get(table) ?? [])].sort(byName)) {
      lines.push(`${table} ${name} ${policy ?? '-'}`);
      const ordered = shared.has(name) ? byOwner(rules) : rules;
      for (const rule of ordered) lines.push(`${table} ${name}: ${ruleKey(rule).replaceAll('\n', ' | ')}`);
    }
  }
  return lines;
}

function byName([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : 1;
}

/** Sorted by owner; what has no owner stays behind what was before it. */
function byOwner(rules: readonly ParsedRule[]): readonly ParsedRule[] {
  const owned = rules.filter((rule) => ownerOf(rule) !== undefined);
  const tail = rules.filter((rule) => ownerOf(rule) === undefined);
  const isLast = tail.every((rule, index) => rules[owned.length + index] === rule);
  if (!isLast) return rules;
  return [
    ...owned.sort((a, b) =>
      (ownerOf(a) ?? '') < (ownerOf(b) ?? '') ? -1 : ownerOf(a) === ownerOf(b) ? 0 : 1,
    ),
    ...tail,
  ];
}

/** Rules of services name it first in their comments; those of nobody have other comments, or none. */
function ownerOf(rule: ParsedRule): string | undefined {
  const protocol = rule.matches.find(({ kind }) => kind === 'protocol');
  const comment = rule.matches.find((match) => match.kind === 'comment');
  if (protocol?.kind !== 'protocol' || comment === undefined) return undefined;
  return `${comment.text.split(' ', 1)[0] ?? ''}/${protocol.protocol}`;
}
