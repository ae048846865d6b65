/**
 * The rule in KUBE-FIREWALL that keeps neighbours from what listens on 127.0.0.0/8 while route_localnet is on
 * (CVE-2020-8558). It is written before route_localnet is set, and stays until route_localnet is off:
 * docs/decisions/0026-the-guard-of-route-localnet.md.
 */
import { martianRule } from './build.ts';
import { type Piece, piece, type Step } from './edit.ts';
import type { JumpRule, Layout } from './fragment.ts';
import { CHAINS } from './names.ts';
import { ruleKey } from './normalise.ts';
import type { Tables } from './parse.ts';
import { printRule } from './print.ts';
import type { Rule } from './rule.ts';

const GUARD = martianRule();
const GUARD_KEY = ruleKey(GUARD.rule);

export function isLocalnetGuard(rule: Rule): boolean {
  return ruleKey(rule) === GUARD_KEY;
}

/** What is missing of the guard, to be written by itself; `undefined` where nothing is. */
export function guardStep(state: Tables, layout: Layout): Step | undefined {
  const chains = state.get('filter');
  const has = (chain: string, rule: Rule): boolean =>
    chains?.get(chain)?.rules.some((other) => ruleKey(other) === ruleKey(rule)) ?? false;
  const pieces: Piece[] = [];
  if (!chains?.has(CHAINS.firewall))
    pieces.push(piece(undefined, { writes: [{ name: CHAINS.firewall, rules: [] }] }));
  if (!has(CHAINS.firewall, GUARD.rule))
    pieces.push(
      piece(undefined, {
        adds: [{ chain: CHAINS.firewall, rule: printRule(GUARD.rule), place: 'end' }],
      }),
    );
  const jumps = layout.jumps.filter((jump) => leadsToGuard(jump) && !has(jump.from, jump.rule));
  if (jumps.length > 0)
    pieces.push(
      piece(undefined, {
        adds: jumps.map(({ from, rule }) => ({ chain: from, rule: printRule(rule), place: 'head' })),
      }),
    );
  return pieces.length > 0 ? { table: 'filter', pieces } : undefined;
}

function leadsToGuard({ table, rule: { target } }: JumpRule): boolean {
  return table === 'filter' && target?.kind === 'jump' && target.chain === CHAINS.firewall;
}
