/**
 * Rules of nf_tables as digests: 64 bits of what a rule matches and does, without its handle, its comment for nft and the
 * values of its counters. Equal for a rule as it is sent and as the kernel dumps it, which orders attributes in its own way
 * and adds some that say nothing. Nobody who could choose the bytes gains by two rules of one digest: a difference that is not
 * seen is one that nobody repairs.
 */
import { attributeEnd } from '../attributes.ts';
import {
  align,
  ATTRIBUTE_HEADER_BYTES,
  HEADER_BYTES,
  LITTLE_ENDIAN,
  NLA_TYPE_MASK,
  viewOf,
} from '../codec.ts';
import { NFGENMSG_BYTES } from '../generic.ts';

const NFTA_RULE_HANDLE = 3;
const NFTA_RULE_EXPRESSIONS = 4;
const NFTA_EXPR_NAME = 1;
const NFTA_EXPR_DATA = 2;

/** Attributes inside an attribute, by number; the rest are values. */
type Nests = { readonly [number: number]: Nests };
interface Shape {
  readonly nests: Nests;
  /** Written by one side only where it is zero. */
  readonly zeroed?: number;
  /** Its values are the kernel's. */
  readonly isCounter?: true;
}
const VALUE: Nests = {};
const DATA: Nests = { 2: VALUE };
const PLAIN: Shape = { nests: VALUE };
/** NFTA_BITWISE_OP since Linux 5.6; a revision of 0 need not be sent. */
const SHAPES: readonly (readonly [name: string, shape: Shape])[] = [
  ['counter', { nests: VALUE, isCounter: true }],
  ['immediate', { nests: { 2: DATA } }],
  ['cmp', { nests: { 3: DATA } }],
  ['bitwise', { nests: { 4: DATA, 5: DATA }, zeroed: 6 }],
  ['range', { nests: { 3: DATA, 4: DATA } }],
  ['match', { nests: VALUE, zeroed: 2 }],
  ['target', { nests: VALUE, zeroed: 2 }],
];

/** Two lanes of 32 bits. */
class Lanes {
  high = 0;
  low = 0;

  begin(seed: number): this {
    this.high = 0x9e3779b9 ^ seed;
    this.low = 0x85ebca6b + seed;
    return this;
  }

  take(word: number): this {
    const high = Math.imul(this.high ^ word, 0x9e3779b1);
    const low = Math.imul(this.low ^ word, 0x5f356495);
    // Without turning, two words that differ in their highest bit would cancel each other out.
    this.high = (high << 13) | (high >>> 19);
    this.low = (low << 17) | (low >>> 15);
    return this;
  }

  takeBytes(view: DataView, start: number, end: number): this {
    let { high, low } = this;
    const last = view.byteLength - 4; // asking for it in the loop took as long as all else
    // Values are padded with zeros, which are counted by the length.
    for (let at = start; at < end; at += 4) {
      const word = at <= last ? view.getInt32(at, LITTLE_ENDIAN) : lastWord(view, at);
      high = Math.imul(high ^ word, 0x9e3779b1);
      low = Math.imul(low ^ word, 0x5f356495);
      high = (high << 13) | (high >>> 19);
      low = (low << 17) | (low >>> 15);
    }
    this.high = high;
    this.low = low;
    return this.take(end - start);
  }

  end(): this {
    const { high, low } = this;
    this.high = avalanche(high ^ (low >>> 7));
    this.low = avalanche(low ^ (high >>> 9));
    return this;
  }
}

