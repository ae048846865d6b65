/** What a rule loads of the first packet of a connection: its name, its type, and its bytes, where they are known. */
import { familyOf, type Family, type Ip } from '../../../model/ip.ts';
import { LITTLE_ENDIAN } from '../../../netlink/codec.ts';
import { FAMILY_NUMBERS, ipBytes, PROTOCOL_NUMBERS } from '../../../netlink/inet.ts';
import { type Expression, wordsOf } from '../../../netlink/nftables/expressions.ts';
import type { PacketState, WalkContext } from '../../kernelRules.ts';
import { addressType, CONNTRACK_STATES, conntrackStates, outInterface, SYN } from '../../matches.ts';
import type { ValueType } from './values.ts';

type ExpressionOf<Kind extends Expression['kind']> = Extract<Expression, { readonly kind: Kind }>;
type LoadExpression = ExpressionOf<'payload' | 'meta' | 'ct' | 'fib'>;
type BytesOf = (state: PacketState, context: WalkContext) => Uint8Array | undefined;

interface Load {
  readonly text: string;
  readonly type: ValueType;
  readonly words: number;
  readonly bytesOf: BytesOf;
}

const INTERFACE_NAME_BYTES = 16;
/** No value of a length that is not known is longer. */
const MAX_WORDS = 4;
const ETHERTYPE = { IPv4: [0x08, 0x00], IPv6: [0x86, 0xdd] } as const;
/** IPS_SRC_NAT and IPS_DST_NAT */
const STATUS = { SNAT: 0x10, DNAT: 0x20 } as const;
/** NF_CT_STATE_UNTRACKED_BIT; the other bits are those of iptables. */
const STATE_UNTRACKED = 64;
const STATE_BITS = 0xf;
const UNICAST = 1;

const unknown: BytesOf = () => undefined;
const protocolOf: BytesOf = ({ protocol }) => Uint8Array.of(PROTOCOL_NUMBERS[protocol]);
const sourceOf: BytesOf = ({ source }) => addressBytes(source);
const destinationOf: BytesOf = ({ destination }) => addressBytes(destination);
const tcpFlags: BytesOf = ({ protocol }) => (protocol === 'TCP' ? Uint8Array.of(SYN) : undefined);

type HeaderField = readonly [
  base: ExpressionOf<'payload'>['base'],
  family: Family | undefined,
  at: number,
  bytes: number,
  text: string,
  type: ValueType,
  value: BytesOf,
];
const FIELDS: readonly HeaderField[] = [
  ['network', 'IPv4', 9, 1, 'ip protocol', 'protocol', protocolOf],
  ['network', 'IPv4', 12, 4, 'ip saddr', 'address', sourceOf],
  ['network', 'IPv4', 16, 4, 'ip daddr', 'address', destinationOf],
  ['network', 'IPv6', 6, 1, 'ip6 nexthdr', 'protocol', protocolOf],
  ['network', 'IPv6', 8, 16, 'ip6 saddr', 'address', sourceOf],
  ['network', 'IPv6', 24, 16, 'ip6 daddr', 'address', destinationOf],
  ['transport', undefined, 0, 2, 'th sport', 'port', unknown],
  ['transport', undefined, 2, 2, 'th dport', 'port', ({ port }) => portBytes(port)],
  ['transport', undefined, 13, 1, 'tcp flags', 'bytes', tcpFlags],
];

type Named = readonly [type: ValueType, value: BytesOf];

const META: Readonly<Record<ExpressionOf<'meta'>['key'], Named>> = {
  protocol: ['bytes', ({ destination }) => Uint8Array.from(ETHERTYPE[familyOf(destination)])],
  mark: ['mark', ({ mark }) => hostU32(mark)],
  iif: ['number', unknown],
  oif: ['number', unknown],
  iifname: [
    'interface',
    // Whether a forwarded packet still has one in postrouting depends on the kernel's version.
    ({ inInterface, point }, { hasArrived }) =>
      hasArrived && point === 'postrouting' ? undefined : interfaceBytes(inInterface),
  ],
  oifname: [
    'interface',
    (state, context) => {
      const name = outInterface(state, context);
      return name === undefined ? undefined : interfaceBytes(name);
    },
  ],
  nfproto: ['family', ({ destination }) => Uint8Array.of(FAMILY_NUMBERS[familyOf(destination)])],
  l4proto: ['protocol', protocolOf],
};

const CONNTRACK: Partial<Record<ExpressionOf<'ct'>['key'], Named>> = {
  state: [
    'state',
    (state) => {
      const states = conntrackStates(state);
      return hostU32(states === CONNTRACK_STATES['UNTRACKED'] ? STATE_UNTRACKED : states & STATE_BITS);
    },
  ],
  status: [
    'status',
    ({ isRewritten, masqueraded }) =>
      hostU32((isRewritten ? STATUS.DNAT : 0) | (masqueraded ? STATUS.SNAT : 0)),
  ],
  mark: ['mark', unknown],
  direction: ['bytes', () => Uint8Array.of(0)],
  protocol: ['bytes', protocolOf],
  'proto-src': ['port', unknown],
  'proto-dst': ['port', ({ original }) => portBytes(original.port)],
  'ip saddr': ['address', ({ original }) => addressBytes(original.source)],
  'ip6 saddr': ['address', ({ original }) => addressBytes(original.source)],
  'ip daddr': ['address', ({ original }) => addressBytes(original.destination)],
  'ip6 daddr': ['address', ({ original }) => addressBytes(original.destination)],
};

