/** What the kernel and its tools refuse: of a chain's name, of a single rule, and of a table as a whole. */
import type { ParsedChain } from './parse.ts';
import type { Rule } from './rule.ts';

const CHAIN_NAME_LENGTH = 28;
const TAKEN_NAMES: ReadonlySet<string> = new Set(['ACCEPT', 'DROP', 'RETURN', 'QUEUE']);
/** nf_tables keeps a stack of 16 chains, and the built-in chain is the first of them. */
const NESTED_CHAINS = 15;

export function checkChainName(chain: string): void {
  if (chain.length > CHAIN_NAME_LENGTH) throw new Error(`the chain name ${chain} is too long`);
  if (chain.startsWith('-') || chain.startsWith('!') || TAKEN_NAMES.has(chain)) {
    throw new Error(`${chain} cannot be a chain's name`);
  }
}

export function checkRule(table: string, chain: string, rule: Rule): void {
  const { matches, target } = rule;
  const protocols = matches.filter((match) => match.kind === 'protocol');
  if (protocols.length > 1) throw new Error('more than one protocol');
  if (protocols.length === 0 && matches.some((match) => match.kind === 'destinationPort')) {
    throw new Error('a port without a protocol');
  }
  if (
    (chain === 'OUTPUT' || chain === 'POSTROUTING') &&
    matches.some((match) => match.kind === 'inInterface')
  ) {
    throw new Error(`-i in ${chain}`);
  }
  if ((target?.kind === 'dnat' || target?.kind === 'masquerade') && table !== 'nat') {
    throw new Error(`${target.kind} in table ${table}`);
  }
  if (target?.kind === 'reject' && table !== 'filter') throw new Error(`reject in table ${table}`);
  if (target?.kind === 'dnat' && protocols.length === 0 && /\d:\d+$|\]:\d+$/.test(target.to)) {
    throw new Error('dnat to a port without a protocol');
  }
}

/** Only what a packet can reach is checked, as in the kernel: a loop that nothing leads to may stand. */
export function checkTable(chains: ReadonlyMap<string, ParsedChain>, builtIn: readonly string[]): void {
  const heights = new Map<string, number>();
  for (const root of builtIn) {
    if (height(root, chains, heights) > NESTED_CHAINS)
      throw new Error(`too many nested chains below ${root}`);
    checkHook(root, chains);
  }
}

/** How many jumps can follow one another from here. */
function height(
  chain: string,
  chains: ReadonlyMap<string, ParsedChain>,
  heights: Map<string, number>,
): number {
  const known = heights.get(chain);
  if (known === Infinity) throw new Error(`a loop through chain ${chain}`);
  if (known !== undefined) return known;
  heights.set(chain, Infinity);
  let highest = 0;
  for (const rule of chains.get(chain)?.rules ?? []) {
    const next = jumpOf(rule);
    if (next !== undefined) highest = Math.max(highest, 1 + height(next, chains, heights));
  }
  heights.set(chain, highest);
  return highest;
}

/** Addresses of arriving and local packets are rewritten before routing, those of leaving ones after it. */
function checkHook(root: string, chains: ReadonlyMap<string, ParsedChain>): void {
  const reached = new Set([root]);
  for (const chain of reached) {
    for (const rule of chains.get(chain)?.rules ?? []) {
      const kind = rule.target?.kind;
      if (kind === 'dnat' && root !== 'PREROUTING' && root !== 'OUTPUT') {
        throw new Error(`dnat in chain ${chain}, reached from ${root}`);
      }
      if (kind === 'masquerade' && root !== 'POSTROUTING') {
        throw new Error(`masquerade in chain ${chain}, reached from ${root}`);
      }
      const next = jumpOf(rule);
      if (next !== undefined) reached.add(next);
    }
  }
}

/** The chain that a rule jumps or goes to. */
export function jumpOf(rule: Rule): string | undefined {
  const { target } = rule;
  if (target?.kind === 'jump') return target.chain;
  return target?.kind === 'other' && target.args[0] === '-g' ? target.args[1] : undefined;
}
