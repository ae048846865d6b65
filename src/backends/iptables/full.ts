/**
 * From what the kernel really has to what it should have. At a cold start that is everything; after a restart or
 * when somebody else has been at our chains, it is the difference.
 *
 * Leaves come first and the way in comes last, so that no packet ever meets a half-written service, and in restores
 * of some hundred chains, because the nft variant's restore takes time with the square of the chains in it.
 */
import type { ServicePortId } from '../../model/servicePort.ts';
import { type ChainText, isEmpty, type Piece, piece, type RuleText, type Step } from './edit.ts';
import type {
  BaseFragment,
  CompileOptions,
  Fragment,
  JumpRule,
  Layout,
  OwnChain,
  SharedRule,
} from './fragment.ts';
import { TABLES } from './incremental.ts';
import { LAYOUT_NAMES, LAYOUTS } from './layouts/index.ts';
import { CHAINS, isServiceChain, PREFIXES } from './names.ts';
import { ruleKey } from './normalise.ts';
import type { ParsedChain, ParsedRule, Tables } from './parse.ts';
import { printRule } from './print.ts';
import type { Rule, Table } from './rule.ts';

export interface Desired {
  readonly layout: Layout;
  readonly options: CompileOptions;
  readonly base: BaseFragment;
  readonly fragments: ReadonlyMap<ServicePortId, Fragment>;
}

/** What to do, in order. Each phase assumes that the ones before it are done. */
export interface FullPlan {
  /** Chains without which the others cannot be written. */
  readonly foundation: readonly Step[];
  /** Chains of services: endpoints first. */
  readonly chains: readonly Step[];
  /** Rules in shared chains, and the jumps into them: here a service begins to work. */
  readonly entries: readonly Step[];
  /** Chains that nothing needs any more. */
  readonly garbage: readonly Step[];
}

/** Chains in one restore: beyond some hundred the nft variant slows down. */
const CHUNK = 500;

export function planFull(state: Tables, desired: Desired): FullPlan {
  return {
    foundation: TABLES.map((table) => foundation(state, desired, table)).filter(hasPieces),
    chains: serviceChains(state, desired),
    entries: TABLES.map((table) => entries(state, desired, table)).filter(hasPieces),
    garbage: TABLES.flatMap((table) => garbage(state, desired, table)),
  };
}

function foundation(state: Tables, desired: Desired, table: Table): Step {
  const { layout, base } = desired;
  const empties = [...layout.sharedChains, ...layout.adoptedChains]
    .filter((ref) => ref.table === table && !chainOf(state, table, ref.chain))
    .map((ref): ChainText => ({ name: ref.chain, rules: [] }));
  const writes = base.chains
    .filter((chain) => chain.table === table)
    .flatMap((chain) => rewrite(chainOf(state, table, chain.name), chain));
  return { table, pieces: nonEmpty([piece(undefined, { writes: [...empties, ...writes] })]) };
}

function serviceChains(state: Tables, desired: Desired): readonly Step[] {
  const byLevel = new Map<string, Piece[]>();
  for (const [owner, fragment] of desired.fragments) {
    for (const chain of fragment.chains) {
      const writes = rewrite(chainOf(state, chain.table, chain.name), chain);
      if (writes.length === 0) continue;
      const key = `${chain.level} ${chain.table}`;
      const pieces = byLevel.get(key);
      if (pieces) pieces.push(piece(owner, { writes }));
      else byLevel.set(key, [piece(owner, { writes })]);
    }
  }
  return [...byLevel]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([key, pieces]) => chunked(key.endsWith('filter') ? 'filter' : 'nat', pieces));
}

function chunked(table: Table, pieces: readonly Piece[]): readonly Step[] {
  const steps: Step[] = [];
  for (let start = 0; start < pieces.length; start += CHUNK) {
    steps.push({ table, pieces: pieces.slice(start, start + CHUNK) });
  }
  return steps;
}

/** The chain as it has to be written, or nothing if the kernel has it so. Counters of rules that stay are kept. */
function rewrite(existing: ParsedChain | undefined, chain: OwnChain): readonly ChainText[] {
  if (!existing) return [{ name: chain.name, rules: chain.rules.map(printRule) }];
  const keys = chain.rules.map(ruleKey);
  const existingKeys = existing.rules.map(ruleKey);
  if (keys.length === existingKeys.length && keys.every((key, index) => key === existingKeys[index]))
    return [];
  const counted = new Map(existing.rules.map((rule, index) => [existingKeys[index], rule]));
  return [
    {
      name: chain.name,
      rules: chain.rules.map((rule, index) => withCounters(rule, counted.get(keys[index]))),
    },
  ];
}

