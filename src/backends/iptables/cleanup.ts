/**
 * Takes out everything that is ours, from nothing but the kernel's state. What is ours is known by its name: the
 * fixed chains, and the prefixes of service chains. kubelet's chains, and what others have, stay.
 */
import { CHAINS_PER_RESTORE, piece, type RuleText, type Step } from './edit.ts';
import { isKubeletHere } from './entrances.ts';
import { EVERY_LAYOUT } from './layouts/index.ts';
import { CHAINS, IPVS_CHAINS, isServiceChain } from './names.ts';
import { ruleKey } from './normalise.ts';
import type { ParsedChain, ParsedRule, Tables } from './parse.ts';
import { printRule } from './print.ts';
import { jumpOf } from './restoreChecks.ts';
import type { Table } from './rule.ts';

export interface CleanupPlan {
  readonly steps: readonly Step[];
  readonly chains: readonly { readonly table: Table; readonly chain: string }[];
  readonly rules: readonly { readonly table: Table; readonly rule: string }[];
  /** Emptied but not deleted, because somebody else's rules jump to them. */
  readonly kept: readonly { readonly table: Table; readonly chain: string }[];
}

const NOTHING: CleanupPlan = { steps: [], chains: [], rules: [], kept: [] };

const TABLES: readonly Table[] = ['filter', 'nat', 'mangle'];

export function planCleanup(state: Tables, chainsPerRestore: number = CHAINS_PER_RESTORE): CleanupPlan {
  const parts = TABLES.map((table) => cleanTable(state, table, chainsPerRestore));
  return {
    steps: parts.flatMap((part) => part.steps),
    chains: parts.flatMap((part) => part.chains),
    rules: parts.flatMap((part) => part.rules),
    kept: parts.flatMap((part) => part.kept),
  };
}

function cleanTable(state: Tables, table: Table, size: number): CleanupPlan {
  const chains = state.get(table);
  if (!chains) return NOTHING;
  const firewall = cleanFirewall(state, table);
  const ours = new Set(
    [...chains.keys()].filter((chain) => isOurs(state, table, chain)).concat(firewall.chains),
  );
  const jumps = ourJumps(chains, ours, table);
  const removes = [...jumps, ...firewall.rules];
  const called = calledByOthers(chains, ours, table);
  const first = removes.length > 0 ? [{ table, pieces: [piece(undefined, { removes })] }] : [];
  const goes = [...ours].filter((chain) => !called.has(chain));
  return {
    steps: [...first, ...emptyAll(table, [...called], size), ...emptyThenDelete(table, goes, size)],
    chains: goes.map((chain) => ({ table, chain })),
    rules: removes.map(({ chain, rule }) => ({ table, rule: `${chain} ${rule}` })),
    kept: [...called].map((chain) => ({ table, chain })),
  };
}

/** Chains call each other, so all are emptied before the first is deleted. */
function emptyThenDelete(table: Table, chains: readonly string[], size: number): readonly Step[] {
  const gone = inChunks(chains, size).map(
    (chunk): Step => ({ table, pieces: [piece(undefined, { deletes: chunk })] }),
  );
  return gone.length > 1 ? [...emptyAll(table, chains, size), ...gone] : gone;
}

function emptyAll(table: Table, chains: readonly string[], size: number): readonly Step[] {
  return inChunks(chains, size).map((chunk) => ({
    table,
    pieces: [piece(undefined, { writes: chunk.map((name) => ({ name, rules: [] })) })],
  }));
}

function inChunks(chains: readonly string[], size: number): readonly (readonly string[])[] {
  const chunks: (readonly string[])[] = [];
  for (let start = 0; start < chains.length; start += size) chunks.push(chains.slice(start, start + size));
  return chunks;
}

function isOurs(state: Tables, table: Table, chain: string): boolean {
  if (chain === CHAINS.canary) return true;
  if (table === 'mangle') return false;
  if (chain === CHAINS.markDrop) return table === 'nat' && !isKubeletHere(state);
  return isServiceChain(chain) || fixedChains(table).has(chain);
}

const fixedChains = (table: Table): ReadonlySet<string> => {
  const shared = EVERY_LAYOUT.flatMap((layout) => layout.sharedChains).filter((ref) => ref.table === table);
  const base = table === 'nat' ? [CHAINS.postrouting, CHAINS.markMasquerade] : [CHAINS.forward];
  return new Set([...shared.map((ref) => ref.chain), ...base, ...Object.values(IPVS_CHAINS)]);
};

function ourJumps(
  chains: ReadonlyMap<string, ParsedChain>,
  ours: ReadonlySet<string>,
  table: Table,
): readonly RuleText[] {
  const keys = jumpKeys(table);
  return [...chains]
    .filter(([name]) => !ours.has(name))
    .flatMap(([chain, { rules }]) =>
      rules
        .filter((rule) => jumpsInto(rule, ours) || chain === 'FORWARD') // where kubelet has no jump to KUBE-FIREWALL
        .filter((rule) => keys.has(`${chain} ${ruleKey(rule)}`))
        .map((rule) => ({ chain, rule: printRule(rule) })),
    );
}

/** Chains of ours that somebody else's rules jump to. Their rules are not ours to touch, so the chain must stay. */
function calledByOthers(
  chains: ReadonlyMap<string, ParsedChain>,
  ours: ReadonlySet<string>,
  table: Table,
): ReadonlySet<string> {
  const keys = jumpKeys(table);
  const called = new Set<string>();
  for (const [chain, { rules }] of chains) {
    if (ours.has(chain)) continue;
    for (const rule of rules) {
      const next = jumpOf(rule);
      if (next !== undefined && ours.has(next) && !keys.has(`${chain} ${ruleKey(rule)}`)) called.add(next);
    }
  }
  return called;
}

function jumpKeys(table: Table): ReadonlySet<string> {
  return new Set(
    EVERY_LAYOUT.flatMap(({ jumps }) => jumps)
      .filter((jump) => jump.table === table)
      .map((jump) => `${jump.from} ${ruleKey(jump.rule)}`),
  );
}

function jumpsInto({ target }: ParsedRule, ours: ReadonlySet<string>): boolean {
  return target?.kind === 'jump' && ours.has(target.chain);
}

/** KUBE-FIREWALL is kubelet's where there is one; otherwise our rules go, and the chain if nothing else is in it. */
function cleanFirewall(
  state: Tables,
  table: Table,
): { readonly rules: readonly RuleText[]; readonly chains: readonly string[] } {
  const chain = state.get(table)?.get(CHAINS.firewall);
  if (table !== 'filter' || !chain || isKubeletHere(state)) return { rules: [], chains: [] };
  const foreign = chain.rules.filter((rule) => !isOurFirewallRule(rule));
  if (foreign.length === 0) return { rules: [], chains: [CHAINS.firewall] };
  const rules = chain.rules.filter(isOurFirewallRule);
  return { rules: rules.map((rule) => ({ chain: CHAINS.firewall, rule: printRule(rule) })), chains: [] };
}

const FIREWALL_COMMENTS = new Set([
  'block incoming localnet connections',
  'kubernetes firewall for dropping marked packets',
]);

function isOurFirewallRule(rule: ParsedRule): boolean {
  return (
    rule.target?.kind === 'drop' &&
    rule.matches.some((match) => match.kind === 'comment' && FIREWALL_COMMENTS.has(match.text))
  );
}
