/** The ways from the kernel's own chains, and from chains that others use too, into ours. */
import { type Piece, piece, type RuleText } from './edit.ts';
import type { CompileOptions, JumpRule, SharedRule } from './fragment.ts';
import { EVERY_LAYOUT } from './layouts/index.ts';
import { CHAINS } from './names.ts';
import { ruleKey } from './normalise.ts';
import type { Tables } from './parse.ts';
import { printRule } from './print.ts';
import type { Rule, Table } from './rule.ts';

/**
 * Jumps that are missing, and those of the other layout. Where one of a chain's jumps is missing all of ours in that
 * chain are written anew, because their order counts: a packet that is to be dropped must not be accepted first.
 */
export function jumpRules(state: Tables, jumps: readonly JumpRule[], table: Table): Piece {
  const wanted = jumps.filter((jump) => jump.table === table);
  const isThere = ({ from, rule }: JumpRule): boolean => hasRule(state, table, from, rule);
  const incomplete = new Set(wanted.filter((jump) => !isThere(jump)).map(({ from }) => from));
  const isOld = (jump: JumpRule): boolean =>
    isForgettable(jump) && (incomplete.has(jump.from) || !wanted.some((other) => sameJump(jump, other)));
  const old = EVERY_LAYOUT.flatMap((layout) => layout.jumps).filter(
    (jump) => jump.table === table && isOld(jump) && isThere(jump),
  );
  const text = ({ from, rule }: JumpRule): RuleText => ({ chain: from, rule: printRule(rule) });
  return piece(undefined, {
    removes: unique(old.map(text)),
    adds: wanted
      .filter((jump) => incomplete.has(jump.from) && (isForgettable(jump) || !isThere(jump)))
      .toReversed() // heads are inserted backwards, and a jump that is listed later belongs nearer to the head
      .map((jump) => ({ ...text(jump), place: 'head' })),
  });
}

/** kubelet writes the same jumps from INPUT and OUTPUT to KUBE-FIREWALL; who knows whose they are. */
function isForgettable({ from, rule }: JumpRule): boolean {
  return from === 'FORWARD' || rule.target?.kind !== 'jump' || rule.target.chain !== CHAINS.firewall;
}

function sameJump(a: JumpRule, b: JumpRule): boolean {
  return a.from === b.from && ruleKey(a.rule) === ruleKey(b.rule);
}

/** Rules in chains that others use too: ours are added, and those of ours that have had their day are taken out. */
export function adoptedRules(
  state: Tables,
  adopted: readonly SharedRule[],
  options: CompileOptions,
  table: Table,
): Piece {
  const wanted = adopted.filter((each) => each.table === table);
  const isWanted = ({ rule }: SharedRule): boolean =>
    wanted.some((each) => ruleKey(each.rule) === ruleKey(rule));
  const stale = isKubeletHere(state) ? [] : everAdopted(options).filter((each) => each.table === table);
  const text = ({ chain, rule }: SharedRule): RuleText => ({ chain, rule: printRule(rule) });
  const isThere = ({ chain, rule }: SharedRule): boolean => hasRule(state, table, chain, rule);
  return piece(undefined, {
    removes: unique(stale.filter((each) => !isWanted(each) && isThere(each)).map(text)),
    adds: wanted.filter((each) => !isThere(each)).map((each) => ({ ...text(each), place: 'end' })),
  });
}

/**
 * Every rule that some layout may put into a chain that is not its own, but for the guard of 127.0.0.0/8: route_localnet
 * stays on when nobody needs it any more, and with it the guard (localnetGuard.ts).
 */
function everAdopted(options: CompileOptions): readonly SharedRule[] {
  const view = { ...options.view, nodePorts: { ...options.view.nodePorts, loopback: false } };
  // The mark for dropping is one of two bits: whichever masquerading did not take, then.
  return EVERY_LAYOUT.flatMap((layout) =>
    [0x4000, 0x8000].flatMap((mark) => layout.base({ ...options, view, masqueradeMark: mark }).adopted),
  );
}

/** kubelet has chains and rules of the same names and words; where it runs they may be its own. */
export function isKubeletHere(state: Tables): boolean {
  return [...state.values()].some((chains) => chains.has('KUBE-KUBELET-CANARY'));
}

function unique(rules: readonly RuleText[]): readonly RuleText[] {
  return [...new Map(rules.map((each) => [`${each.chain} ${each.rule}`, each])).values()];
}

function hasRule(state: Tables, table: Table, chain: string, rule: Rule): boolean {
  const rules = state.get(table)?.get(chain)?.rules;
  if (!rules) return false;
  const key = ruleKey(rule);
  return rules.some((other) => ruleKey(other) === key);
}