function withCounters(rule: Rule, existing: ParsedRule | undefined): string {
  const text = printRule(rule);
  const counters = existing?.counters;
  return counters ? `[${counters.packets}:${counters.bytes}] ${text}` : text;
}

function entries(state: Tables, desired: Desired, table: Table): Step {
  const { layout, base } = desired;
  const bodies = layout.sharedChains.filter((ref) => ref.table === table).map((ref) => ref.chain);
  const shared = bodies.flatMap((chain) =>
    sharedChain(chainOf(state, table, chain), desired, {
      chain,
      rules: rulesByOwner(desired, table, chain),
      tail: base.tail.filter((tail) => tail.table === table && tail.chain === chain),
    }),
  );
  return {
    table,
    pieces: nonEmpty([...shared, adopted(state, desired, table), jumps(state, layout, table)]),
  };
}

interface SharedChainWish {
  readonly chain: string;
  readonly rules: ReadonlyMap<ServicePortId, readonly Rule[]>;
  readonly tail: readonly SharedRule[];
}

function rulesByOwner(
  desired: Desired,
  table: Table,
  chain: string,
): ReadonlyMap<ServicePortId, readonly Rule[]> {
  const rules = new Map<ServicePortId, readonly Rule[]>();
  for (const [owner, fragment] of desired.fragments) {
    const own = fragment.shared.filter((each) => each.table === table && each.chain === chain);
    if (own.length > 0)
      rules.set(
        owner,
        own.map(({ rule }) => rule),
      );
  }
  return rules;
}

/** Edits a chain rule by rule; what is right stays where it is. */
function sharedChain(
  existing: ParsedChain | undefined,
  desired: Desired,
  wish: SharedChainWish,
): readonly Piece[] {
  const { chain } = wish;
  const rest = new Positions(existing?.rules ?? []);
  const missing = [...wish.rules].filter(([, rules]) => !rest.takeInOrder(rules.map(ruleKey)));
  const tailStays = rest.takeTail(wish.tail.map(({ rule }) => ruleKey(rule)));
  const place = tailStays && wish.tail.length > 0 ? 'head' : 'end';
  const text = (rule: Rule): RuleText => ({ chain, rule: printRule(rule) });
  return [
    ...rest.remaining().map((rule) => piece(ownerOf(rule, desired), { removes: [text(rule)] })),
    ...missing.map(([owner, rules]) =>
      piece(owner, { adds: rules.map((rule) => ({ ...text(rule), place })) }),
    ),
    ...(tailStays
      ? []
      : [piece(undefined, { adds: wish.tail.map(({ rule }) => ({ ...text(rule), place: 'end' })) })]),
  ];
}

/** Whose rule this is: every rule in a shared chain names its service port first in its comment. */
function ownerOf({ matches }: Rule, { fragments }: Desired): ServicePortId | undefined {
  const comment = matches.find((match) => match.kind === 'comment');
  const protocol = matches.find((match) => match.kind === 'protocol');
  if (comment === undefined || protocol === undefined) return undefined;
  const id = `${comment.text.split(' ', 1)[0] ?? ''}/${protocol.protocol.toUpperCase()}`;
  return fragments.has(id) ? id : undefined;
}

/** Rules in chains that others use too: ours are added, and those of ours that have had their day are taken out. */
function adopted(state: Tables, desired: Desired, table: Table): Piece {
  const wanted = desired.base.adopted.filter((each) => each.table === table);
  const isWanted = ({ rule }: SharedRule): boolean =>
    wanted.some((each) => ruleKey(each.rule) === ruleKey(rule));
  const stale = isKubeletHere(state)
    ? []
    : everAdopted(desired.options).filter((each) => each.table === table);
  const text = ({ chain, rule }: SharedRule): RuleText => ({ chain, rule: printRule(rule) });
  const isThere = ({ chain, rule }: SharedRule): boolean => hasRule(chainOf(state, table, chain), rule);
  return piece(undefined, {
    removes: unique(stale.filter((each) => !isWanted(each) && isThere(each)).map(text)),
    adds: wanted.filter((each) => !isThere(each)).map((each) => ({ ...text(each), place: 'end' })),
  });
}

/** Every rule that some layout may put into a chain that is not its own. */
export function everAdopted(options: CompileOptions): readonly SharedRule[] {
  const view = { ...options.view, nodePorts: { ...options.view.nodePorts, loopback: true } };
  return LAYOUT_NAMES.flatMap((name) => LAYOUTS[name].base({ ...options, view }).adopted);
}

/** kubelet has chains and rules of the same names and words; where it runs they may be its own. */
export function isKubeletHere(state: Tables): boolean {
  return [...state.values()].some((chains) => chains.has('KUBE-KUBELET-CANARY'));
}

