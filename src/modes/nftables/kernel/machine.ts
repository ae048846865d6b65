/**
 * Runs a rule as the kernel does, expression by expression, over registers: the rules that the kernel has, ours and those of
 * other programs alike.
 *
 * A number that is drawn splits the packet. What cannot be evaluated, such as a rate limit, makes the rule uncertain: if
 * nothing else in it fails to match, it is noted and taken as no match.
 */
import type { Ip } from '../../../model/ip.ts';
import { LITTLE_ENDIAN, viewOf } from '../../../netlink/codec.ts';
import { decodeIp } from '../../../netlink/inet.ts';
import { answerText } from '../../iptables/rules/textRule.ts';
import { effectOfText } from '../../iptables/rules/textTarget.ts';
import type { SetElement } from '../../../netlink/nftables/elements.ts';
import {
  type Expression,
  type NftVerdict,
  VERDICT_REGISTER,
  wordsOf,
} from '../../../netlink/nftables/expressions.ts';
import type { PacketState, RuleResult, Steps, WalkContext, WalkVerdict } from '../../kernelRules.ts';
import { hostU32, loadOf, WORD_BYTES, WORDS, wordOf } from './loads.ts';
import type { ListedSet } from './source.ts';
import { type FoundElement, printFound } from './values.ts';
import { printIptables } from './xtables.ts';

/** The sets of the rule's table. */
export interface RuleSets {
  setOf(name: string): Steps<ListedSet | undefined>;
  find(set: ListedSet, key: Uint8Array): Steps<SetElement | undefined>;
}

type ExpressionOf<Kind extends Expression['kind']> = Extract<Expression, { readonly kind: Kind }>;

interface RunState {
  registers: Registers;
  packet: PacketState;
  found: readonly FoundElement[];
  isUncertain: boolean;
}

/** What an expression does: `undefined` goes on to the next one. */
type Effect =
  | { readonly kind: 'mismatch' }
  /** Whether it matches, or what it does, is not known. */
  | { readonly kind: 'unknown' }
  | { readonly kind: 'verdict'; readonly verdict: WalkVerdict | undefined }
  | { readonly kind: 'mark'; readonly mark: number }
  | undefined;

const MISMATCH: Effect = { kind: 'mismatch' };
const UNKNOWN: Effect = { kind: 'unknown' };
/** Rules add elements to it. */
const NFT_SET_EVAL = 0x20;
/** No pool of ours is larger; a draw out of more is not evaluated. */
const MAX_DRAWN = 100_000;
/** What becomes of the packet does not depend on these. */
const WITHOUT_EFFECT: ReadonlySet<string> = new Set(['log', 'objref', 'last', 'dup', 'flow_offload']);
/** These end a packet's path, or send it elsewhere: they are not evaluated. */
const UNKNOWN_VERDICTS: ReadonlySet<string> = new Set([
  'queue',
  'redir',
  'tproxy',
  'synproxy',
  'fwd',
  'nat',
  'masq',
]);
/** They load something that is not known, or write to the packet or the connection. */
const UNKNOWN_LOADS: ReadonlySet<string> = new Set(['meta', 'ct', 'payload', 'exthdr']);

interface MachineOptions {
  readonly sets: RuleSets;
  readonly context: WalkContext;
  /** Something in the rule was not evaluated that would decide. */
  readonly onUncertain: () => void;
}

/** A step for each number that is drawn. */
export function* runRule(
  expressions: readonly Expression[],
  packet: PacketState,
  options: MachineOptions,
): Steps<readonly RuleResult[]> {
  const state = { registers: new Registers(), packet, found: [], isUncertain: false };
  return merged(yield* new Machine(expressions, options).run(state, 0), packet);
}

/** Draws that found nothing are one state again: what was drawn is forgotten when the rule ends. */
function merged(results: readonly RuleResult[], before: PacketState): readonly RuleResult[] {
  const isUnchanged = ({ isMatch, state }: RuleResult): boolean =>
    !isMatch && state.mark === before.mark && state.learned === before.learned;
  const [first, ...others] = results.filter(isUnchanged);
  if (!first || others.length === 0) return results;
  const probability = others.reduce((sum, { state }) => sum + state.probability, first.state.probability);
  return [
    ...results.filter((result) => !isUnchanged(result)),
    { ...first, state: { ...first.state, probability } },
  ];
}

class Machine {
  readonly #expressions: readonly Expression[];
  readonly #options: MachineOptions;

  constructor(expressions: readonly Expression[], options: MachineOptions) {
    this.#expressions = expressions;
    this.#options = options;
  }

