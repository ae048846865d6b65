/**
 * What a set was declared to hold with `typeof`: expressions instead of types, as user data that nft prints. A number
 * of `numgen` has no type that a set could be declared with, so a map with one in its key cannot do without.
 */
import { LITTLE_ENDIAN } from '../codec.ts';
import { BYTE_ORDER_HOST, BYTE_ORDER_NONE, type DataType, byteOrderOf } from './dataTypes.ts';
import { META_KEYS } from './expressions/meta.ts';
import { type UserDatum, encodeUserData } from './userData.ts';

/** In the words of nft. `th` is a transport header of any kind. */
export type Selector =
  | 'ip saddr'
  | 'ip daddr'
  | 'ip6 saddr'
  | 'ip6 daddr'
  | 'meta l4proto'
  | 'meta mark'
  | 'th sport'
  | 'th dport'
  | `numgen random mod ${number}`;

type FixedSelector = Exclude<Selector, `numgen ${string}`>;

/** enum expr_types of nft */
const EXPR_VERDICT = 1;
const EXPR_PAYLOAD = 7;
const EXPR_META = 9;
const EXPR_CONCAT = 13;
const EXPR_NUMGEN = 23;
/** enum proto_desc_id of nft */
const PROTO_DESC_TH = 11;
const PROTO_DESC_IP = 12;
const PROTO_DESC_IP6 = 13;
/** enum nftnl_udata_set_typeof_types */
const TYPEOF_EXPR = 0;
const TYPEOF_DATA = 1;
const NFT_NG_RANDOM = 1;

interface Selected {
  readonly type: DataType;
  readonly expression: number;
  /** What the expression needs to be told from others of its kind. */
  readonly details: readonly number[];
}

const payload = (type: DataType, header: number, field: number): Selected => ({
  type,
  expression: EXPR_PAYLOAD,
  details: [header, field],
});

const SELECTED: Readonly<Record<FixedSelector, Selected>> = {
  'ip saddr': payload('ipv4_addr', PROTO_DESC_IP, 11),
  'ip daddr': payload('ipv4_addr', PROTO_DESC_IP, 12),
  'ip6 saddr': payload('ipv6_addr', PROTO_DESC_IP6, 8),
  'ip6 daddr': payload('ipv6_addr', PROTO_DESC_IP6, 9),
  'th sport': payload('inet_service', PROTO_DESC_TH, 1),
  'th dport': payload('inet_service', PROTO_DESC_TH, 2),
  'meta l4proto': { type: 'inet_proto', expression: EXPR_META, details: [META_KEYS.number('l4proto')] },
  'meta mark': { type: 'mark', expression: EXPR_META, details: [META_KEYS.number('mark')] },
};

export function selectorType(selector: Selector): DataType {
  return selected(selector).type;
}

/** Unlike that of its type, the byte order of `meta l4proto` is known. */
export function selectorByteOrder(selectors: readonly Selector[]): number {
  const order = byteOrderOf(selectors.map(selectorType));
  return selectors.length === 1 && order === BYTE_ORDER_NONE ? BYTE_ORDER_HOST : order;
}

/** How nft writes these down for itself. */
export function encodeSelectors(selectors: readonly Selector[]): Uint8Array {
  const [first, ...others] = selectors;
  if (first && others.length === 0) return encodeSelector(first);
  const parts = selectors.map((selector, type) => ({ type, value: encodeSelector(selector) }));
  return typeOf(EXPR_CONCAT, encodeUserData(parts));
}

/** That a set declared with `type` is keyed by several. */
export const UNNAMED_CONCATENATION: Uint8Array = typeOf(EXPR_CONCAT, new Uint8Array());
/** That a map declared with `typeof` has verdicts. */
export const VERDICT_DATA: Uint8Array = typeOf(EXPR_VERDICT, new Uint8Array());

function encodeSelector(selector: Selector): Uint8Array {
  const { expression, details } = selected(selector);
  return typeOf(expression, encodeUserData(details.map((detail, type) => number(type, detail))));
}

function typeOf(expression: number, details: Uint8Array): Uint8Array {
  return encodeUserData([number(TYPEOF_EXPR, expression), { type: TYPEOF_DATA, value: details }]);
}

function selected(selector: Selector): Selected {
  if (isFixed(selector)) return SELECTED[selector];
  const modulus = Number(selector.slice('numgen random mod '.length));
  return { type: 'integer', expression: EXPR_NUMGEN, details: [NFT_NG_RANDOM, modulus, 0] };
}

function isFixed(selector: Selector): selector is FixedSelector {
  return selector in SELECTED;
}

/** In the machine's byte order. */
export function number(type: number, value: number): UserDatum {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, value, LITTLE_ENDIAN);
  return { type, value: bytes };
}
