/**
 * Expressions: a rule is a list of them, and each passes the packet on to the next or ends the rule. Unknown ones keep their
 * bytes. The comments are what `nft --debug=netlink` prints.
 */
import {
  AttributeTable,
  type Rows,
  type ValueOf,
  computed,
  constant,
  list,
  onlyIf,
  optional,
  required,
  withDefault,
} from '../attributes.ts';
import { type MessageWriter, malformedMessage, viewOf } from '../codec.ts';
import {
  type AttributeKind,
  UNKNOWN,
  bytes,
  bytesAt,
  flagWords,
  milliseconds,
  text,
  u32be,
  u64be,
  u8,
  words,
} from '../kinds.ts';

/**
 * The registers of a rule: sixteen words of four bytes, each of which is addressed as 8 and following. Where four of
 * them begin that a 16-byte register of old covers, the kernel and nft say 1 to 4 instead, so that is the one number
 * that a register has here. What is put into this one is done.
 */
export const VERDICT_REGISTER = 0;

const FIRST_WORD = 8;
const WORD_BYTES = 4;
const WORDS_PER_REGISTER = 4;

/** The register that begins so many words after the first. */
export function registerAt(word: number) {
  return word % WORDS_PER_REGISTER === 0 ? word / WORDS_PER_REGISTER + 1 : FIRST_WORD + word;
}

/** How many registers of four bytes something takes. Each part of a concatenation starts in one of its own. */
export function wordsOf(bytes: number): number {
  return Math.ceil(bytes / WORD_BYTES);
}

/** NF_DROP and NF_ACCEPT of linux/netfilter.h, and enum nft_verdicts, whose numbers are negative. */
export const VERDICTS = words({
  drop: 0,
  accept: 1,
  continue: -1 >>> 0,
  break: -2 >>> 0,
  jump: -3 >>> 0,
  goto: -4 >>> 0,
  return: -5 >>> 0,
});

/** The contents of NFTA_DATA_VERDICT. */
export const VERDICT = new AttributeTable('a verdict', {
  verdict: required(1, VERDICTS),
  /** Of a jump and a goto. */
  chain: optional(2, text),
});
export type NftVerdict = ValueOf<typeof VERDICT>;

/** enum nft_meta_keys */
export const META_KEYS = words({
  protocol: 1,
  mark: 3,
  iif: 4,
  oif: 5,
  iifname: 6,
  oifname: 7,
  nfproto: 15,
  l4proto: 16,
});

/** enum nft_ct_keys. Addresses by NFT_CT_SRC_IP and its like, which have a known length: since Linux 4.17. */
const CT_KEYS = words({
  state: 0,
  direction: 1,
  status: 2,
  mark: 3,
  protocol: 10,
  'proto-src': 11,
  'proto-dst': 12,
  'ip saddr': 19,
  'ip daddr': 20,
  'ip6 saddr': 21,
  'ip6 daddr': 22,
});

/** IPS_DST_NAT of linux/netfilter/nf_conntrack_common.h: the bit of `ct status dnat`, in the machine's byte order. */
export const CT_STATUS_DNAT = 0x20;
/** RTN_LOCAL of linux/rtnetlink.h: what `fib … type local` compares with, in the machine's byte order. */
export const FIB_TYPE_LOCAL = 2;

const NAT_FLAG_BITS = { random: 4, persistent: 8, 'fully-random': 16 } as const;
/** NF_NAT_RANGE_MAP_IPS and NF_NAT_RANGE_PROTO_SPECIFIED: the kernel adds these for the registers that it is given. */
const NAT_IMPLIED = 1 | 2;

/** Not written when there are none. */
function omitted<Value>(kind: AttributeKind<readonly Value[]>): AttributeKind<readonly Value[]> {
  return {
    write: (writer, type, flags) => {
      if (flags.length > 0) kind.write(writer, type, flags);
    },
    read: kind.read,
  };
}

/** The kernel returns none as zero. */
const timeout: AttributeKind<number> = {
  write: milliseconds.write,
  read: (view, start, end) => milliseconds.read(view, start, end) || undefined,
};

const NFT_LOOKUP_F_INV = 1;
const inverted: AttributeKind<true> = {
  write: (writer, type) => u32be.write(writer, type, NFT_LOOKUP_F_INV),
  read: (view, start, end) => {
    const flags = u32be.read(view, start, end);
    if (flags === NFT_LOOKUP_F_INV) return true;
    return flags === 0 ? undefined : UNKNOWN;
  },
};

const isZero = (value: unknown): boolean => value === 0;

