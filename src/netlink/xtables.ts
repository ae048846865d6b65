/**
 * The structures of iptables' matches and targets, as `iptables-nft` puts them into expressions of nf_tables. Numbers are in
 * the machine's byte order unless a field says otherwise. From linux/netfilter/xt_*.h and linux/netfilter/nf_nat.h.
 */
import { LITTLE_ENDIAN, viewOf } from './codec.ts';
import { decodeText } from './kinds.ts';

interface Field<Value> {
  readonly at: number;
  readonly bytes: number;
  readonly blank: Value;
  write(this: void, view: DataView, at: number, value: Value): void;
  read(this: void, view: DataView, at: number): Value;
}

type Layout = Readonly<Record<string, Field<unknown>>>;
type Values<L extends Layout> = {
  readonly [Name in keyof L]: L[Name] extends Field<infer Value> ? Value : never;
};

/** One structure, of one revision. What no field covers is zero, or the structure means something that has no word here. */
export class XtStructure<L extends Layout = Layout> {
  /** Of the match or target. */
  readonly name: string;
  readonly revision: number;
  /** As long as it is in an expression: a multiple of eight. */
  readonly bytes: number;
  readonly #layout: readonly (readonly [name: string, field: Field<unknown>])[];
  /** Where the last field ends. */
  readonly #end: number;

  constructor(name: string, revision: number, bytes: number, layout: L) {
    this.name = name;
    this.revision = revision;
    this.bytes = bytes;
    this.#layout = Object.entries(layout);
    this.#end = Math.max(...Object.values(layout).map((field) => field.at + field.bytes));
  }

