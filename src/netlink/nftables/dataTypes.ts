/**
 * The types of keys and data, by which nft prints them. The kernel only keeps their numbers, which are those of nft's
 * `enum datatypes`. The number of a concatenation has six bits for each part.
 */
import { names } from './names.ts';
import { wordsOf } from './registers.ts';

export type DataType = 'integer' | 'ipv4_addr' | 'ipv6_addr' | 'inet_proto' | 'inet_service' | 'mark';

export const DATA_TYPES = names<DataType>({
  integer: 4,
  ipv4_addr: 7,
  ipv6_addr: 8,
  inet_proto: 12,
  inet_service: 13,
  mark: 19,
});

const BITS_PER_PART = 6;
const WORD_BYTES = 4;

/** An `integer` is what `numgen` makes. */
const BYTES: Readonly<Record<DataType, number>> = {
  integer: 4,
  ipv4_addr: 4,
  ipv6_addr: 16,
  inet_proto: 1,
  inet_service: 2,
  mark: 4,
};

/** enum byteorder of nft */
export const BYTE_ORDER_NONE = 0;
export const BYTE_ORDER_HOST = 1;
export const BYTE_ORDER_NETWORK = 2;

const BYTE_ORDERS: Readonly<Record<DataType, number>> = {
  integer: BYTE_ORDER_HOST,
  ipv4_addr: BYTE_ORDER_NETWORK,
  ipv6_addr: BYTE_ORDER_NETWORK,
  inet_proto: BYTE_ORDER_NONE,
  inet_service: BYTE_ORDER_NETWORK,
  mark: BYTE_ORDER_HOST,
};

export function typeNumber(parts: readonly DataType[]): number {
  return parts.reduce((number, part) => (number << BITS_PER_PART) | DATA_TYPES.number(part), 0);
}

export function typeBytes(type: DataType): number {
  return BYTES[type];
}

/** One part is as long as it is; several begin in a register each. */
export function totalBytes(parts: readonly DataType[]): number {
  const [first, ...others] = parts;
  if (first && others.length === 0) return BYTES[first];
  return parts.reduce((total, part) => total + wordsOf(BYTES[part]) * WORD_BYTES, 0);
}

/** A concatenation has none. */
export function byteOrderOf(parts: readonly DataType[]): number {
  const [first, ...others] = parts;
  return first && others.length === 0 ? BYTE_ORDERS[first] : BYTE_ORDER_NONE;
}
