/** From our words to the kernel's expressions, as nft itself would have written them. */
import { NFT_SETS } from './rules/names.ts';
import { NFT_FAMILY } from './rules/print.ts';
import type { Key, KeyPart, RuleSpec, Side, Statement } from './rules/table.ts';
import { type Cidr, type Family, prefixOf } from '../../model/ip.ts';
import { protocolByte, rangeOf } from '../../netlink/inet.ts';
import {
  CT_STATUS_DNAT,
  FIB_TYPE_LOCAL,
  registerAt,
  VERDICT_REGISTER,
  wordsOf,
} from '../../netlink/nftables/expressions.ts';
import type { Expression } from '../../netlink/nftables/expressions.ts';

/** Of a packet's header: how long an address is, and where they are. */
const HEADER: Readonly<Record<Family, Readonly<Record<Side | 'bytes', number>>>> = {
  IPv4: { bytes: 4, source: 12, destination: 16 },
  IPv6: { bytes: 16, source: 8, destination: 24 },
};
/** ICMP code of "port unreachable". */
const PORT_UNREACHABLE: Readonly<Record<Family, number>> = { IPv4: 3, IPv6: 4 };

const FIRST = registerAt(0);
const INTERFACE_NAME_BYTES = 16;
const REGISTER_WORDS = 16;

/** The set of concatenated ranges, for which nft turns the bytes of a protocol. */
const RANGES = NFT_SETS.allowed;

export function lowerRule({ statements }: RuleSpec, family: Family): readonly Expression[] {
  return statements.flatMap((statement) => lower(statement, family));
}

function lower(statement: Statement, family: Family): readonly Expression[] {
  const not = 'not' in statement && statement.not;
  switch (statement.kind) {
    case 'inSet': {
      const { key, set } = statement;
      return [
        ...loadKey(key, family, set === RANGES),
        { kind: 'lookup', set, from: FIRST, ...(not && { isInverted: true }) },
      ];
    }
    case 'dnatByMap':
      return [
        ...loadKey(statement.key, family),
        { kind: 'lookup', set: statement.map, from: FIRST, into: FIRST },
        {
          kind: 'nat',
          direction: 'dnat',
          family: NFT_FAMILY[family],
          address: FIRST,
          port: registerAt(wordsOf(HEADER[family].bytes)),
          flags: [],
        },
      ];
    case 'verdictByMap':
      return [
        ...loadKey(statement.key, family),
        { kind: 'lookup', set: statement.map, from: FIRST, into: VERDICT_REGISTER },
      ];
    case 'addressType': {
      const of = statement.side === 'source' ? 'saddr' : 'daddr';
      return [{ kind: 'fib', of: [of], result: 'type', into: FIRST }, compare(not, hostU32(FIB_TYPE_LOCAL))];
    }
    case 'addressIn':
      return addressIn(HEADER[family][statement.side], statement.cidr, not);
    case 'inInterface':
      return [{ kind: 'meta', key: 'iifname', into: FIRST }, compare(not, interfaceName(statement.name))];
    case 'protocol':
      return [
        load('protocol', FIRST, family),
        compare(false, Uint8Array.of(protocolByte.number(statement.protocol))),
      ];
    case 'hasPort':
      return [load('port', FIRST, family), compare(true, Uint8Array.of(0, 0))];
    case 'isRewritten':
      return [
        { kind: 'ct', key: 'status', into: FIRST },
        bitwise(hostU32(CT_STATUS_DNAT)),
        compare(true, hostU32(0)),
      ];
    case 'hasMark':
      return [
        { kind: 'meta', key: 'mark', into: FIRST },
        bitwise(hostU32(statement.mark)),
        compare(!not, hostU32(0)),
      ];
    case 'changeMark': {
      const { mark, operation } = statement;
      return [
        { kind: 'meta', key: 'mark', into: FIRST },
        bitwise(hostU32(operation === 'set' ? ~mark : -1), hostU32(mark)),
        { kind: 'set meta', key: 'mark', from: FIRST },
      ];
    }
    case 'learn':
      return learn(statement, family);
    case 'masquerade':
      return [{ kind: 'masquerade', flags: ['fully-random'] }];
    case 'reject':
      return [{ kind: 'reject', with: 'icmp', code: PORT_UNREACHABLE[family] }];
    case 'drop':
    case 'return':
      return [{ kind: 'verdict', verdict: statement.kind }];
    case 'jump':
      return [{ kind: 'verdict', verdict: statement.kind, chain: statement.chain }];
  }
}

