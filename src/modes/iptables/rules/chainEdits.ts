/** Editing a chain in which many services have rules: rule by rule, and what is right stays where it is. */
import type { ServicePortId } from '../../../model/serviceTracker.ts';
import { addTo, type ChainRule, isEmptyPiece, type Piece, piece, type Step } from './edit.ts';
import type { CompileOptions, Layout, SharedRule } from './fragment.ts';
import { appendLine, ruleKey } from './print.ts';
import type { ParsedRule, Tables } from './parse.ts';
import { jumpOf, type Rule, type Table } from './rule.ts';
import { EVERY_JUMP, EVERY_LAYOUT } from './layouts/index.ts';
import { CHAINS } from './names.ts';
import { martianRule } from './layouts/common.ts';

/** One service port's rules in one shared chain, in order. */
export interface OwnedRules {
  readonly owner: ServicePortId;
  readonly rules: Rule[];
  /** Left out where the kernel has no rules to compare with. */
  readonly keys: string[];
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
  const unwanted = rest.remaining();
  // A rule of nft has no words by which iptables would delete it.
  if (unwanted.some(({ isOpaque }) => isOpaque)) return [wholeChain(existing, wish)];
  return [
    ...unwanted.map((rule) => piece(ownerOf(rule, wish), { removes: [{ chain, rule }] })),
    ...missing.map(({ owner, rules }) =>
      piece(owner, { adds: rules.map((rule) => ({ chain, rule, place })) }),
    ),
    ...(tailStays
      ? []
      : [
          piece(undefined, {
            adds: wish.tail.map((rule) => ({ chain, rule, place: 'end' })),
          }),
        ]),
  ];
}

/** Everything that belongs into the chain; what stays keeps its counters. */
function wholeChain(existing: readonly ParsedRule[], { chain, bodies, tail }: SharedChainWish): Piece {
  const counters = new Map(existing.map((rule) => [ruleKey(rule), rule.counters]));
  const rules = [...bodies.flatMap((body) => body.rules), ...tail].map((rule): ParsedRule => {
    const known = counters.get(ruleKey(rule));
    return known ? { ...rule, counters: known } : rule;
  });
  return piece(undefined, { writes: [{ name: chain, rules }] });
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
    for (const [index, rule] of rules.entries()) addTo(this.#byKey, ruleKey(rule), index);
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
export function jumpRules(state: Tables, jumps: readonly SharedRule[], table: Table): Piece {
  const wanted = jumps.filter((jump) => jump.table === table);
  const isThere = (jump: SharedRule): boolean => hasRule(state, jump);
  const incomplete = new Set(wanted.filter((jump) => !isThere(jump)).map(({ chain }) => chain));
  const isOld = (jump: SharedRule): boolean =>
    isForgettable(jump) && (incomplete.has(jump.chain) || !isAmong(wanted, jump));
  return piece(undefined, {
    removes: once(EVERY_JUMP.filter((jump) => jump.table === table && isOld(jump) && isThere(jump))),
    adds: wanted
      .filter((jump) => incomplete.has(jump.chain) && (isForgettable(jump) || !isThere(jump)))
      .toReversed() // heads are inserted backwards, and a jump that is listed later belongs nearer to the head
      .map(({ chain, rule }) => ({ chain, rule, place: 'head' })),
  });
}

/** kubelet writes the same jumps from INPUT and OUTPUT to KUBE-FIREWALL; who knows whose they are. */
function isForgettable(jump: SharedRule): boolean {
  return jump.chain === 'FORWARD' || jumpOf(jump.rule) !== CHAINS.firewall;
}

/** Rules in chains that others use too: ours are added, and stale ones of ours are taken out. */
export function foreignRules(
  state: Tables,
  foreign: readonly SharedRule[],
  options: CompileOptions,
  table: Table,
): Piece {
  const wanted = foreign.filter((each) => each.table === table);
  const isStale = (each: SharedRule): boolean =>
    each.table === table && !isAmong(wanted, each) && hasRule(state, each);
  return piece(undefined, {
    removes: isKubeletHere(state) ? [] : once(everShared(options).filter(isStale)),
    adds: wanted
      .filter((each) => !hasRule(state, each))
      .map(({ chain, rule }) => ({ chain, rule, place: 'end' })),
  });
}

/**
 * Every rule that some layout may put into a chain that is not its own, but for the guard of 127.0.0.0/8: route_localnet
 * stays on when nobody needs it any more, and with it the guard (`guardStep`).
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

/** Each once. */
function once(rules: readonly SharedRule[]): readonly ChainRule[] {
  return [...new Map(rules.map((each) => [appendLine(each.chain, each.rule), each])).values()];
}

function isAmong(rules: readonly SharedRule[], { chain, rule }: SharedRule): boolean {
  return rules.some((other) => other.chain === chain && ruleKey(other.rule) === ruleKey(rule));
}

function hasRule(state: Tables, { table, chain, rule }: SharedRule): boolean {
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

export const GUARD_TABLE = GUARD.table;

/** The chains that it is about. */
export function guardChains(layout: Layout): readonly string[] {
  return [...new Set([GUARD.chain, ...guardJumps(layout).map(({ chain }) => chain)])];
}

function guardJumps({ jumps }: Layout): readonly SharedRule[] {
  return jumps.filter((jump) => jump.table === GUARD.table && jumpOf(jump.rule) === GUARD.chain);
}

/** What is missing of the guard, to be written by itself; `undefined` where nothing is. */
export function guardStep(state: Tables, layout: Layout): Step | undefined {
  const { table, chain } = GUARD;
  const isMissing = (each: SharedRule): boolean => !hasRule(state, each);
  const jumps = guardJumps(layout);
  const missing = piece(undefined, {
    writes: state.get(table)?.has(chain) ? [] : [{ name: chain, rules: [] }],
    adds: [
      ...[GUARD].filter(isMissing).map((each) => ({ ...each, place: 'end' as const })),
      ...jumps.filter(isMissing).map((jump) => ({ ...jump, place: 'head' as const })),
    ],
  });
  return isEmptyPiece(missing) ? undefined : { table, pieces: [missing] };
}