/** Which rules of a chain nobody has asked for yet. */
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

  /** Takes these rules if all are there, one behind the other; otherwise none. */
  takeInOrder(keys: readonly string[]): boolean {
    let last = -1;
    const found: number[] = [];
    for (const key of keys) {
      const next = this.#byKey.get(key)?.find((position) => position > last && !this.#taken.has(position));
      if (next === undefined) return false;
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

function jumps(state: Tables, layout: Layout, table: Table): Piece {
  const wanted = layout.jumps.filter((jump) => jump.table === table);
  const otherLayouts = LAYOUT_NAMES.flatMap((name) => LAYOUTS[name].jumps).filter(
    (jump) => jump.table === table && !wanted.some((other) => sameJump(jump, other)) && isForgettable(jump),
  );
  const text = ({ from, rule }: JumpRule): RuleText => ({ chain: from, rule: printRule(rule) });
  return piece(undefined, {
    removes: unique(
      otherLayouts.filter((jump) => hasRule(chainOf(state, table, jump.from), jump.rule)).map(text),
    ),
    adds: wanted
      .filter((jump) => !hasRule(chainOf(state, table, jump.from), jump.rule))
      .toReversed() // heads are inserted backwards; a jump listed later belongs nearer to the head
      .map((jump) => ({ ...text(jump), place: 'head' })),
  });
}

/** kubelet writes the same jumps from INPUT and OUTPUT to KUBE-FIREWALL; who knows whose they are. */
function isForgettable({ from, rule }: JumpRule): boolean {
  return from === 'FORWARD' || rule.target?.kind !== 'jump' || rule.target.chain !== CHAINS.firewall;
}

function sameJump(a: JumpRule, b: JumpRule): boolean {
  return a.table === b.table && a.from === b.from && ruleKey(a.rule) === ruleKey(b.rule);
}

function unique(rules: readonly RuleText[]): readonly RuleText[] {
  return [...new Map(rules.map((each) => [`${each.chain} ${each.rule}`, each])).values()];
}

/** Callers before what they call: emptying a caller frees what it called. */
const GARBAGE_ORDER = [
  PREFIXES.firewall,
  PREFIXES.external,
  PREFIXES.externalLocal,
  PREFIXES.service,
  PREFIXES.local,
  PREFIXES.endpoint,
];

function garbage(state: Tables, desired: Desired, table: Table): readonly Step[] {
  const needed = neededChains(desired, table);
  const fixed = fixedChains(state, table);
  const stale = [...(state.get(table)?.keys() ?? [])].filter(
    (chain) => (isServiceChain(chain) || fixed.has(chain)) && !needed.has(chain),
  );
  const rank = (chain: string): number => GARBAGE_ORDER.findIndex((prefix) => chain.startsWith(prefix));
  const pieces = stale
    .sort((a, b) => rank(a) - rank(b))
    .map((chain) => piece(undefined, { deletes: [chain] }));
  return chunked(table, pieces);
}

function neededChains(desired: Desired, table: Table): ReadonlySet<string> {
  const { layout, base, fragments } = desired;
  const needed = new Set<string>();
  const chains = [...base.chains, ...[...fragments.values()].flatMap((fragment) => fragment.chains)];
  for (const chain of chains) if (chain.table === table) needed.add(chain.name);
  for (const ref of [...layout.sharedChains, ...layout.adoptedChains])
    if (ref.table === table) needed.add(ref.chain);
  return needed;
}

/** Fixed chains of every layout: one that this layout does not need is left over from another. */
function fixedChains(state: Tables, table: Table): ReadonlySet<string> {
  const adopted = new Set(
    LAYOUT_NAMES.flatMap((name) => LAYOUTS[name].adoptedChains).map(({ chain }) => chain),
  );
  const all = LAYOUT_NAMES.flatMap((name) => LAYOUTS[name].sharedChains)
    .filter((ref) => ref.table === table)
    .map((ref) => ref.chain);
  const marks = table === 'nat' && !isKubeletHere(state) ? [CHAINS.markDrop] : [];
  return new Set([...all, ...marks].filter((chain) => !adopted.has(chain)));
}

function chainOf(state: Tables, table: Table, chain: string): ParsedChain | undefined {
  return state.get(table)?.get(chain);
}

function hasRule(chain: ParsedChain | undefined, rule: Rule): boolean {
  if (!chain) return false;
  const key = ruleKey(rule);
  return chain.rules.some((other) => ruleKey(other) === key);
}

function nonEmpty(pieces: readonly Piece[]): readonly Piece[] {
  return pieces.filter((each) => !isEmpty(each));
}

function hasPieces(step: Step): boolean {
  return step.pieces.length > 0;
}
