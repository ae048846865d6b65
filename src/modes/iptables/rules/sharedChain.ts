/** Editing a chain in which many services have rules: rule by rule, and what is right stays where it is. */
import type { ServicePortId } from '../../../model/servicePort.ts';
import { type Piece, piece, type RuleText } from './edit.ts';
import type { SharedRule } from './fragment.ts';
import { ruleKey } from './normalise.ts';
import type { ParsedRule, Tables } from './parse.ts';
import { printRule } from './print.ts';
import type { Rule, Table } from './rule.ts';

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

export interface SharedChainWish {
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
