/**
 * A flow out of a message of ctnetlink. A table may hold hundreds of thousands, so the bytes are read in place and
 * only what is asked for becomes an object. Numbers from linux/netfilter/nfnetlink_conntrack.h.
 */
import { type Ip, ipOfBytes } from '../model/ip.ts';
import type { DatagramProtocol, Flow } from '../plan/flows.ts';
import { LITTLE_ENDIAN, malformed } from './codec.ts';
import { NFGENMSG_BYTES } from './nfnetlink.ts';

export const CTA_TUPLE_ORIG = 1;
const CTA_TUPLE_REPLY = 2;
export const CTA_ID = 12;
const CTA_ZONE = 18;
export const CTA_TUPLE_IP = 1;
export const CTA_TUPLE_PROTO = 2;
const CTA_TUPLE_ZONE = 3;
const CTA_IP_V4_SRC = 1;
export const CTA_IP_V4_DST = 2;
const CTA_IP_V6_SRC = 3;
const CTA_IP_V6_DST = 4;
export const CTA_PROTO_NUM = 1;
const CTA_PROTO_SRC_PORT = 2;
export const CTA_PROTO_DST_PORT = 3;

const ATTRIBUTE_HEADER_BYTES = 4;
const TYPE_MASK = 0x3fff;

export const PROTOCOL_NUMBERS: Readonly<Record<DatagramProtocol, number>> = { UDP: 17, SCTP: 132 };

export interface KernelFlow extends Flow {
  /** The kernel's number for it: another flow with the same addresses and ports has another one. */
  readonly id: number;
  /** Addresses and ports of the first packet, as the kernel writes them. */
  readonly original: Uint8Array;
}

/** Asked before anything else is read. */
export type WantsFlow = (protocol: DatagramProtocol, destinationPort: number) => boolean;

/** `undefined`: not wanted, of another protocol, or in a zone, where no rule of a service proxy puts one. */
export function decodeFlow(payload: Uint8Array, wants: WantsFlow): KernelFlow | undefined {
  const reader = new AttributeReader(payload);
  const all: Span = [NFGENMSG_BYTES, payload.length];
  const original = reader.need(all, CTA_TUPLE_ORIG);
  const first = reader.need(original, CTA_TUPLE_PROTO);
  const protocol = protocolOf(reader.u8(reader.need(first, CTA_PROTO_NUM)));
  if (!protocol) return undefined;
  const destinationPort = reader.u16be(reader.need(first, CTA_PROTO_DST_PORT));
  if (!wants(protocol, destinationPort)) return undefined;
  const reply = reader.need(all, CTA_TUPLE_REPLY);
  const isZoned = reader.find(all, CTA_ZONE) ?? reader.find(original, CTA_TUPLE_ZONE);
  if (isZoned ?? reader.find(reply, CTA_TUPLE_ZONE)) return undefined;
  return {
    protocol,
    destination: reader.ip(reader.need(original, CTA_TUPLE_IP), CTA_IP_V4_DST, CTA_IP_V6_DST),
    destinationPort,
    answerer: reader.ip(reader.need(reply, CTA_TUPLE_IP), CTA_IP_V4_SRC, CTA_IP_V6_SRC),
    answererPort: reader.u16be(reader.need(reader.need(reply, CTA_TUPLE_PROTO), CTA_PROTO_SRC_PORT)),
    id: reader.u32be(reader.need(all, CTA_ID)),
    original: reader.bytes(original),
  };
}

function protocolOf(number: number): DatagramProtocol | undefined {
  if (number === PROTOCOL_NUMBERS.UDP) return 'UDP';
  return number === PROTOCOL_NUMBERS.SCTP ? 'SCTP' : undefined;
}

/** From and to, in bytes of the payload. */
type Span = readonly [start: number, end: number];

class AttributeReader {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  /** The value of the first attribute of this type inside a span, which is never outside the payload. */
  find([start, end]: Span, type: number): Span | undefined {
    for (let at = start; at < end; ) {
      if (end - at < ATTRIBUTE_HEADER_BYTES) throw malformed(`${end - at} bytes are no attribute`);
      const length = this.#view.getUint16(at, LITTLE_ENDIAN);
      if (length < ATTRIBUTE_HEADER_BYTES || length > end - at)
        throw malformed(`an attribute claims ${length} of ${end - at} bytes`);
      if ((this.#view.getUint16(at + 2, LITTLE_ENDIAN) & TYPE_MASK) === type)
        return [at + ATTRIBUTE_HEADER_BYTES, at + length];
      at += (length + 3) & ~3;
    }
    return undefined;
  }

  need(span: Span, type: number): Span {
    const found = this.find(span, type);
    if (!found) throw malformed(`attribute ${type} is missing`);
    return found;
  }

  bytes([start, end]: Span): Uint8Array {
    return this.#bytes.subarray(start, end);
  }

  u8(span: Span): number {
    return this.#view.getUint8(sized(span, 1));
  }

  u16be(span: Span): number {
    return this.#view.getUint16(sized(span, 2));
  }

  u32be(span: Span): number {
    return this.#view.getUint32(sized(span, 4));
  }

  ip(addresses: Span, v4: number, v6: number): Ip {
    const span = this.find(addresses, v4);
    if (span) {
      const at = sized(span, 4);
      const octet = (index: number): number => this.#view.getUint8(at + index);
      // Written out, because it is what a large table spends its time on.
      return `${octet(0)}.${octet(1)}.${octet(2)}.${octet(3)}` as Ip;
    }
    const ip = ipOfBytes(this.bytes(this.need(addresses, v6)));
    if (!ip) throw malformed('an address of neither 4 nor 16 bytes');
    return ip;
  }
}

function sized([start, end]: Span, size: number): number {
  if (end - start !== size) throw malformed(`${end - start} bytes where ${size} belong`);
  return start;
}