  encode(values: Partial<Values<L>>): Uint8Array<ArrayBuffer> {
    const info = new Uint8Array(this.bytes);
    const given = new Map<string, unknown>(Object.entries(values));
    for (const [name, { at, blank, write }] of this.#layout)
      write(viewOf(info), at, given.get(name) ?? blank);
    return info;
  }

  /** `undefined` where it is of another revision or length, or has something in it that no field covers. */
  decode(revision: number, info: Uint8Array): Values<L> | undefined {
    if (revision !== this.revision || info.length !== this.bytes) return undefined;
    const values = this.read(info);
    const again = values && this.encode(values);
    return again && info.every((byte, index) => byte === again[index]) ? values : undefined;
  }

  /** The fields alone, whatever else is in it. `undefined` where it ends before the last of them. */
  read(info: Uint8Array): Values<L> | undefined {
    if (info.length < this.#end) return undefined;
    const view = viewOf(info);
    return Object.fromEntries(
      this.#layout.map(([name, { at, read }]) => [name, read(view, at)]),
    ) as Values<L>;
  }
}

function u8(at: number): Field<number> {
  return {
    at,
    bytes: 1,
    blank: 0,
    write: (view, to, value) => view.setUint8(to, value),
    read: (view, from) => view.getUint8(from),
  };
}

function u16(at: number, blank = 0, isLittleEndian = LITTLE_ENDIAN): Field<number> {
  return {
    at,
    bytes: 2,
    blank,
    write: (view, to, value) => view.setUint16(to, value, isLittleEndian),
    read: (view, from) => view.getUint16(from, isLittleEndian),
  };
}

function u16be(at: number): Field<number> {
  return u16(at, 0, false);
}

function u32(at: number, blank = 0): Field<number> {
  return {
    at,
    bytes: 4,
    blank,
    write: (view, to, value) => view.setUint32(to, value, LITTLE_ENDIAN),
    read: (view, from) => view.getUint32(from, LITTLE_ENDIAN),
  };
}

function raw(at: number, blank: Uint8Array): Field<Uint8Array> {
  const bytesOf = (view: DataView, from: number): Uint8Array =>
    new Uint8Array(view.buffer, view.byteOffset + from, blank.length);
  const write: Field<Uint8Array>['write'] = (view, to, value) => bytesOf(view, to).set(value);
  return { at, bytes: blank.length, blank, write, read: bytesOf };
}

const encoder = new TextEncoder();

/** Filled up with zeros. */
function text(at: number, bytes: number): Field<string> {
  const { write, read } = raw(at, new Uint8Array(bytes));
  return {
    at,
    bytes,
    blank: '',
    write: (view, to, value) => write(view, to, encoder.encode(value).subarray(0, bytes)),
    read: (view, from) => decodeText(read(view, from)),
  };
}

const ADDRESS_BYTES = 16;
const ANY_PORT = 0xffff;
/** Of a whole address, also of an IPv4 address, which takes the first four bytes. */
export const HOST_MASK = new Uint8Array(ADDRESS_BYTES).fill(0xff);

export const XT_MATCHES = {
  comment: new XtStructure('comment', 0, 256, { text: text(0, 256) }),
  tcp: new XtStructure('tcp', 0, 16, {
    sourcePort: u16(0),
    lastSourcePort: u16(2, ANY_PORT),
    port: u16(4),
    lastPort: u16(6, ANY_PORT),
    option: u8(8),
    flagMask: u8(9),
    flags: u8(10),
    invert: u8(11),
  }),
  udp: new XtStructure('udp', 0, 16, {
    sourcePort: u16(0),
    lastSourcePort: u16(2, ANY_PORT),
    port: u16(4),
    lastPort: u16(6, ANY_PORT),
    invert: u8(8),
  }),
  sctp: new XtStructure('sctp', 0, 296, {
    port: u16(0),
    lastPort: u16(2),
    sourcePort: u16(4),
    lastSourcePort: u16(6),
    /** Types of chunks, whether all, any or only those, and their flags: none are asked for. */
    chunks: raw(8, new Uint8Array(260)),
    flagInfo: raw(268, Uint8Array.of(0xff, 0, 0, 0xff, 0, 0, 0xff, 0, 0, 0xff, 0, 0)),
    flagCount: u32(280),
    /** What is asked for. */
    asked: u32(284),
    invert: u32(288),
  }),
  addrtype: new XtStructure('addrtype', 1, 8, { source: u16(0), destination: u16(2), flags: u32(4) }),
  conntrack: new XtStructure('conntrack', 3, 168, {
    asked: u16(146),
    invert: u16(148),
    states: u16(150),
  }),
  mark: new XtStructure('mark', 1, 16, { mark: u32(0), mask: u32(4), isInverted: u8(8) }),
  statistic: new XtStructure('statistic', 0, 24, {
    mode: u16(0),
    isInverted: u16(2),
    /** Of 31 random bits. */
    probability: u32(4),
    packet: u32(8),
    /** Of the mode `nth`; the program computes it in any mode, as `probability` less `packet`. */
    count: u32(12),
  }),
  recent: new XtStructure('recent', 1, 232, {
    seconds: u32(0),
    hits: u32(4),
    operation: u8(8),
    isInverted: u8(9),
    name: text(10, 200),
    side: u8(210),
    mask: raw(212, HOST_MASK),
  }),
  physdev: new XtStructure('physdev', 0, 72, { invert: u8(64), asked: u8(65) }),
  nfacct: new XtStructure('nfacct', 1, 40, { name: text(0, 32) }),
  set: new XtStructure('set', 4, 48, {
    /** The kernel's number of the set. */
    index: u16(0),
    /** How many sides are looked up; which of them are of the source, from bit 1 on. */
    sides: u8(2),
    flags: u8(3),
  }),
  ipvs: new XtStructure('ipvs', 0, 40, {
    address: raw(0, new Uint8Array(ADDRESS_BYTES)),
    mask: raw(16, HOST_MASK),
    port: u16be(32),
    protocol: u8(34),
    forwarding: u8(35),
    controlPort: u16be(36),
    invert: u8(38),
    asked: u8(39),
  }),
} as const;

const NAT_RANGE = { flags: u32(0), first: raw(4, new Uint8Array(16)), last: raw(20, new Uint8Array(16)) };

export const XT_TARGETS = {
  MARK: new XtStructure('MARK', 2, 8, { mark: u32(0), mask: u32(4) }),
  /** struct nf_nat_range2 */
  DNAT: new XtStructure('DNAT', 2, 48, { ...NAT_RANGE, port: u16be(36), lastPort: u16be(38) }),
  /** struct nf_nat_ipv4_multi_range_compat, of one range. */
  MASQUERADE: new XtStructure('MASQUERADE', 0, 24, { ranges: u32(0, 1), flags: u32(4) }),
  /** struct nf_nat_range */
  MASQUERADE6: new XtStructure('MASQUERADE', 0, 40, { flags: u32(0) }),
  REJECT: new XtStructure('REJECT', 0, 8, { with: u32(0) }),
} as const;

export const NF_NAT_RANGE_MAP_IPS = 1;
export const NF_NAT_RANGE_PROTO_SPECIFIED = 2;
export const NF_NAT_RANGE_PROTO_RANDOM_FULLY = 0x10;

/** Icmp port unreachable: enum ipt_reject_with, enum ip6t_reject_with. */
export const PORT_UNREACHABLE = { IPv4: 3, IPv6: 4 } as const;

/** `1 << RTN_LOCAL` */
export const ADDRTYPE_LOCAL = 1 << 2;
export const ADDRTYPE_INVERT_SOURCE = 1;
export const ADDRTYPE_INVERT_DESTINATION = 2;

export const CONNTRACK_STATE = 1;
/** XT_CONNTRACK_STATE_* */
export const CONNTRACK_STATES = {
  INVALID: 1,
  ESTABLISHED: 1 << 1,
  RELATED: 1 << 2,
  NEW: 1 << 3,
  SNAT: 1 << 6,
  DNAT: 1 << 7,
  UNTRACKED: 1 << 8,
} as const;

export const RECENT_CHECK = 1;
export const RECENT_SET = 2;
export const RECENT_REAP = 0x20;

export const PHYSDEV_IS_IN = 8;
/** It is a packet of IPVS; its protocol, address and port are asked for. */
export const IPVS_VIRTUAL_SERVER = 0x0f;
export const SCTP_PORT = 2;
