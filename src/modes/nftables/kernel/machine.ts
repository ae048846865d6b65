/**
 * Runs a rule as the kernel does, expression by expression, over registers. It is the rules that the kernel has that are
 * run, not those that we meant to write: ours and those of other programs alike.
 *
 * A number that is drawn splits the packet. What cannot be evaluated, such as a rate limit, makes the rule uncertain: if
 * nothing else in it fails to match, it is noted, and taken as no match.
 */
import type { Ip } from '../../../model/ip.ts';
import { decodeIp } from '../../../netlink/inet.ts';
import { type Expression, VERDICT_REGISTER } from '../../../netlink/nftables/expressions.ts';
import type { NftVerdict } from '../../../netlink/nftables/expressions.ts';
import type { SetElement } from '../../../netlink/nftables/elements.ts';
import { attributeEnd } from '../../../netlink/attributes.ts';
import { align, LITTLE_ENDIAN, NLA_TYPE_MASK, viewOf } from '../../../netlink/codec.ts';
import type { RuleExit, WalkVerdict, Way } from '../../walk.ts';
import { isLoad, load } from './loads.ts';
import { hostU32, type PacketFacts } from './packetBytes.ts';
import { Registers } from './registers.ts';
import type { ListedSet } from './source.ts';
import { matchOfIptables, targetOfIptables } from './xtables.ts';

/** An element that a rule adds to a set. */
export interface LearnedElement {
  readonly set: string;
  readonly key: Uint8Array;
  readonly data: Uint8Array | undefined;
  readonly timeoutMs: number | undefined;
}

/** An element that a lookup found. */
export interface FoundElement {
  readonly set: ListedSet;
  readonly element: SetElement;
}

/** The sets of the rule's table. `undefined`: there is none. */
interface RuleSets {
  setOf(name: string): ListedSet | undefined;
  find(set: ListedSet, key: Uint8Array): SetElement | undefined;
}

export type MachineWay = Way<LearnedElement>;

export interface MachineOptions {
  readonly facts: Omit<PacketFacts, 'way'>;
  readonly sets: RuleSets;
  readonly print: (found: FoundElement) => string;
  /** Something in the rule was not evaluated that would decide. */
  readonly onUncertain: () => void;
  readonly note: (text: string) => void;
}

/** What an expression does: `undefined` goes on to the next one. */
export type Effect =
  | { readonly kind: 'mismatch' }
  /** Whether it matches, or what it does, is not known. */
  | { readonly kind: 'unknown' }
  | { readonly kind: 'verdict'; readonly verdict: WalkVerdict | undefined }
  | { readonly kind: 'mark'; readonly mark: number }
  | undefined;

interface State {
  readonly registers: Registers;
  way: MachineWay;
  found: readonly FoundElement[];
  isUncertain: boolean;
}

const MISMATCH: Effect = { kind: 'mismatch' };
const UNKNOWN: Effect = { kind: 'unknown' };
/** Rules add elements to it. */
const NFT_SET_EVAL = 0x20;
/** No pool of ours is larger; a draw out of more is not evaluated. */
const MOST_DRAWN = 100_000;
/** What becomes of the packet does not depend on these. */
const WITHOUT_EFFECT: ReadonlySet<string> = new Set(['log', 'objref', 'last', 'dup', 'flow_offload']);
/** These end a packet's way, or send it elsewhere: they are not evaluated. */
const UNKNOWN_VERDICTS: ReadonlySet<string> = new Set([
  'queue',
  'redir',
  'tproxy',
  'synproxy',
  'fwd',
  'nat',
  'masq',
]);
/** Where an expression has the register that it writes to the packet or the connection: then it loads nothing. */
const WRITTEN_FROM: ReadonlyMap<string, number> = new Map([
  ['meta', 3],
  ['ct', 4],
  ['payload', 5],
  ['exthdr', 7],
]);

/** A step for each number that is drawn. */
export function* runRule(
  expressions: readonly Expression[],
  way: MachineWay,
  options: MachineOptions,
): Generator<void, readonly RuleExit<LearnedElement>[]> {
  const state = { registers: new Registers(), way, found: [], isUncertain: false };
  return merged(yield* new Machine(expressions, options).run(state, 0), way);
}

/** Draws that found nothing are one way again: what was drawn is forgotten when the rule ends. */
function merged(
  exits: readonly RuleExit<LearnedElement>[],
  before: MachineWay,
): readonly RuleExit<LearnedElement>[] {
  const isUnchanged = ({ isMatch, way }: RuleExit<LearnedElement>): boolean =>
    !isMatch && way.mark === before.mark && way.learned === before.learned;
  const [first, ...others] = exits.filter(isUnchanged);
  if (!first || others.length === 0) return exits;
  const probability = others.reduce((sum, { way }) => sum + way.probability, first.way.probability);
  return [...exits.filter((exit) => !isUnchanged(exit)), { ...first, way: { ...first.way, probability } }];
}