function sameLength({ mask, xor }: Record<string, unknown>): number {
  if (mask instanceof Uint8Array && xor instanceof Uint8Array && mask.length === xor.length)
    return mask.length;
  throw malformedMessage('a mask and an xor of different lengths');
}

/** `name` is the kernel's. Two expressions of one name are tried in turn. */
function expression<R extends Rows>(
  name: string,
  rows: R,
): { readonly name: string; readonly table: AttributeTable<R> } {
  return { name, table: new AttributeTable(`the expression ${name}`, rows) };
}

const EXPRESSIONS = {
  /** `[ payload load 4b @ network header + 16 => reg 1 ]` Without a destination, it writes to the packet. */
  payload: expression('payload', {
    into: required(1, u32be),
    base: required(2, words({ link: 0, network: 1, transport: 2 })),
    offset: required(3, u32be),
    bytes: required(4, u32be),
  }),
  /** `[ meta load l4proto => reg 1 ]` */
  meta: expression('meta', { key: required(2, META_KEYS), into: required(1, u32be) }),
  /** `[ meta set mark with reg 1 ]` */
  'set meta': expression('meta', { key: required(2, META_KEYS), from: required(3, u32be) }),
  /** `[ ct load dst_ip => reg 1 , dir original ]` Without a destination, it changes the connection. */
  ct: expression('ct', {
    key: required(2, CT_KEYS),
    into: required(1, u32be),
    /** Addresses and ports have one, the rest has none. */
    direction: optional(3, words({ original: 0, reply: 1 }, u8)),
  }),
  /** `[ fib daddr type => reg 1 ]` */
  fib: expression('fib', {
    into: required(1, u32be),
    result: required(2, words({ oif: 1, oifname: 2, type: 3 })),
    of: required(3, flagWords({ saddr: 1, daddr: 2, mark: 4, iif: 8, oif: 16, present: 32 })),
  }),
  /** `[ numgen reg 11 = random mod 3 ]` In the machine's byte order. */
  numgen: expression('numgen', {
    into: required(1, u32be),
    modulus: required(2, u32be),
    generator: required(3, words({ inc: 0, random: 1 })),
    offset: constant(4, u32be, 0),
  }),
  /** `[ cmp eq reg 1 0x00000006 ]` */
  compare: expression('cmp', {
    from: required(1, u32be),
    comparison: required(2, words({ '==': 0, '!=': 1, '<': 2, '<=': 3, '>': 4, '>=': 5 })),
    value: required([3, 1], bytes),
  }),
  /** `[ range neq reg 1 0x00000100 0x00000200 ]` */
  range: expression('range', {
    from: required(1, u32be),
    comparison: required(2, words({ '==': 0, '!=': 1 })),
    first: required([3, 1], bytes),
    last: required([4, 1], bytes),
  }),
  /** `[ bitwise reg 1 = ( reg 1 & 0x00004000 ) ^ 0x00000000 ]` Kernels before 5.6 know no other operation, and skip it. */
  bitwise: expression('bitwise', {
    from: required(1, u32be),
    into: required(2, u32be),
    length: computed(3, u32be, sameLength),
    operation: constant(6, u32be, 0),
    mask: required([4, 1], bytes),
    /** As long as the mask. */
    xor: required([5, 1], bytes),
  }),
  /** `[ byteorder reg 9 = hton(reg 9, 2, 1) ]` */
  byteorder: expression('byteorder', {
    from: required(1, u32be),
    into: required(2, u32be),
    operation: required(3, words({ ntoh: 0, hton: 1 })),
    /** Of all numbers together. */
    bytes: required(4, u32be),
    /** Of each: 2, 4 or 8. */
    size: required(5, u32be),
  }),
  /** `[ lookup reg 1 set any-3 dreg 1 ]` A miss ends the rule. */
  lookup: expression('lookup', {
    set: required(1, text),
    from: required(2, u32be),
    /** Of a map. The register of verdicts for a map of verdicts. */
    into: optional(3, u32be),
    /** A hit ends the rule. */
    isInverted: optional(5, inverted),
  }),
  /** `[ dynset update reg_key 1 set affinity-tcp sreg_data 2 timeout 180000ms ]` */
  dynset: expression('dynset', {
    key: required(4, u32be),
    /** Of a map. */
    data: optional(5, u32be),
    /** `add` leaves what is there as it is; `update` begins its time again. */
    operation: required(3, words({ add: 0, update: 1, delete: 2 })),
    set: required(1, text),
    timeoutMs: optional(6, timeout),
    /** nft names sets of the same transaction by number too; the name is enough, and the kernel shows no other. */
    setId: constant(2, u32be, 0),
    expression: onlyIf(7, bytes),
    flags: onlyIf(9, u32be, isZero),
    expressions: onlyIf(10, bytes),
  }),
  /** `[ immediate reg 1 0x00000011 ]` */
  immediate: expression('immediate', { into: required(1, u32be), value: required([2, 1], bytes) }),
  /** `[ immediate reg 0 goto -> pool-1 ]` */
  verdict: expression('immediate', {
    into: constant(1, u32be, VERDICT_REGISTER),
    verdict: required([2, 2, 1], VERDICTS),
    chain: optional([2, 2, 2], text),
  }),
  /** `[ nat dnat ip addr_min reg 1 proto_min reg 9 ]` The kernel shows a range of one, also when it was given none. */
  nat: expression('nat', {
    direction: required(1, words({ snat: 0, dnat: 1 })),
    family: required(2, words({ ip: 2, ip6: 10 })),
    address: optional(3, u32be),
    lastAddress: onlyIf(4, u32be, (value, { address }) => value === address),
    port: optional(5, u32be),
    lastPort: onlyIf(6, u32be, (value, { port }) => value === port),
    flags: withDefault(7, omitted(flagWords(NAT_FLAG_BITS, NAT_IMPLIED)), []),
  }),
  /** `[ masq flags 0x10 ]` A range of ports has no word here. */
  masquerade: expression('masq', {
    flags: withDefault(1, omitted(flagWords(NAT_FLAG_BITS)), []),
    port: onlyIf(2, u32be),
  }),
  /** `[ reject type 0 code 3 ]` */
  reject: expression('reject', {
    /** `icmp` is ICMPv6 in a table of IPv6. */
    with: required(1, words({ icmp: 0, 'tcp reset': 1, icmpx: 2 })),
    /** The kernel shows none for a reset. */
    code: withDefault(2, u8, 0),
  }),
  /** `[ match name conntrack rev 3 ]` Of iptables, with what the program made of its arguments. */
  'xt match': expression('match', {
    name: required(1, text),
    revision: withDefault(2, u32be, 0),
    info: withDefault(3, bytes, new Uint8Array()),
  }),
  /** `[ target name LOG rev 0 ]` */
  'xt target': expression('target', {
    name: required(1, text),
    revision: withDefault(2, u32be, 0),
    info: withDefault(3, bytes, new Uint8Array()),
  }),
  /** `[ counter pkts 0 bytes 0 ]` */
  counter: expression('counter', { bytes: required(1, u64be), packets: required(2, u64be) }),
} as const;

