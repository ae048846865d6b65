/** Bytes of registers and keys as nft prints them, by the type of what they are. */
import { ipOfBytes } from '../../../model/ip.ts';
import { LITTLE_ENDIAN, viewOf } from '../../../netlink/codec.ts';
import { protocolByte } from '../../../netlink/inet.ts';
import { decodeText } from '../../../netlink/kinds.ts';
import { wordsOf } from '../../../netlink/nftables/expressions.ts';
import type { NftVerdict } from '../../../netlink/nftables/expressions.ts';
import type { SetElement } from '../../../netlink/nftables/elements.ts';
import type { ListedSet } from './source.ts';

/** An element that a lookup found. */
export interface FoundElement {
  readonly set: ListedSet;
  readonly element: SetElement;
}

export type ValueType =
  | 'address'
  | 'protocol'
  | 'port'
  | 'mark'
  | 'interface'
  | 'state'
  | 'status'
  | 'address type'
  | 'family'
  | 'number'
  | 'bytes';

const STATES = ['invalid', 'established', 'related', 'new'];
const UNTRACKED = 64;
const STATUS_BITS: Readonly<Record<number, string>> = {
  1: 'expected',
  2: 'seen-reply',
  4: 'assured',
  8: 'confirmed',
  16: 'snat',
  32: 'dnat',
};
const ADDRESS_TYPES: Readonly<Record<number, string>> = {
  1: 'unicast',
  2: 'local',
  3: 'broadcast',
  4: 'anycast',
  5: 'multicast',
  6: 'blackhole',
  7: 'unreachable',
  8: 'prohibit',
};

export function printValue(type: ValueType, value: Uint8Array): string {
  switch (type) {
    case 'address':
      return ipOfBytes(value) ?? printBytes(value);
    case 'protocol':
      return value.length === 1 ? protocolName(value[0] ?? 0) : printBytes(value);
    case 'port':
      return value.length === 2 ? String(viewOf(value).getUint16(0)) : printBytes(value);
    case 'mark':
      return value.length === 4 ? `0x${hostNumber(value).toString(16).padStart(8, '0')}` : printBytes(value);
    case 'interface':
      return `"${decodeText(value)}${value.includes(0) ? '' : '*'}"`;
    case 'state':
      return value.length === 4 ? printStates(hostNumber(value)) : printBytes(value);
    case 'status':
      return value.length === 4 ? printFlags(hostNumber(value), STATUS_BITS) : printBytes(value);
    case 'address type':
      return value.length === 4
        ? (ADDRESS_TYPES[hostNumber(value)] ?? String(hostNumber(value)))
        : printBytes(value);
    case 'family':
      return { 2: 'ipv4', 10: 'ipv6' }[value[0] ?? 0] ?? printBytes(value);
    case 'number':
      return value.length === 4 ? String(hostNumber(value)) : printBytes(value);
    case 'bytes':
      return printBytes(value);
  }
}

function protocolName(number: number): string {
  const other: Readonly<Record<number, string>> = { 1: 'icmp', 58: 'ipv6-icmp', 50: 'esp', 47: 'gre' };
  return protocolByte.word(number)?.toLowerCase() ?? other[number] ?? String(number);
}

export function hostNumber(value: Uint8Array): number {
  return viewOf(value).getUint32(0, LITTLE_ENDIAN);
}

function printStates(bits: number): string {
  const named = STATES.filter((_, index) => (bits & (1 << index)) !== 0);
  return [...named, ...((bits & UNTRACKED) === 0 ? [] : ['untracked'])].join(',') || '0x0';
}

function printFlags(bits: number, names: Readonly<Record<number, string>>): string {
  const named = Object.entries(names).filter(([bit]) => (bits & Number(bit)) !== 0);
  return named.map(([, name]) => name).join(',') || `0x${bits.toString(16)}`;
}

function printBytes(value: Uint8Array): string {
  return `0x${Buffer.from(value).toString('hex')}`;
}

/** nft's `enum datatypes`, of which a key has six bits for each part. */
const KEY_TYPES: Readonly<Record<number, { readonly type: ValueType; readonly bytes: number }>> = {
  2: { type: 'family', bytes: 1 },
  4: { type: 'number', bytes: 4 },
  7: { type: 'address', bytes: 4 },
  8: { type: 'address', bytes: 16 },
  12: { type: 'protocol', bytes: 1 },
  13: { type: 'port', bytes: 2 },
  19: { type: 'mark', bytes: 4 },
  41: { type: 'interface', bytes: 16 },
};
const BITS_PER_PART = 6;
const WORD_BYTES = 4;

/** `10.96.0.1 . tcp . 80` */
function printConcatenation(type: number, value: Uint8Array): string {
  const parts = [];
  for (let left = type; left > 0; left = Math.floor(left / (1 << BITS_PER_PART)))
    parts.unshift(KEY_TYPES[left % (1 << BITS_PER_PART)]);
  const texts: string[] = [];
  let at = 0;
  for (const part of parts) {
    if (!part) return printBytes(value);
    texts.push(printValue(part.type, value.subarray(at, at + part.bytes)));
    at += wordsOf(part.bytes) * WORD_BYTES;
  }
  return texts.join(' . ') || printBytes(value);
}

export function printVerdict({ verdict, chain }: NftVerdict): string {
  return chain === undefined ? verdict : `${verdict} ${chain}`;
}

/** `any-1 { 10.96.0.1 . tcp . 80 : 10.244.0.1 . 8080 }` */
export function printFound({ set, element }: FoundElement): string {
  const { key, keyEnd, data, verdict, comment } = element;
  const first = printConcatenation(set.keyType, key);
  const last = keyEnd && printConcatenation(set.keyType, keyEnd);
  const range = last === undefined || last === first ? first : `${first} - ${last}`;
  const note = comment === undefined ? '' : ` comment "${comment}"`;
  const value = verdict
    ? ` : ${printVerdict(verdict)}`
    : data
      ? ` : ${printConcatenation(set.dataType ?? 0, data)}`
      : '';
  return `${set.name} { ${range}${note}${value} }`;
}