class Machine {
  readonly #expressions: readonly Expression[];
  readonly #options: MachineOptions;

  constructor(expressions: readonly Expression[], options: MachineOptions) {
    this.#expressions = expressions;
    this.#options = options;
  }

  *run(state: State, from: number): Generator<void, readonly RuleExit<LearnedElement>[]> {
    for (let index = from; index < this.#expressions.length; index++) {
      const expression = this.#expressions[index];
      if (!expression) break;
      if (expression.kind === 'numgen') return yield* this.#draw(expression, state, index + 1);
      const effect = this.#perform(expression, state);
      if (effect?.kind === 'mismatch') return [{ way: state.way, isMatch: false }];
      if (effect?.kind === 'unknown') state.isUncertain = true;
      // A mark that is set by a rule that may not match is not set.
      if (effect?.kind === 'mark' && !state.isUncertain) state.way = { ...state.way, mark: effect.mark };
      if (effect?.kind === 'verdict') return [this.#exit(state, effect.verdict)];
    }
    return [this.#exit(state, undefined)];
  }

  *#draw(
    { modulus, into }: Extract<Expression, { kind: 'numgen' }>,
    { registers, way, found, isUncertain }: State,
    next: number,
  ): Generator<void, readonly RuleExit<LearnedElement>[]> {
    if (modulus > MOST_DRAWN) return yield* this.run({ registers, way, found, isUncertain: true }, next);
    const exits: RuleExit<LearnedElement>[] = [];
    for (let drawn = 0; drawn < modulus; drawn++) {
      const own = new Registers(registers);
      own.put(into, hostU32(drawn));
      const share = { ...way, probability: way.probability / modulus };
      exits.push(...(yield* this.run({ registers: own, way: share, found, isUncertain }, next)));
      yield;
    }
    return exits;
  }

  #exit({ way, found, isUncertain }: State, verdict: WalkVerdict | undefined): RuleExit<LearnedElement> {
    const { print, onUncertain } = this.#options;
    if (isUncertain) {
      if (verdict || this.#expressions.some(hasEffect)) onUncertain();
      return { way, isMatch: false };
    }
    const counted = found.flatMap(({ element }) => element.counter?.packets ?? []);
    const packets = counted.length === 0 ? undefined : Number(counted.reduce((sum, each) => sum + each, 0n));
    return { way, isMatch: true, verdict, packets, found: () => found.map(print) };
  }

  #facts(way: MachineWay): PacketFacts {
    const { isLocal, hasArrived } = this.#options.facts;
    return { way, isLocal, hasArrived };
  }

