/** Bytes of registers and keys as nft prints them, by the type of what they are. */
import { ipOfBytes } from '../../../model/ip.ts';
import { LITTLE_ENDIAN, viewOf } from '../../../netlink/codec.ts';
import { protocolByte } from '../../../netlink/inet.ts';
import { decodeText } from '../../../netlink/kinds.ts';
import { wordsOf } from '../../../netlink/nftables/expressions.ts';
import type { NftVerdict } from '../../../netlink/nftables/expressions.ts';
import type { SetElement } from '../../../netlink/nftables/elements.ts';
import { ADDRESS_TYPES } from '../../matches.ts';
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

const STATE_BITS = { 1: 'invalid', 2: 'established', 4: 'related', 8: 'new', 64: 'untracked' };
const STATUS_BITS = { 1: 'expected', 2: 'seen-reply', 4: 'assured', 8: 'confirmed', 16: 'snat', 32: 'dnat' };
const OTHER_PROTOCOLS: Readonly<Record<number, string>> = {
  1: 'icmp',
  58: 'ipv6-icmp',
  50: 'esp',
  47: 'gre',
};
const FAMILIES: Readonly<Record<number, string>> = { 2: 'ipv4', 10: 'ipv6' };

/** How long a value is, where that is fixed; `undefined`: it has no words. */
const PRINTERS: Readonly<
  Record<ValueType, readonly [bytes: number | undefined, print: (value: Uint8Array) => string | undefined]>
> = {
  address: [undefined, ipOfBytes],
  protocol: [1, ([number = 0]) => protocolName(number)],
  port: [2, (value) => String(viewOf(value).getUint16(0))],
  mark: [4, (value) => `0x${hostNumber(value).toString(16).padStart(8, '0')}`],
  interface: [undefined, (value) => `"${decodeText(value)}${value.includes(0) ? '' : '*'}"`],
  state: [4, (value) => printFlags(hostNumber(value), STATE_BITS)],
  status: [4, (value) => printFlags(hostNumber(value), STATUS_BITS)],
  'address type': [4, (value) => ADDRESS_TYPES[hostNumber(value)]?.toLowerCase()],
  family: [undefined, ([number = 0]) => FAMILIES[number]],
  number: [4, (value) => String(hostNumber(value))],
  bytes: [undefined, () => undefined],
};

export function printValue(type: ValueType, value: Uint8Array): string {
  const [bytes = value.length, print] = PRINTERS[type];
  return (value.length === bytes ? print(value) : undefined) ?? `0x${Buffer.from(value).toString('hex')}`;
}

function protocolName(number: number): string {
  return protocolByte.word(number)?.toLowerCase() ?? OTHER_PROTOCOLS[number] ?? String(number);
}

export function hostNumber(value: Uint8Array): number {
  return viewOf(value).getUint32(0, LITTLE_ENDIAN);
}

function printFlags(bits: number, names: Readonly<Record<number, string>>): string {
  const named = Object.entries(names).filter(([bit]) => (bits & Number(bit)) !== 0);
  return named.map(([, name]) => name).join(',') || `0x${bits.toString(16)}`;
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

/** `10.96.0.1 . tcp . 80`, up to another key `10.96.0.1 . tcp . 80 . 192.0.2.0/24` */
function printConcatenation(type: number, first: Uint8Array, last: Uint8Array): string {
  const parts = [];
  for (let left = type; left > 0; left = Math.floor(left / (1 << BITS_PER_PART)))
    parts.unshift(KEY_TYPES[left % (1 << BITS_PER_PART)]);
  const texts: string[] = [];
  let at = 0;
  for (const part of parts) {
    if (!part) return printValue('bytes', first);
    const [from, to] = [first, last].map((each) => each.subarray(at, at + part.bytes));
    if (from && to) texts.push(printRange(part.type, from, to));
    at += wordsOf(part.bytes) * WORD_BYTES;
  }
  return texts.join(' . ') || printValue('bytes', first);
}

/** A network by its prefix. */
function printRange(type: ValueType, first: Uint8Array, last: Uint8Array): string {
  const text = printValue(type, first);
  if (Buffer.compare(first, last) === 0) return text;
  const bits = (bytes: Uint8Array): string =>
    Array.from(bytes, (byte) => byte.toString(2).padStart(8, '0')).join('');
  const [low, high] = [bits(first), bits(last)];
  const prefix = [...low].findIndex((bit, index) => bit !== high[index]);
  const isNetwork = type === 'address' && !low.includes('1', prefix) && !high.includes('0', prefix);
  return isNetwork ? `${text}/${prefix}` : `${text}-${printValue(type, last)}`;
}

export function printVerdict({ verdict, chain }: NftVerdict): string {
  return chain === undefined ? verdict : `${verdict} ${chain}`;
}

/** `10.96.0.1 . tcp . 80 comment "shop/web" : 10.244.0.1 . 8080` */
export function printElement({ set, element }: FoundElement): string {
  const { key, keyEnd = key, data, verdict, comment, isIntervalEnd } = element;
  const note = comment === undefined ? '' : ` comment "${comment}"`;
  const value = verdict
    ? ` : ${printVerdict(verdict)}`
    : data
      ? ` : ${printConcatenation(set.dataType ?? 0, data, data)}`
      : '';
  return `${isIntervalEnd ? 'up to ' : ''}${printConcatenation(set.keyType, key, keyEnd)}${note}${value}`;
}

/** `any-1 { 10.96.0.1 . tcp . 80 : 10.244.0.1 . 8080 }` */
export function printFound(found: FoundElement): string {
  return `${found.set.name} { ${printElement(found)} }`;
}
