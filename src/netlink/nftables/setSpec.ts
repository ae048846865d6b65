/**
 * A set or a map as it is declared to nft, its properties in the kernel, and the user data from which nft prints it. Numbers from nft and libnftnl/udata.h.
 */
import type { ValueOf } from '../attributes.ts';
import { LITTLE_ENDIAN } from '../codec.ts';
import { type Expression, META_KEYS, wordsOf } from './expressions.ts';
import type { SET_ATTRIBUTES } from './objects.ts';
import { type UserDatum, commentText, encodeUserData } from './message.ts';

/** One field, or the parts of a concatenation. */
export type SetFields = { readonly type: readonly DataType[] } | { readonly typeof: readonly Selector[] };

export type SetFlag = keyof typeof FLAG_BITS;

export interface SetSpec {
  readonly name: string;
  readonly key: SetFields;
  /** Of a map. */
  readonly data?: SetFields | 'verdict';
  readonly flags?: readonly SetFlag[];
  /** The most elements that it takes. */
  readonly size?: number;
  /** Each element counts packets and bytes. */
  readonly counter?: true;
  readonly comment?: string;
}

/** enum byteorder of nft */
const NONE = 0;
const HOST = 1;
const NETWORK = 2;

/** By nft's `enum datatypes`: the kernel only keeps the number. An `integer` is what `numgen` makes. */
const DATA_TYPES = {
  integer: { number: 4, bytes: 4, order: HOST },
  ipv4_addr: { number: 7, bytes: 4, order: NETWORK },
  ipv6_addr: { number: 8, bytes: 16, order: NETWORK },
  inet_proto: { number: 12, bytes: 1, order: NONE },
  inet_service: { number: 13, bytes: 2, order: NETWORK },
} as const;
type DataType = keyof typeof DATA_TYPES;

/** The number of a concatenation has six bits for each part. */
const BITS_PER_PART = 6;
const WORD_BYTES = 4;
const FLAG_BITS = { interval: 0x4, timeout: 0x10, dynamic: 0x20 } as const;
const NFT_SET_MAP = 0x8;
const NFT_SET_CONCAT = 0x80;
const NFT_DATA_VERDICT = 0xffffff00;
/** What the kernel returns for a map of verdicts; the length in a request is ignored. */
const VERDICT_BYTES = 16;
const NEW_COUNTER: Expression = { kind: 'counter', packets: 0n, bytes: 0n };

/** The properties that the kernel compares. */
export type SetProperties = Omit<ValueOf<typeof SET_ATTRIBUTES>, 'table' | 'name' | 'id'>;

/** What the kernel returns for such a set. */
export function propertiesOf(spec: SetSpec): SetProperties {
  const { key, data, flags = [], size, counter } = spec;
  const types = fieldTypes(key);
  const isRanges = flags.includes('interval') && types.length > 1;
  const bits = flags.reduce((all, flag) => all | FLAG_BITS[flag], 0);
  return {
    flags: bits | (data ? NFT_SET_MAP : 0) | (isRanges ? NFT_SET_CONCAT : 0),
    keyType: typeNumber(types),
    keyBytes: totalBytes(types),
    dataType: data && (data === 'verdict' ? NFT_DATA_VERDICT : typeNumber(fieldTypes(data))),
    dataBytes: data && (data === 'verdict' ? VERDICT_BYTES : totalBytes(fieldTypes(data))),
    description: {
      size,
      fields: isRanges ? types.map((type) => ({ bytes: DATA_TYPES[type].bytes })) : undefined,
    },
    expression: counter && NEW_COUNTER,
    userData: encodeSetUserData(spec),
  };
}

function fieldTypes(fields: SetFields): readonly DataType[] {
  return 'type' in fields ? fields.type : fields.typeof.map((each) => selected(each).type);
}

function typeNumber(parts: readonly DataType[]): number {
  return parts.reduce((number, part) => (number << BITS_PER_PART) | DATA_TYPES[part].number, 0);
}

/** Each part of a concatenation begins in its own register. */
function totalBytes(parts: readonly DataType[]): number {
  const [first, ...others] = parts;
  if (first && others.length === 0) return DATA_TYPES[first].bytes;
  return parts.reduce((total, part) => total + wordsOf(DATA_TYPES[part].bytes) * WORD_BYTES, 0);
}

/**
 * What a set was declared to hold with `typeof`, in the words of nft: expressions instead of types. A number of
 * `numgen` has no type that a set could be declared with, so a map with one in its key cannot do without. `th` is a
 * transport header of any kind.
 */
export type Selector = FixedSelector | `numgen random mod ${number}`;
type FixedSelector = keyof typeof SELECTED;

