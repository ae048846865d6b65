/**
 * How often a packet asks a set at most. It follows from the rules alone, and these from the pool sizes and the time-outs
 * in use: the number of services does not come into it.
 */
import type {
  ChainSpec,
  HookSpec,
  RuleSpec,
  Ruleset,
  Statement,
} from '../../../../src/modes/nftables/rules/table.ts';

/** For one packet, through the two hooks that it passes. */
export function mostLookups(ruleset: Ruleset): number {
  const chains = new Map(ruleset.chains.map((chain) => [chain.name, chain]));
  const at = (point: HookSpec['point']): number =>
    ruleset.chains
      .filter(({ hook }) => hook?.point === point)
      .reduce((sum, chain) => sum + ofChain(chain, chains), 0);
  return Math.max(at('prerouting'), at('output')) + Math.max(at('input'), at('postrouting'));
}

type Chains = ReadonlyMap<string, ChainSpec>;

function ofChain({ rules }: ChainSpec, chains: Chains): number {
  return rules.reduce((sum, rule) => sum + ofRule(rule, chains), 0);
}

function ofRule({ statements }: RuleSpec, chains: Chains): number {
  return statements.reduce((sum, statement) => sum + ofStatement(statement, chains), 0);
}

function ofStatement(statement: Statement, chains: Chains): number {
  switch (statement.kind) {
    case 'inSet':
    case 'dnatByMap':
    case 'learn':
      return 1;
    case 'verdictByMap':
      return 1 + Math.max(0, ...largest(statement.map, chains));
    case 'jump': {
      const chain = chains.get(statement.chain);
      return chain ? ofChain(chain, chains) : 0;
    }
    default:
      return 0;
  }
}

/** The chains that a map of large pools may lead to have its name at the beginning of theirs. */
function largest(map: string, chains: Chains): readonly number[] {
  return [...chains.values()]
    .filter(({ name }) => name.startsWith(`${map}-`))
    .map((chain) => ofChain(chain, chains));
}