  *run(state: RunState, from: number): Steps<readonly RuleResult[]> {
    for (let index = from; index < this.#expressions.length; index++) {
      const expression = this.#expressions[index];
      if (!expression) break;
      if (expression.kind === 'numgen') return yield* this.#draw(expression, state, index + 1);
      const effect = yield* this.#perform(expression, state);
      if (effect?.kind === 'mismatch') return [{ state: state.packet, isMatch: false }];
      if (effect?.kind === 'unknown') state.isUncertain = true;
      // A mark that is set by a rule that may not match is not set.
      if (effect?.kind === 'mark' && !state.isUncertain)
        state.packet = { ...state.packet, mark: effect.mark };
      if (effect?.kind === 'verdict') return [this.#result(state, effect.verdict)];
    }
    return [this.#result(state, undefined)];
  }

  *#draw(
    { modulus, into }: ExpressionOf<'numgen'>,
    { registers, packet, found, isUncertain }: RunState,
    next: number,
  ): Steps<readonly RuleResult[]> {
    if (modulus > MAX_DRAWN) return yield* this.run({ registers, packet, found, isUncertain: true }, next);
    const results: RuleResult[] = [];
    for (let drawn = 0; drawn < modulus; drawn++) {
      const own = new Registers(registers);
      own.put(into, hostU32(drawn));
      const share = { ...packet, probability: packet.probability / modulus };
      results.push(...(yield* this.run({ registers: own, packet: share, found, isUncertain }, next)));
      yield;
    }
    return results;
  }

  #result({ packet: state, found, isUncertain }: RunState, verdict: WalkVerdict | undefined): RuleResult {
    if (isUncertain) {
      if (verdict || this.#expressions.some(hasEffect)) this.#options.onUncertain();
      return { state, isMatch: false };
    }
    const counted = found.flatMap(({ element }) => element.counter?.packets ?? []);
    const packets = counted.length === 0 ? undefined : Number(counted.reduce((sum, each) => sum + each, 0n));
    return { state, isMatch: true, verdict, packets, found: () => found.map(printFound) };
  }

  *#perform(expression: Exclude<Expression, { kind: 'numgen' }>, state: RunState): Steps<Effect> {
    const { registers, packet } = state;
    const { context } = this.#options;
    switch (expression.kind) {
      case 'payload':
      case 'meta':
      case 'ct':
      case 'fib':
        this.#load(expression, state);
        return undefined;
      case 'immediate':
        registers.put(expression.into, expression.value);
        return undefined;
      case 'bitwise': {
        const { from, into, mask, xor } = expression;
        const value = registers.get(from, mask.length);
        const result = value?.map((byte, index) => (byte & (mask[index] ?? 0)) ^ (xor[index] ?? 0));
        registers.put(into, result, mask.length);
        return undefined;
      }
      case 'byteorder': {
        const { from, into, bytes, size } = expression;
        const value = registers.get(from, bytes);
        registers.put(into, value && swapped(value, size), bytes);
        return undefined;
      }
      case 'compare': {
        const { from, comparison, value } = expression;
        const found = registers.get(from, value.length);
        if (!found) return UNKNOWN;
        return HOLDS[comparison](Buffer.compare(found, value)) ? undefined : MISMATCH;
      }
      case 'range': {
        const { from, comparison, first, last } = expression;
        const found = registers.get(from, first.length);
        if (!found) return UNKNOWN;
        const isWithin = Buffer.compare(found, first) >= 0 && Buffer.compare(found, last) <= 0;
        return isWithin === (comparison === '==') ? undefined : MISMATCH;
      }
      case 'lookup':
        return yield* this.#lookUp(expression, state);
      case 'dynset':
        yield* this.#learn(expression, state);
        return undefined;
      case 'set meta': {
        const value = registers.get(expression.from, 4);
        if (expression.key !== 'mark') return undefined;
        if (!value) return UNKNOWN;
        return { kind: 'mark', mark: new DataView(value.buffer).getUint32(0, LITTLE_ENDIAN) };
      }
      case 'verdict':
        return effectOf(expression);
      case 'nat':
        return translation(expression, state);
      case 'masquerade':
      case 'reject':
        return { kind: 'verdict', verdict: { kind: expression.kind } };
      case 'counter':
        return undefined;
      case 'xt match':
        return matchEffect(printIptables(expression), packet, context);
      case 'xt target':
        return targetEffect(printIptables(expression), packet, context);
      case 'other':
        if (expression.name === 'notrack') state.packet = { ...packet, isUntracked: !state.isUncertain };
        else if (UNKNOWN_LOADS.has(expression.name)) state.registers = new Registers();
        else if (!WITHOUT_EFFECT.has(expression.name)) return UNKNOWN;
        return undefined;
    }
  }

  #load(expression: Parameters<typeof loadOf>[0], { registers, packet }: RunState): void {
    const { bytesOf, words } = loadOf(expression);
    registers.put(expression.into, bytesOf(packet, this.#options.context), words * WORD_BYTES);
  }

  *#lookUp({ set: name, from, into, isInverted }: ExpressionOf<'lookup'>, state: RunState): Steps<Effect> {
    const { sets, context } = this.#options;
    const set = yield* sets.setOf(name);
    if (!set) {
      context.note(`the table has no set ${name}`);
      return MISMATCH;
    }
    const key = state.registers.get(from, set.keyBytes);
    state.packet = { ...state.packet, lookups: state.packet.lookups + 1 };
    if (!key) {
      if (into !== undefined) state.registers.put(into, undefined, set.dataBytes);
      return UNKNOWN;
    }
    const element = yield* sets.find(set, key);
    if ((element !== undefined) === (isInverted === true)) return MISMATCH;
    if (!element) return undefined;
    state.found = [...state.found, { set, element }];
    if (into === undefined) return undefined;
    if (into === VERDICT_REGISTER) return element.verdict ? effectOf(element.verdict) : UNKNOWN;
    state.registers.put(into, element.data, set.dataBytes);
    if ((set.flags & NFT_SET_EVAL) !== 0) state.packet = { ...state.packet, byAffinity: true };
    return undefined;
  }

