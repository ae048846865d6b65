/** Editing a chain in which many services have rules: rule by rule, and what is right stays where it is. */
import type { ServicePortId } from '../../../model/serviceTracker.ts';
import { type Piece, piece, type RuleText, type Step } from './edit.ts';
import type { CompileOptions, JumpRule, Layout, SharedRule } from './fragment.ts';
import { printRule, ruleKey } from './print.ts';
import type { ParsedRule, Tables } from './parse.ts';
import type { Rule, Table } from './rule.ts';
import { EVERY_LAYOUT } from './layouts/index.ts';
import { CHAINS } from './names.ts';
import { martianRule } from './layouts/common.ts';

/** One service port's rules in one shared chain, in order. */
export interface OwnedRules {
  readonly owner: ServicePortId;
  readonly table: Table;
  readonly chain: string;
  readonly texts: readonly string[];
  /** Left out where the kernel has no rules to compare with. */
  readonly keys: readonly string[];
}

export function ownedRules(
  owner: ServicePortId,
  shared: readonly SharedRule[],
  state: Tables,
): readonly OwnedRules[] {
  const grouped = new Map<string, OwnedRules & { readonly texts: string[]; readonly keys: string[] }>();
  for (const { table, chain, rule } of shared) {
    const id = `${table} ${chain}`;
    let group = grouped.get(id);
    if (!group) grouped.set(id, (group = { owner, table, chain, texts: [], keys: [] }));
    group.texts.push(printRule(rule));
    if ((state.get(table)?.get(chain)?.rules.length ?? 0) > 0) group.keys.push(ruleKey(rule));
  }
  return [...grouped.values()];
}

interface SharedChainWish {
  readonly chain: string;
  readonly bodies: readonly OwnedRules[];
  /** Rules that must stay the last. */
  readonly tail: readonly Rule[];
  isKnown(id: ServicePortId): boolean;
}

export function editSharedChain(existing: readonly ParsedRule[], wish: SharedChainWish): readonly Piece[] {
  const { chain } = wish;
  const rest = new Positions(existing);
  const missing =
    existing.length === 0 ? wish.bodies : wish.bodies.filter(({ keys }) => !rest.takeInOrder(keys));
  const tailStays = rest.takeTail(wish.tail.map(ruleKey));
  const place = tailStays && wish.tail.length > 0 ? 'head' : 'end';
  const text = (rule: Rule): RuleText => ({ chain, rule: printRule(rule) });
  return [
    ...rest.remaining().map((rule) => piece(ownerOf(rule, wish), { removes: [text(rule)] })),
    ...missing.map(({ owner, texts }) =>
      piece(owner, { adds: texts.map((rule) => ({ chain, rule, place })) }),
    ),
    ...(tailStays
      ? []
      : [piece(undefined, { adds: wish.tail.map((rule) => ({ ...text(rule), place: 'end' })) })]),
  ];
}

/** Whose rule this is: every rule in a shared chain names its service port first in its comment. */
function ownerOf({ matches }: Rule, wish: SharedChainWish): ServicePortId | undefined {
  const comment = matches.find((match) => match.kind === 'comment');
  const protocol = matches.find((match) => match.kind === 'protocol');
  if (comment === undefined || protocol === undefined) return undefined;
  const id = `${comment.text.split(' ', 1)[0] ?? ''}/${protocol.protocol.toUpperCase()}`;
  return wish.isKnown(id) ? id : undefined;
}

/** Rules of a chain that are not wanted so far. */
class Positions {
  readonly #rules: readonly ParsedRule[];
  readonly #byKey = new Map<string, number[]>();
  readonly #taken = new Set<number>();

  constructor(rules: readonly ParsedRule[]) {
    this.#rules = rules;
    for (const [index, rule] of rules.entries()) {
      const key = ruleKey(rule);
      const positions = this.#byKey.get(key);
      if (positions) positions.push(index);
      else this.#byKey.set(key, [index]);
    }
  }

  /** Takes these rules if all are there, one behind the other; otherwise none. Of copies a deletion leaves the last. */
  takeInOrder(keys: readonly string[]): boolean {
    let last = -1;
    const found: number[] = [];
    for (const key of keys) {
      const next = this.#byKey.get(key)?.findLast((position) => !this.#taken.has(position));
      if (next === undefined || next <= last) return false;
      found.push(next);
      last = next;
    }
    for (const position of found) this.#taken.add(position);
    return true;
  }

  /** Takes these rules if the chain ends in exactly them. */
  takeTail(keys: readonly string[]): boolean {
    const start = this.#rules.length - keys.length;
    if (start < 0) return false;
    if (!keys.every((key, index) => this.#byKey.get(key)?.includes(start + index))) return false;
    for (let index = 0; index < keys.length; index++) this.#taken.add(start + index);
    return true;
  }

  remaining(): readonly ParsedRule[] {
    return this.#rules.filter((_, index) => !this.#taken.has(index));
  }
}

// Base-chain jumps, and rules in foreign chains.

/**
 * Jumps that are missing, and those of the other layout. Where one of a chain's jumps is missing all of ours in that
 * chain are written again, because their order counts: a packet that is to be dropped must not be accepted first.
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
export function foreignRules(
  state: Tables,
  foreign: readonly SharedRule[],
  options: CompileOptions,
  table: Table,
): Piece {
  const wanted = foreign.filter((each) => each.table === table);
  const isWanted = ({ rule }: SharedRule): boolean =>
    wanted.some((each) => ruleKey(each.rule) === ruleKey(rule));
  const stale = isKubeletHere(state) ? [] : everShared(options).filter((each) => each.table === table);
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
function everShared(options: CompileOptions): readonly SharedRule[] {
  const view = { ...options.view, nodePorts: { ...options.view.nodePorts, loopback: false } };
  // The mark for dropping is one of two bits: whichever masquerading did not take, then.
  return EVERY_LAYOUT.flatMap((layout) =>
    [0x4000, 0x8000].flatMap((mark) => layout.base({ ...options, view, masqueradeMark: mark }).foreign),
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

/**
 * The rule in KUBE-FIREWALL that keeps neighbours from what listens on 127.0.0.0/8 while route_localnet is on
 * (CVE-2020-8558). It is written before route_localnet is set, and stays until route_localnet is off:
 * docs/decisions/0026-the-guard-of-route-localnet.md.
 */
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