function avalanche(word: number): number {
  let mixed = Math.imul(word ^ (word >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return mixed ^ (mixed >>> 16);
}

function lastWord(view: DataView, at: number): number {
  let word = 0;
  for (let byte = view.byteLength - 1; byte >= at; byte--) word = (word << 8) | view.getUint8(byte);
  return word;
}

const encoder = new TextEncoder();
const SHAPE_BY_NAME: ReadonlyMap<number, Shape> = new Map(
  SHAPES.map(([name, shape]) => {
    const bytes = encoder.encode(`${name}\0`);
    return [new Lanes().begin(0).takeBytes(viewOf(bytes), 0, bytes.length).high, shape];
  }),
);

export interface RuleDigest {
  /** Of 32 bits each. */
  readonly high: number;
  readonly low: number;
}

/** Digests rules one after another; what it returns is good until the next. */
export class RuleDigester {
  readonly #rule = new Lanes();
  readonly #expression = new Lanes();
  readonly #leaf = new Lanes();
  #sumHigh = 0;
  #sumLow = 0;

  /** Of the bytes inside NFTA_RULE_EXPRESSIONS. */
  digest(expressions: Uint8Array): RuleDigest {
    return this.digestAt(viewOf(expressions), 0, expressions.length);
  }

  digestAt(view: DataView, start: number, end: number): RuleDigest {
    this.#rule.begin(1);
    for (let at = start; at < end; ) {
      const elementEnd = attributeEnd(view, at, end);
      this.#takeExpression(view, at + ATTRIBUTE_HEADER_BYTES, elementEnd);
      this.#rule.take(this.#expression.high).take(this.#expression.low);
      at = align(elementEnd);
    }
    return this.#rule.end();
  }

  #takeExpression(view: DataView, start: number, end: number): void {
    this.#expression.begin(0);
    let shape = PLAIN;
    this.#sumHigh = 0;
    this.#sumLow = 0;
    for (let at = start; at < end; ) {
      const valueEnd = attributeEnd(view, at, end);
      const type = view.getUint16(at + 2, LITTLE_ENDIAN) & NLA_TYPE_MASK;
      const valueStart = at + ATTRIBUTE_HEADER_BYTES;
      // The kernel and everybody else write the name first.
      if (type === NFTA_EXPR_NAME) {
        this.#expression.takeBytes(view, valueStart, valueEnd);
        shape = SHAPE_BY_NAME.get(nameOf(this.#leaf, view, valueStart, valueEnd)) ?? PLAIN;
      } else if (type === NFTA_EXPR_DATA && !shape.isCounter) {
        this.#takeAttributes(view, valueStart, valueEnd, shape.nests, 0, shape.zeroed);
      }
      at = align(valueEnd);
    }
    this.#expression.take(this.#sumHigh).take(this.#sumLow).end();
  }

  /** The attributes in whatever order. */
  #takeAttributes(
    view: DataView,
    start: number,
    end: number,
    nests: Nests,
    path: number,
    zeroed?: number,
  ): void {
    for (let at = start; at < end; ) {
      const valueEnd = attributeEnd(view, at, end);
      const type = view.getUint16(at + 2, LITTLE_ENDIAN) & NLA_TYPE_MASK;
      const valueStart = at + ATTRIBUTE_HEADER_BYTES;
      const inner = nests[type];
      at = align(valueEnd);
      if (inner) this.#takeAttributes(view, valueStart, valueEnd, inner, path * 64 + type);
      else if (type !== zeroed || !isZero(view, valueStart, valueEnd)) {
        const leaf = this.#leaf
          .begin(path * 64 + type)
          .takeBytes(view, valueStart, valueEnd)
          .end();
        this.#sumHigh = (this.#sumHigh + leaf.high) | 0;
        this.#sumLow = (this.#sumLow + leaf.low) | 0;
      }
    }
  }
}

function nameOf(lanes: Lanes, view: DataView, start: number, end: number): number {
  return lanes.begin(0).takeBytes(view, start, end).high;
}

function isZero(view: DataView, start: number, end: number): boolean {
  for (let at = start; at < end; at++) if (view.getUint8(at) !== 0) return false;
  return true;
}

/** Of a name and rules in their order. */
export class ChainDigester {
  readonly #lanes = new Lanes();

  begin(name: string): this {
    this.#lanes.begin(2);
    for (let index = 0; index < name.length; index++) this.#lanes.take(name.charCodeAt(index));
    return this;
  }

  take(high: number, low: number): this {
    this.#lanes.take(high).take(low);
    return this;
  }

  /** Of 53 bits: two different chains have the same one about never. */
  end(): number {
    const { high, low } = this.#lanes.end();
    return digestNumber(high, low);
  }
}

export function digestNumber(high: number, low: number): number {
  return (high & 0x1f_ffff) * 2 ** 32 + (low >>> 0);
}

/** Where the expressions of a rule are in its message, and its handle. */
export interface RuleBounds {
  start: number;
  end: number;
  handleHigh: number;
  handleLow: number;
}

/** Of the message that begins at `offset`. */
export function findExpressions(view: DataView, offset: number, length: number, into: RuleBounds): void {
  into.start = 0;
  into.end = 0;
  into.handleHigh = 0;
  into.handleLow = 0;
  const end = offset + length;
  for (let at = offset + HEADER_BYTES + NFGENMSG_BYTES; at < end; ) {
    const valueEnd = attributeEnd(view, at, end);
    const type = view.getUint16(at + 2, LITTLE_ENDIAN) & NLA_TYPE_MASK;
    if (type === NFTA_RULE_EXPRESSIONS) {
      into.start = at + ATTRIBUTE_HEADER_BYTES;
      into.end = valueEnd;
    } else if (type === NFTA_RULE_HANDLE && valueEnd - at === ATTRIBUTE_HEADER_BYTES + 8) {
      into.handleHigh = view.getUint32(at + ATTRIBUTE_HEADER_BYTES);
      into.handleLow = view.getUint32(at + ATTRIBUTE_HEADER_BYTES + 4);
    }
    at = align(valueEnd);
  }
}