  *#learn({ set: name, key: from, data, timeoutMs }: ExpressionOf<'dynset'>, state: RunState): Steps<void> {
    const set = yield* this.#options.sets.setOf(name);
    const key = set && state.registers.get(from, set.keyBytes);
    const { packet, registers } = state;
    state.packet = { ...packet, lookups: packet.lookups + 1 };
    if (!set || !key || state.isUncertain) return;
    const value = data === undefined ? undefined : registers.get(data, set.dataBytes ?? 0);
    const learned = [...packet.learned, { name, key, data: value, timeoutMs }];
    state.packet = { ...state.packet, learned };
  }
}

function matchEffect(text: string | undefined, packet: PacketState, context: WalkContext): Effect {
  const answer = text === undefined ? undefined : answerText(text, packet, context);
  if (answer === undefined) return UNKNOWN;
  return answer ? undefined : MISMATCH;
}

function targetEffect(text: string | undefined, packet: PacketState, context: WalkContext): Effect {
  const { verdict, mark, note } = text === undefined ? { note: '' } : effectOfText(text, packet, context);
  if (verdict) return { kind: 'verdict', verdict };
  if (note !== undefined) return UNKNOWN;
  return mark === undefined ? undefined : { kind: 'mark', mark };
}

/** Another program's `snat` rewrites the source: to which address does not matter here. */
function translation(
  { direction, address, port }: ExpressionOf<'nat'>,
  { registers, packet }: RunState,
): Effect {
  if (direction === 'snat') return { kind: 'verdict', verdict: { kind: 'masquerade' } };
  const ip = address === undefined ? packet.destination : ipIn(registers, address, packet.destination);
  const portBytes = port === undefined ? undefined : registers.get(port, 2);
  if (ip === undefined || (port !== undefined && !portBytes)) return UNKNOWN;
  const to = portBytes ? viewOf(portBytes).getUint16(0) : packet.port;
  return { kind: 'verdict', verdict: { kind: 'dnat', ip, port: to } };
}

function ipIn(registers: Registers, register: number, like: Ip): Ip | undefined {
  const bytes = registers.get(register, like.includes(':') ? 16 : 4);
  return bytes && decodeIp(bytes);
}

/** Whole numbers only: what is left over stays as it is. */
function swapped(value: Uint8Array, size: number): Uint8Array {
  if (size === 0 || !LITTLE_ENDIAN) return value;
  const result = value.slice();
  for (let at = 0; at + size <= value.length; at += size) result.subarray(at, at + size).reverse();
  return result;
}

function hasEffect(expression: Expression): boolean {
  if (expression.kind === 'other') return UNKNOWN_VERDICTS.has(expression.name);
  return ['set meta', 'dynset', 'xt target'].includes(expression.kind);
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

const HOLDS: Readonly<Record<ExpressionOf<'compare'>['comparison'], (order: number) => boolean>> = {
  '==': (order) => order === 0,
  '!=': (order) => order !== 0,
  '<': (order) => order < 0,
  '<=': (order) => order <= 0,
  '>': (order) => order > 0,
  '>=': (order) => order >= 0,
};

/** The registers of a rule, word by word, as far as it is known what is in them. */
class Registers {
  readonly #words: (Uint8Array | undefined)[];

  constructor(before?: Registers) {
    this.#words = before ? [...before.#words] : [];
  }

  /** What is shorter than its words is followed by zeros. `undefined`: something unknown, of at most so many bytes. */
  put(register: number, value: Uint8Array | undefined, unknownBytes = WORD_BYTES): void {
    const first = wordOf(register);
    if (first === undefined) return;
    for (let index = 0; index < wordsOf(value?.length ?? unknownBytes); index++) {
      const word = value && new Uint8Array(WORD_BYTES);
      if (value) word?.set(value.subarray(index * WORD_BYTES, (index + 1) * WORD_BYTES));
      this.#words[first + index] = word;
    }
  }

  /** `undefined`: a part of it is not known. */
  get(register: number, length: number): Uint8Array | undefined {
    const first = wordOf(register);
    if (first === undefined || first + wordsOf(length) > WORDS) return undefined;
    const result = new Uint8Array(wordsOf(length) * WORD_BYTES);
    for (let index = 0; index < wordsOf(length); index++) {
      const word = this.#words[first + index];
      if (!word) return undefined;
      result.set(word, index * WORD_BYTES);
    }
    return result.subarray(0, length);
  }
}