type KnownKind = keyof typeof EXPRESSIONS;
type KnownExpression = {
  [K in KnownKind]: { readonly kind: K } & ValueOf<(typeof EXPRESSIONS)[K]['table']>;
}[KnownKind];

/** An unknown expression, as the kernel returned it. */
interface OtherExpression {
  readonly kind: 'other';
  readonly name: string;
  readonly data: Uint8Array;
}

export type Expression = KnownExpression | OtherExpression;

const TABLES: ReadonlyMap<string, { readonly name: string; readonly table: AttributeTable<Rows> }> = new Map(
  Object.entries(EXPRESSIONS),
);

const NFTA_EXPR_NAME = 1;
const NFTA_EXPR_DATA = 2;
const ENVELOPE = new AttributeTable('an expression', {
  name: required(NFTA_EXPR_NAME, text),
  data: withDefault(NFTA_EXPR_DATA, bytes, new Uint8Array()),
});

export function writeExpression(writer: MessageWriter, expression: Expression): void {
  const { name, table } = TABLES.get(expression.kind) ?? {};
  writer.string(NFTA_EXPR_NAME, name ?? ('name' in expression ? expression.name : ''));
  writer.nested(NFTA_EXPR_DATA, (data) => {
    if (expression.kind === 'other') data.raw(expression.data);
    else table?.write(data, expression);
  });
}

export function decodeExpression(encoded: Uint8Array): Expression {
  const { name, data } = ENVELOPE.read(encoded);
  for (const [kind, { name: known, table }] of TABLES) {
    const value = known === name ? table.tryRead(viewOf(data), 0, data.length) : undefined;
    if (value) return { kind, ...value } as KnownExpression;
  }
  return { kind: 'other', name, data };
}

/** As an attribute. */
export const expressionKind: AttributeKind<Expression> = {
  write: (writer, type, value) => writer.nested(type, (inner) => writeExpression(inner, value)),
  read: (view, start, end) => decodeExpression(bytesAt(view, start, end)),
};

export const expressionList = list(expressionKind);