export function loadOf(expression: LoadExpression): Load {
  switch (expression.kind) {
    case 'payload':
      return payload(expression);
    case 'meta': {
      const { key } = expression;
      const [type, value] = META[key];
      const words = type === 'interface' ? wordsOf(INTERFACE_NAME_BYTES) : 1;
      return { text: /^[io]if/.test(key) ? key : `meta ${key}`, type, words, bytesOf: value };
    }
    case 'ct': {
      const { key, direction } = expression;
      const [type, value] = CONNTRACK[key] ?? (['bytes', unknown] as const);
      const words = type === 'address' ? (key.startsWith('ip6') ? 4 : 1) : 1;
      const text = ['ct', ...(direction ? [direction] : []), key].join(' ');
      return { text, type, words, bytesOf: direction === 'reply' ? unknown : value };
    }
    case 'fib': {
      const { of, result } = expression;
      const text = `fib ${of.join(' . ')} ${result}`;
      const value: BytesOf = ({ source, destination }, { isLocal }) => {
        const ip = { saddr: source, daddr: destination }[of.join() as 'saddr' | 'daddr'];
        return ip && hostU32(addressType(ip, isLocal) ?? UNICAST);
      };
      if (result === 'type') return { text, type: 'address type', words: 1, bytesOf: value };
      return { text, type: 'bytes', words: MAX_WORDS, bytesOf: unknown };
    }
  }
}

/** A field, or the first bytes of an address, by name. */
function payload({ base, offset, bytes }: ExpressionOf<'payload'>): Load {
  const words = wordsOf(bytes);
  const named = FIELDS.find(([ofBase, , at, length, , type]) => {
    if (ofBase !== base || at !== offset) return false;
    // One byte at 8 is the TTL of IPv4.
    return type === 'address' ? bytes <= length && (bytes > 1 || offset > 8) : bytes === length;
  });
  const short = { link: 'll', network: 'nh', transport: 'th' }[base];
  const [, , , , text = `@${short},${offset * 8},${bytes * 8}`, type = 'bytes'] = named ?? [];
  return { text, type, words, bytesOf: (...given) => payloadBytes(base, offset, bytes, ...given) };
}

/** From one field, or several that lie side by side. */
function payloadBytes(
  base: string,
  offset: number,
  length: number,
  ...given: Parameters<BytesOf>
): Uint8Array | undefined {
  if (length > WORDS * WORD_BYTES) return undefined;
  const family = familyOf(given[0].destination);
  const result = new Uint8Array(length);
  for (let index = 0; index < length; ) {
    const at = offset + index;
    const found = FIELDS.find(
      ([ofBase, of = family, from, bytes]) =>
        ofBase === base && of === family && from <= at && at < from + bytes,
    );
    const [, , start = 0, , , , value = unknown] = found ?? [];
    const bytes = value(...given)?.subarray(at - start, offset + length - start);
    if (!bytes) return undefined;
    result.set(bytes, index);
    index += bytes.length;
  }
  return result;
}

/** A walk asks for a few addresses, hundreds of times. */
const MAX_KEPT = 4096;
const kept = new Map<Ip, Uint8Array>();

function addressBytes(ip: Ip): Uint8Array {
  let bytes = kept.get(ip);
  if (bytes) return bytes;
  if (kept.size >= MAX_KEPT) kept.clear();
  bytes = ipBytes(ip);
  kept.set(ip, bytes);
  return bytes;
}

export function hostU32(value: number): Uint8Array {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, value >>> 0, LITTLE_ENDIAN);
  return bytes;
}

function portBytes(port: number): Uint8Array {
  return Uint8Array.of(port >> 8, port & 0xff);
}

function interfaceBytes(name: string): Uint8Array {
  const bytes = new Uint8Array(INTERFACE_NAME_BYTES);
  new TextEncoder().encodeInto(name, bytes.subarray(0, INTERFACE_NAME_BYTES - 1));
  return bytes;
}

/** A rule has sixteen registers of four bytes. */
export const WORDS = 16;
export const WORD_BYTES = 4;
/** From here on a number is that of a word; the numbers from 1 to 4 are those of four words each. */
const FIRST_WORD = 8;
const WORDS_PER_REGISTER = 4;

/** Where a register begins, in words. `undefined`: there is none of this number. */
export function wordOf(register: number): number | undefined {
  const word = register >= FIRST_WORD ? register - FIRST_WORD : (register - 1) * WORDS_PER_REGISTER;
  return word >= 0 && word < WORDS ? word : undefined;
}