  #perform(expression: Exclude<Expression, { kind: 'numgen' }>, state: State): Effect {
    const { registers, way } = state;
    if (isLoad(expression)) {
      load(expression, registers, this.#facts(way));
      return undefined;
    }
    switch (expression.kind) {
      case 'compare': {
        const { from, comparison, value } = expression;
        const found = registers.get(from, value.length);
        if (!found) return UNKNOWN;
        return holds(comparison, Buffer.compare(found, value)) ? undefined : MISMATCH;
      }
      case 'range': {
        const { from, comparison, first, last } = expression;
        const found = registers.get(from, first.length);
        if (!found) return UNKNOWN;
        const isWithin = Buffer.compare(found, first) >= 0 && Buffer.compare(found, last) <= 0;
        return isWithin === (comparison === '==') ? undefined : MISMATCH;
      }
      case 'lookup':
        return this.#lookUp(expression, state);
      case 'dynset':
        return this.#learn(expression, state);
      case 'set meta': {
        const value = registers.get(expression.from, 4);
        if (expression.key !== 'mark') return undefined;
        if (!value) return UNKNOWN;
        return { kind: 'mark', mark: new DataView(value.buffer).getUint32(0, LITTLE_ENDIAN) };
      }
      case 'verdict':
        return effectOf(expression);
      case 'nat':
        return this.#translate(expression, state);
      case 'masquerade':
        return { kind: 'verdict', verdict: { kind: 'masquerade' } };
      case 'reject':
        return { kind: 'verdict', verdict: { kind: 'reject' } };
      case 'counter':
        return undefined;
      case 'xt match':
        return matchOfIptables(expression, this.#facts(way));
      case 'xt target':
        return targetOfIptables(expression, this.#facts(way));
      case 'other':
        if (expression.name === 'notrack') state.way = { ...way, isUntracked: !state.isUncertain };
        else if (!WITHOUT_EFFECT.has(expression.name) && !isWritten(expression)) return UNKNOWN;
        return undefined;
    }
  }

  #lookUp(
    { set: name, from, into, isInverted }: Extract<Expression, { kind: 'lookup' }>,
    state: State,
  ): Effect {
    const { sets, note } = this.#options;
    const set = sets.setOf(name);
    if (!set) {
      note(`the table has no set ${name}`);
      return MISMATCH;
    }
    const key = state.registers.get(from, set.keyBytes);
    state.way = { ...state.way, lookups: state.way.lookups + 1 };
    if (!key) {
      if (into !== undefined) state.registers.put(into, undefined, set.dataBytes);
      return UNKNOWN;
    }
    const element = sets.find(set, key);
    if ((element !== undefined) === (isInverted === true)) return MISMATCH;
    if (!element) return undefined;
    state.found = [...state.found, { set, element }];
    if (into === undefined) return undefined;
    if (into === VERDICT_REGISTER) return element.verdict ? effectOf(element.verdict) : UNKNOWN;
    state.registers.put(into, element.data, set.dataBytes);
    if ((set.flags & NFT_SET_EVAL) !== 0) state.way = { ...state.way, byAffinity: true };
    return undefined;
  }

  #learn(
    { set: name, key: from, data, timeoutMs }: Extract<Expression, { kind: 'dynset' }>,
    state: State,
  ): Effect {
    const set = this.#options.sets.setOf(name);
    const key = set && state.registers.get(from, set.keyBytes);
    state.way = { ...state.way, lookups: state.way.lookups + 1 };
    if (!set || !key || state.isUncertain) return undefined;
    const value = data === undefined ? undefined : state.registers.get(data, set.dataBytes ?? 0);
    const learned = [...state.way.learned, { set: name, key, data: value, timeoutMs }];
    state.way = { ...state.way, learned };
    return undefined;
  }

  /** The source, too, is rewritten by another program's `snat`: to which address does not matter here. */
  #translate(
    { direction, address, port }: Extract<Expression, { kind: 'nat' }>,
    { registers, way }: State,
  ): Effect {
    if (direction === 'snat') return { kind: 'verdict', verdict: { kind: 'masquerade' } };
    const ip = address === undefined ? way.destination : ipIn(registers, address, way.destination);
    const portBytes = port === undefined ? undefined : registers.get(port, 2);
    if (ip === undefined || (port !== undefined && !portBytes)) return UNKNOWN;
    const to = portBytes ? ((portBytes[0] ?? 0) << 8) | (portBytes[1] ?? 0) : way.port;
    return { kind: 'verdict', verdict: { kind: 'dnat', ip, port: to } };
  }
}

function ipIn(registers: Registers, register: number, like: Ip): Ip | undefined {
  const bytes = registers.get(register, like.includes(':') ? 16 : 4);
  return bytes && decodeIp(bytes);
}

function hasEffect(expression: Expression): boolean {
  if (expression.kind === 'other') return UNKNOWN_VERDICTS.has(expression.name);
  return ['set meta', 'dynset', 'xt target'].includes(expression.kind);
}

/** A mark of the connection, a header: nothing that is known depends on it. */
function isWritten({ name, data }: Extract<Expression, { kind: 'other' }>): boolean {
  const number = WRITTEN_FROM.get(name);
  if (number === undefined) return false;
  const view = viewOf(data);
  for (let at = 0; at < data.length; ) {
    const end = attributeEnd(view, at, data.length);
    if ((view.getUint16(at + 2, LITTLE_ENDIAN) & NLA_TYPE_MASK) === number) return true;
    at = align(end);
  }
  return false;
}

function effectOf({ verdict, chain = '' }: NftVerdict): Effect {
  switch (verdict) {
    case 'drop':
    case 'accept':
    case 'return':
      return { kind: 'verdict', verdict: { kind: verdict } };
    case 'jump':
    case 'goto':
      return { kind: 'verdict', verdict: { kind: verdict, chain } };
    case 'continue':
      return { kind: 'verdict', verdict: undefined };
    case 'break':
      return MISMATCH;
  }
}

function holds(comparison: '==' | '!=' | '<' | '<=' | '>' | '>=', order: number): boolean {
  switch (comparison) {
    case '==':
      return order === 0;
    case '!=':
      return order !== 0;
    case '<':
      return order < 0;
    case '<=':
      return order <= 0;
    case '>':
      return order > 0;
    case '>=':
      return order >= 0;
  }
}