interface Selected {
  readonly type: DataType;
  readonly expression: number;
  /** The arguments of the expression. */
  readonly details: readonly number[];
}

/** enum expr_types of nft */
const EXPR_VERDICT = 1;
const EXPR_PAYLOAD = 7;
const EXPR_META = 9;
const EXPR_CONCAT = 13;
const EXPR_NUMGEN = 23;
/** enum proto_desc_id of nft */
const TH = 11;
const IP = 12;
const IP6 = 13;
const NFT_NG_RANDOM = 1;

const SELECTED = {
  'ip daddr': payload('ipv4_addr', IP, 12),
  'ip6 daddr': payload('ipv6_addr', IP6, 9),
  'th dport': payload('inet_service', TH, 2),
  'meta l4proto': { type: 'inet_proto', expression: EXPR_META, details: [META_KEYS.number('l4proto')] },
} as const;

function payload(type: DataType, header: number, field: number): Selected {
  return { type, expression: EXPR_PAYLOAD, details: [header, field] };
}

function selected(selector: Selector): Selected {
  if (isFixed(selector)) return SELECTED[selector];
  const modulus = Number(selector.slice('numgen random mod '.length));
  return { type: 'integer', expression: EXPR_NUMGEN, details: [NFT_NG_RANDOM, modulus, 0] };
}

function isFixed(selector: Selector): selector is FixedSelector {
  return selector in SELECTED;
}

const UDATA_SET_KEYBYTEORDER = 0;
const UDATA_SET_DATABYTEORDER = 1;
const UDATA_SET_KEY_TYPEOF = 3;
const UDATA_SET_DATA_TYPEOF = 4;
const UDATA_SET_DATA_INTERVAL = 6;
const UDATA_SET_COMMENT = 7;

/** The same bytes that nft writes. */
export function encodeSetUserData({ key, data, comment }: SetSpec): Uint8Array {
  const entries: UserDatum[] = [number(UDATA_SET_KEYBYTEORDER, byteOrder(key))];
  if (data) entries.push(number(UDATA_SET_DATABYTEORDER, data === 'verdict' ? NONE : byteOrder(data)));
  const keyTypeof = typeofFields(key);
  if (keyTypeof) entries.push({ type: UDATA_SET_KEY_TYPEOF, value: keyTypeof });
  const dataTypeof = data && typeofData(key, data);
  if (dataTypeof) entries.push({ type: UDATA_SET_DATA_TYPEOF, value: dataTypeof });
  if (data) entries.push(number(UDATA_SET_DATA_INTERVAL, 0));
  if (comment !== undefined) entries.push({ type: UDATA_SET_COMMENT, value: commentText(comment) });
  return encodeUserData(entries);
}

/** A concatenation has none. Unlike that of its type, the byte order of `meta l4proto` is known. */
function byteOrder(fields: SetFields): number {
  const [first, ...others] = fieldTypes(fields);
  if (!first || others.length > 0) return NONE;
  const { order } = DATA_TYPES[first];
  return 'typeof' in fields && order === NONE ? HOST : order;
}

function typeofFields(fields: SetFields): Uint8Array | undefined {
  if ('typeof' in fields) return encodeSelectors(fields.typeof);
  // Declared with `type`, a concatenation has no names.
  return fields.type.length > 1 ? typeOf(EXPR_CONCAT, []) : undefined;
}

function typeofData(key: SetFields, data: SetFields | 'verdict'): Uint8Array | undefined {
  if (data !== 'verdict') return typeofFields(data);
  return 'typeof' in key ? typeOf(EXPR_VERDICT, []) : undefined;
}

/** In the format of nft. */
function encodeSelectors(selectors: readonly Selector[]): Uint8Array {
  const [first, ...others] = selectors;
  if (first && others.length === 0) return encodeSelector(first);
  return typeOf(
    EXPR_CONCAT,
    selectors.map((selector, type) => ({ type, value: encodeSelector(selector) })),
  );
}

function encodeSelector(selector: Selector): Uint8Array {
  const { expression, details } = selected(selector);
  return typeOf(
    expression,
    details.map((detail, type) => number(type, detail)),
  );
}

/** enum nftnl_udata_set_typeof_types: 0 is the expression, 1 what is known of it. */
function typeOf(expression: number, details: readonly UserDatum[]): Uint8Array {
  return encodeUserData([number(0, expression), { type: 1, value: encodeUserData(details) }]);
}

/** In the machine's byte order. */
function number(type: number, value: number): UserDatum {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, value, LITTLE_ENDIAN);
  return { type, value: bytes };
}
