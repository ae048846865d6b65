/**
 * Rules of ours in chains that other programs use too: jumps from the base chains, and what is ours in KUBE-FIREWALL. They are
 * ensured one by one, as kube-proxy does, and nothing else is touched there.
 */
import type { TableClient } from './commit.ts';
import { piece } from './edit.ts';
import { type CompileOptions, isSameChain, type Layout, type SharedRule } from './fragment.ts';
import { martianRule } from './layouts/common.ts';
import { EVERY_JUMP, EVERY_LAYOUT } from './layouts/index.ts';
import { type ChainNames, CHAINS, isKubeletHere } from './names.ts';
import { appendLine, keyOfRule, ruleArgs } from './print.ts';
import type { Scope } from './rewrite.ts';
import { jumpOf, TABLES } from './rule.ts';
import type { TextRule } from './textRule.ts';

interface Wanted {
  readonly layout: Layout;
  readonly options: CompileOptions;
  readonly names: ChainNames;
  readonly scope?: Scope | undefined;
}

/** Returns the rules that were missing, or that another layout had left. */
export async function ensureForeignRules(
  client: TableClient,
  wanted: Wanted,
): Promise<readonly SharedRule[]> {
  const { layout, options, names, scope } = wanted;
  const firewall = layout.base(options).foreign;
  const stale = isKubeletHere(names) ? [] : everyFirewallRule(options);
  const staleJumps = EVERY_JUMP.filter(
    (each) => isOurs(each) && names.get(each.table)?.has(jumpOf(each.rule) ?? ''),
  );
  const isInScope = ({ table, chain }: SharedRule): boolean => scope?.has(table, chain) ?? true;
  const changed: SharedRule[] = [];
  for (const each of chainsOf([...firewall, ...stale].filter(isInScope)))
    if (names.get(each.table)?.has(each.chain) || firewall.some((rule) => isSameChain(rule, each)))
      changed.push(...(await ensureRules(client, each, 'append', firewall, stale)));
  for (const each of chainsOf([...layout.jumps, ...staleJumps].filter(isInScope)))
    changed.push(...(await ensureRules(client, each, 'prepend', layout.jumps, staleJumps)));
  return changed;
}

/**
 * Jumps are inserted at the head, so that the last one ends up first. Where one was missing, those that belong before it are
 * moved there, because their order counts: a packet that is to be dropped must not be accepted first.
 */
async function ensureRules(
  client: TableClient,
  { table, chain }: SharedRule,
  position: 'append' | 'prepend',
  all: readonly SharedRule[],
  stale: readonly SharedRule[],
): Promise<readonly SharedRule[]> {
  const isHere = (each: SharedRule): boolean => isSameChain(each, { table, chain });
  const wanted = all.filter(isHere);
  const rules = (await client.readChain(table, chain)) ?? [];
  const isOpaque = rules.some((each) => each.isOpaque);
  const changed: SharedRule[] = [];
  let isMoved = false;
  for (const each of wanted) {
    if (!hasRule(rules, each)) {
      await client.ensureRule(position, table, chain, ruleArgs(each.rule));
      changed.push(each);
      isMoved = position === 'prepend';
    } else if (isMoved && !isOpaque) {
      const moved = piece(undefined, { removes: [each], adds: [{ ...each, place: 'head' }] });
      await client.commit({ table, pieces: [moved] });
    }
  }
  if (isOpaque) return changed;
  const left = once(stale.filter((each) => isHere(each) && !isAmong(wanted, each) && hasRule(rules, each)));
  for (const { rule } of left) await client.deleteRule(table, chain, ruleArgs(rule));
  return [...changed, ...left];
}

/** kubelet writes the same jumps from INPUT and OUTPUT to KUBE-FIREWALL. */
function isOurs({ chain, rule }: SharedRule): boolean {
  return chain === 'FORWARD' || jumpOf(rule) !== CHAINS.firewall;
}

/**
 * Every rule that some layout may put into KUBE-FIREWALL, but for the guard of 127.0.0.0/8: route_localnet stays on when nobody
 * needs it any more, and with it the guard.
 */
function everyFirewallRule(options: CompileOptions): readonly SharedRule[] {
  const view = { ...options.view, nodePorts: { ...options.view.nodePorts, loopback: false } };
  // The mark for dropping is one of two bits: whichever masquerading did not take, then.
  return EVERY_LAYOUT.flatMap((layout) =>
    [0x4000, 0x8000].flatMap((mark) => layout.base({ ...options, view, masqueradeMark: mark }).foreign),
  );
}

/** Each chain once. */
function chainsOf(rules: readonly SharedRule[]): readonly SharedRule[] {
  return TABLES.flatMap((table) => {
    const inTable = rules.filter((each) => each.table === table);
    return [...new Map(inTable.map((each) => [each.chain, each])).values()];
  });
}

function once(rules: readonly SharedRule[]): readonly SharedRule[] {
  return [...new Map(rules.map((each) => [appendLine(each.chain, each.rule), each])).values()];
}

function isAmong(rules: readonly SharedRule[], { chain, rule }: SharedRule): boolean {
  return rules.some((other) => other.chain === chain && keyOfRule(other.rule) === keyOfRule(rule));
}

/** Only the jumps of a chain that iptables cannot print are known. */
function hasRule(rules: readonly TextRule[], { rule }: SharedRule): boolean {
  const key = keyOfRule(rule);
  return rules.some((each) => (each.isOpaque ? each.jump === jumpOf(rule) : each.key === key));
}

/**
 * The rule in KUBE-FIREWALL that keeps neighbours from what listens on 127.0.0.0/8 while route_localnet is on
 * (CVE-2020-8558). It is written before route_localnet is set, and stays until route_localnet is off:
 * docs/decisions/0026-the-guard-of-route-localnet.md.
 */
const GUARD = martianRule();
const GUARD_KEY = keyOfRule(GUARD.rule);

export function isLocalnetGuard(rule: TextRule): boolean {
  return rule.key === GUARD_KEY;
}

/** Writes the guard of 127.0.0.0/8 by itself, before route_localnet is set and long before the first sync. */
export async function writeLocalnetGuard(client: TableClient, { jumps }: Layout): Promise<void> {
  const { table, chain, rule } = GUARD;
  await client.ensureChain(table, chain);
  await client.ensureRule('append', table, chain, ruleArgs(rule));
  for (const jump of jumps)
    if (jump.table === table && jumpOf(jump.rule) === chain)
      await client.ensureRule('prepend', table, jump.chain, ruleArgs(jump.rule));
}
