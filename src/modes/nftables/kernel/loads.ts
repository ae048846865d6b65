/** Expressions that put something into a register, and the lookups of a rule whatever it matches. */
import { LITTLE_ENDIAN } from '../../../netlink/codec.ts';
import type { Expression } from '../../../netlink/nftables/expressions.ts';
import {
  conntrackBytes,
  fibBytes,
  hostU32,
  metaBytes,
  type PacketFacts,
  payloadBytes,
} from './packetBytes.ts';
import { Registers } from './registers.ts';
import type { ListedSet } from './source.ts';

export type Load = Extract<
  Expression,
  { readonly kind: 'payload' | 'meta' | 'ct' | 'fib' | 'immediate' | 'bitwise' | 'byteorder' }
>;

export function load(expression: Load, registers: Registers, facts: PacketFacts): void {
  const { into } = expression;
  switch (expression.kind) {
    case 'payload':
      registers.put(into, payloadBytes(expression, facts), expression.bytes);
      return;
    case 'meta':
      registers.put(into, metaBytes(expression, facts), metaLength(expression.key));
      return;
    case 'ct':
      registers.put(into, conntrackBytes(expression, facts), LONGEST);
      return;
    case 'fib':
      registers.put(into, fibBytes(expression, facts), LONGEST);
      return;
    case 'immediate':
      registers.put(into, expression.value);
      return;
    case 'bitwise': {
      const { from, mask, xor } = expression;
      const value = registers.get(from, mask.length);
      const result = value?.map((byte, index) => (byte & (mask[index] ?? 0)) ^ (xor[index] ?? 0));
      registers.put(into, result, mask.length);
      return;
    }
    case 'byteorder': {
      const { from, bytes, size } = expression;
      const value = registers.get(from, bytes);
      registers.put(into, value && swapped(value, size), bytes);
    }
  }
}

/** No value that is loaded and not known is longer. */
const LONGEST = 16;

function metaLength(key: string): number {
  return key.endsWith('ifname') ? LONGEST : 4;
}

const LOADS: ReadonlySet<string> = new Set<Load['kind']>([
  'payload',
  'meta',
  'ct',
  'fib',
  'immediate',
  'bitwise',
  'byteorder',
]);

export function isLoad(expression: Expression): expression is Load {
  return LOADS.has(expression.kind);
}

/** Whole numbers only: what is left over stays as it is. */
function swapped(value: Uint8Array, size: number): Uint8Array {
  if (size === 0) return value;
  const result = value.slice();
  for (let at = 0; at + size <= value.length; at += size) result.subarray(at, at + size).reverse();
  return LITTLE_ENDIAN ? result : value;
}

/** Of a larger draw, nothing is read before it is known that it is needed. */
const MOST_DRAWN = 64;

/** What a rule looks up if everything in it matches. */
export function lookupsOf(
  expressions: readonly Expression[],
  facts: PacketFacts,
  setOf: (name: string) => ListedSet | undefined,
): readonly { readonly set: ListedSet; readonly key: Uint8Array }[] {
  const modulus = expressions.find((each) => each.kind === 'numgen')?.modulus ?? 1;
  const found: { readonly set: ListedSet; readonly key: Uint8Array }[] = [];
  const draws = modulus <= MOST_DRAWN ? modulus : 0;
  for (let drawn = 0; drawn < draws; drawn++) {
    const registers = new Registers();
    for (const expression of expressions) {
      if (isLoad(expression)) load(expression, registers, facts);
      else if (expression.kind === 'numgen') registers.put(expression.into, hostU32(drawn));
      else if (expression.kind === 'lookup') {
        const set = setOf(expression.set);
        const key = set && registers.get(expression.from, set.keyBytes);
        if (set && key) found.push({ set, key });
        if (expression.into !== undefined) registers.put(expression.into, undefined, set?.dataBytes);
      }
    }
  }
  return found;
}
