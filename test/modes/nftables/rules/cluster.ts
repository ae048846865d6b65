/**
 * What is in the kernel, as lines that are the same for two tables that mean the same: a set that was needed once and is
 * empty now changes nothing, nor do the rules that ask it, nor a chain that no element leads to any more.
 */
import { printNftRule } from '../../../../src/modes/nftables/print.ts';
import { printElement } from '../../../../src/modes/nftables/rules/print.ts';
import { SCOPES, NFT_SETS } from '../../../../src/modes/nftables/rules/names.ts';
import type { Element, RuleSpec, Statement } from '../../../../src/modes/nftables/rules/table.ts';
import type { FakeNftKernel } from './fakeKernel.ts';
import { setOf } from './fakeTable.ts';

/** Sets that are there whether or not anything is in them. */
const FIXED: ReadonlySet<string> = new Set([
  ...Object.values(NFT_SETS),
  ...Object.values(SCOPES.address),
  ...Object.values(SCOPES.nodePort),
]);
/** Asked only since some service port had affinity. */
const LATER: ReadonlySet<string> = new Set([SCOPES.address.remembering, SCOPES.nodePort.remembering]);

const STICKY_CHAIN = /^sticky-\w+-\d+$/;

export function meaningOf({ ruleset, elements, family }: FakeNftKernel): readonly string[] {
  const inUse = new Set<string>(elements.map(({ set }) => set));
  const ledTo = new Set(elements.map(({ chain }) => chain));
  const isMeant = (set: string): boolean => (FIXED.has(set) && !LATER.has(set)) || inUse.has(set);
  return [
    ...ruleset.sets.filter(({ name }) => isMeant(name) && !isAffinity(name)).map(({ name }) => `set ${name}`),
    ...elements.filter(({ set }) => !isAffinity(set)).map(printPlain),
    ...ruleset.chains.flatMap(({ name, hook, rules }) => {
      if (STICKY_CHAIN.test(name) && !ledTo.has(name)) return [];
      const meant = rules.filter((rule) => !isIdle(rule, isMeant));
      if (meant.length === 0) return [];
      return [
        `chain ${name} ${hook ? `${hook.point} ${hook.priority}` : ''}`,
        inOneOrder(
          name,
          meant.map((rule) => `${name}: ${printNftRule(rule, family)}`),
        ).join('\n'),
      ];
    }),
  ].sort();
}

/** Sizes of pools stand in the order in which they came. */
function inOneOrder(chain: string, rules: readonly string[]): readonly string[] {
  return /^(?:ports-)?(?:any|outside)$/.test(chain) ? [...rules].sort() : rules;
}

/** Without its comment. */
function printPlain(element: Element): string {
  const { comment: _, ...plain } = element;
  return `${plain.set} { ${printElement(plain)} }`;
}

function isAffinity(set: string): boolean {
  return set.startsWith('affinity-');
}

/** Asks a set that is empty, so nothing comes of it; who is remembered comes and goes by itself. */
function isIdle({ statements }: RuleSpec, isMeant: (set: string) => boolean): boolean {
  return statements.some((statement: Statement) => {
    const set = setOf(statement);
    return set !== undefined && (isAffinity(set) ? statement.kind === 'dnatByMap' : !isMeant(set));
  });
}