/** One part behind the other, each in registers of its own. */
function loadKey(key: Key, family: Family, isRanges = false): readonly Expression[] {
  return key.flatMap((part, index) => {
    const into = registerAt(wordsOfKey(key.slice(0, index), family));
    const expression = load(part, into, family);
    if (!isRanges || part !== 'protocol') return [expression];
    return [expression, { kind: 'byteorder', operation: 'hton', from: into, into, bytes: 1, size: 2 }];
  });
}

const ADDRESSES: ReadonlySet<KeyPart> = new Set([
  'source',
  'destination',
  'originalSource',
  'originalDestination',
]);

/** All but addresses take one register. */
function wordsOfKey(key: Key, family: Family): number {
  const addressWords = wordsOf(HEADER[family].bytes);
  return key.reduce((sum, part) => sum + (ADDRESSES.has(part) ? addressWords : 1), 0);
}

function load(part: KeyPart, into: number, family: Family): Expression {
  const ip = NFT_FAMILY[family];
  if (typeof part === 'object') return { kind: 'numgen', generator: 'random', modulus: part.drawnOf, into };
  switch (part) {
    case 'source':
    case 'destination': {
      const { bytes, [part]: offset } = HEADER[family];
      return { kind: 'payload', base: 'network', offset, bytes, into };
    }
    case 'protocol':
      return { kind: 'meta', key: 'l4proto', into };
    case 'port':
      return { kind: 'payload', base: 'transport', offset: 2, bytes: 2, into };
    default: {
      const keys = { originalSource: `${ip} saddr`, originalDestination: `${ip} daddr` } as const;
      const key = part === 'originalPort' ? 'proto-dst' : keys[part];
      return { kind: 'ct', key, direction: 'original', into };
    }
  }
}

/** Networks that end at a byte's border are compared by their bytes alone. */
function addressIn(offset: number, cidr: Cidr, not: boolean): readonly Expression[] {
  const prefix = prefixOf(cidr);
  const { first } = rangeOf(cidr);
  const isWhole = prefix % 8 === 0 && prefix > 0;
  const value = isWhole ? first.slice(0, prefix / 8) : first;
  const mask = first.map((_, index) => (0xff00 >> Math.min(8, Math.max(0, prefix - index * 8))) & 0xff);
  return [
    { kind: 'payload', base: 'network', offset, bytes: value.length, into: FIRST },
    ...(isWhole ? [] : [bitwise(mask)]),
    compare(not, value),
  ];
}

/** The data of the entry begins at the next large register behind the key, as nft has it, if there is room for it. */
function learn(
  { key, map, seconds }: Extract<Statement, { kind: 'learn' }>,
  family: Family,
): readonly Expression[] {
  const addressWords = wordsOf(HEADER[family].bytes);
  const words = wordsOfKey(key, family);
  const aligned = Math.ceil(words / 4) * 4;
  const dataWord = aligned + addressWords < REGISTER_WORDS ? aligned : words;
  const data = registerAt(dataWord);
  return [
    ...loadKey(key, family),
    load('destination', data, family),
    load('port', registerAt(dataWord + addressWords), family),
    { kind: 'dynset', operation: 'update', set: map, key: FIRST, data, timeoutMs: seconds * 1000 },
  ];
}

function compare(not: boolean, value: Uint8Array): Expression {
  return { kind: 'compare', from: FIRST, comparison: not ? '!=' : '==', value };
}

function bitwise(mask: Uint8Array, xor: Uint8Array = new Uint8Array(mask.length)): Expression {
  return { kind: 'bitwise', from: FIRST, into: FIRST, mask, xor };
}

/** In the machine's byte order. */
function hostU32(value: number): Uint8Array {
  return new Uint8Array(new Uint32Array([value >>> 0]).buffer);
}

/** A whole name has its padding; the beginning of one has not. */
function interfaceName(name: string): Uint8Array {
  const isPrefix = name.endsWith('*');
  const bytes = new TextEncoder().encode(isPrefix ? name.slice(0, -1) : name);
  if (isPrefix) return bytes;
  const padded = new Uint8Array(INTERFACE_NAME_BYTES);
  padded.set(bytes.subarray(0, INTERFACE_NAME_BYTES - 1));
  return padded;
}
