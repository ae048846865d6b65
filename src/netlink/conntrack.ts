/**
 * The kernel's table of connections: reads flows, deletes one. Numbers from
 * linux/netfilter/nfnetlink_conntrack.h.
 *
 * A table may hold hundreds of thousands of flows, so they are not read with an attribute table: the bytes are read in
 * place, and only a flow that is wanted becomes an object.
 */
import { constants } from 'node:os';
import { type Family, type Ip, parseBytes } from '../model/ip.ts';
import { AttributeTable, findAttribute, optional } from './attributes.ts';
import type { Change, ChangeOutcome, NetlinkEnd, NetlinkRequest } from './request.ts';
import type { NetlinkChannel } from './channel.ts';
import { ATTRIBUTE_HEADER_BYTES, LITTLE_ENDIAN, malformedMessage, NLM_F_DUMP, viewOf } from './codec.ts';
import { addressFamily, decodeIp, protocolByte, type TransportProtocol } from './inet.ts';
import { bytes, bytesAt, u16be, u32, u32be } from './kinds.ts';
import { NFGENMSG_BYTES, NFNL_SUBSYS_CTNETLINK, nfnlRequest } from './generic.ts';

const IPCTNL_MSG_CT_GET = 1;
const IPCTNL_MSG_CT_DELETE = 2;
const CTA_TUPLE_ORIG = 1;
const CTA_TUPLE_REPLY = 2;
const CTA_ID = 12;
const CTA_ZONE = 18;
const CTA_TUPLE_IP = 1;
const CTA_TUPLE_PROTO = 2;
const CTA_TUPLE_ZONE = 3;
const CTA_IP_V4_SRC = 1;
const CTA_IP_V4_DST = 2;
const CTA_IP_V6_SRC = 3;
const CTA_IP_V6_DST = 4;
const CTA_PROTO_NUM = 1;
const CTA_PROTO_SRC_PORT = 2;
const CTA_PROTO_DST_PORT = 3;
const CTA_FILTER = 25;
/** Which parts of the original tuple must be equal: net/netfilter/nf_internals.h, CTA_FILTER_F_*. */
const FILTER_IP_DST = 1 << 1;
const FILTER_PROTO_NUM = 1 << 3;
const FILTER_PROTO_DST_PORT = 1 << 5;

const REQUEST = new AttributeTable('a request for flows', {
  destination: optional([CTA_TUPLE_ORIG, CTA_TUPLE_IP, CTA_IP_V4_DST], bytes),
  protocol: optional([CTA_TUPLE_ORIG, CTA_TUPLE_PROTO, CTA_PROTO_NUM], protocolByte),
  port: optional([CTA_TUPLE_ORIG, CTA_TUPLE_PROTO, CTA_PROTO_DST_PORT], u16be),
  originalFlags: optional([CTA_FILTER, 1], u32),
  replyFlags: optional([CTA_FILTER, 2], u32),
});

const ABSENT: Change['expected'] = new Map([[constants.errno.ENOENT, 'absent']]);

/** By what a client dials: most flows are left out before they become objects. */
export type FlowTest = (protocol: TransportProtocol, destinationPort: number) => boolean;

/** What a dump is narrowed to inside the kernel. */
export interface DumpFilter {
  readonly protocol: TransportProtocol;
  readonly address?: Ip | undefined;
  readonly port?: number;
}

export interface KernelFlow {
  readonly protocol: TransportProtocol;
  /** The destination of its first packet. */
  readonly destination: Ip;
  readonly destinationPort: number;
  /** The source of the replies. */
  readonly answerer: Ip;
  readonly answererPort: number;
  /** The kernel's number for it: another flow with the same addresses and ports has another one. */
  readonly id: number;
  /** Addresses and ports of the first packet, as the kernel writes them. */
  readonly original: Uint8Array;
}

/**
 * Kernels before 5.8 ignore the filter and return every flow of the family: callers check each flow.
 */
export function getFlows(family: Family, { protocol, address, port }: DumpFilter): NetlinkRequest {
  // For IPv6 the kernel compares the wrong way round, from 5.8 to 6.18: it leaves out the address that is asked for.
  const destination = address === undefined || family === 'IPv6' ? undefined : parseBytes(address);
  const originalFlags =
    FILTER_PROTO_NUM | (destination ? FILTER_IP_DST : 0) | (port === undefined ? 0 : FILTER_PROTO_DST_PORT);
  return nfnlRequest(NFNL_SUBSYS_CTNETLINK, IPCTNL_MSG_CT_GET, NLM_F_DUMP, addressFamily(family), (writer) =>
    REQUEST.write(writer, { destination, protocol, port, originalFlags, replyFlags: 0 }),
  );
}

/** By its id, so that a newer flow with the same addresses and ports stays. */
export function deleteFlow(family: Family, { original, id }: KernelFlow): Change {
  return {
    ...nfnlRequest(NFNL_SUBSYS_CTNETLINK, IPCTNL_MSG_CT_DELETE, 0, addressFamily(family), (writer) => {
      writer.nested(CTA_TUPLE_ORIG, (tuple) => tuple.raw(original));
      u32be.write(writer, CTA_ID, id);
    }),
    expected: ABSENT,
  };
}

export class ConntrackTable {
  readonly #family: Family;
  readonly #channel: NetlinkChannel;

  constructor(family: Family, channel: NetlinkChannel) {
    this.#family = family;
    this.#channel = channel;
  }

  /** Flows to these ports, some at a time, as the kernel returns them. They may be removed meanwhile. */
  scan(
    dump: DumpFilter,
    isWanted: FlowTest,
    take: (flows: readonly KernelFlow[]) => void,
  ): Promise<NetlinkEnd> {
    return this.#channel.scan(getFlows(this.#family, dump), (messages) =>
      take(messages.flatMap(({ payload }) => decodeFlow(payload, isWanted) ?? [])),
    );
  }

  /** Outcomes in the order of the flows; one that has ended by itself is `absent`. */
  remove(flows: readonly KernelFlow[]): Promise<readonly ChangeOutcome[]> {
    return this.#channel.apply(flows.map((flow) => deleteFlow(this.#family, flow)));
  }
}

/** `undefined`: not wanted, of another protocol, or in a zone, where no rule of a service proxy puts one. */
export function decodeFlow(payload: Uint8Array, isWanted: FlowTest = () => true): KernelFlow | undefined {
  const view = viewOf(payload);
  const all = (type: number): number => findAttribute(view, NFGENMSG_BYTES, payload.length, type);
  const original = need(all(CTA_TUPLE_ORIG), CTA_TUPLE_ORIG);
  const first = inside(view, original, CTA_TUPLE_PROTO);
  const protocol = protocolByte.word(view.getUint8(valueAt(view, inside(view, first, CTA_PROTO_NUM), 1)));
  if (!protocol) return undefined;
  const destinationPort = view.getUint16(valueAt(view, inside(view, first, CTA_PROTO_DST_PORT), 2));
  if (!isWanted(protocol, destinationPort)) return undefined;
  const reply = need(all(CTA_TUPLE_REPLY), CTA_TUPLE_REPLY);
  if (all(CTA_ZONE) || findIn(view, original, CTA_TUPLE_ZONE) || findIn(view, reply, CTA_TUPLE_ZONE))
    return undefined;
  const ports = inside(view, reply, CTA_TUPLE_PROTO);
  return {
    protocol,
    destination: ipIn(view, inside(view, original, CTA_TUPLE_IP), CTA_IP_V4_DST, CTA_IP_V6_DST),
    destinationPort,
    answerer: ipIn(view, inside(view, reply, CTA_TUPLE_IP), CTA_IP_V4_SRC, CTA_IP_V6_SRC),
    answererPort: view.getUint16(valueAt(view, inside(view, ports, CTA_PROTO_SRC_PORT), 2)),
    id: view.getUint32(valueAt(view, need(all(CTA_ID), CTA_ID), 4)),
    original: bytesAt(
      view,
      original + ATTRIBUTE_HEADER_BYTES,
      original + view.getUint16(original, LITTLE_ENDIAN),
    ),
  };
}

function findIn(view: DataView, nest: number, type: number): number {
  return findAttribute(view, nest + ATTRIBUTE_HEADER_BYTES, nest + view.getUint16(nest, LITTLE_ENDIAN), type);
}

function inside(view: DataView, nest: number, type: number): number {
  return need(findIn(view, nest, type), type);
}

function need(at: number, type: number): number {
  if (at === 0) throw malformedMessage(`attribute ${type} is missing`);
  return at;
}

function valueAt(view: DataView, at: number, size: number): number {
  const bytes = view.getUint16(at, LITTLE_ENDIAN) - ATTRIBUTE_HEADER_BYTES;
  if (bytes !== size) throw malformedMessage(`${bytes} bytes where ${size} belong`);
  return at + ATTRIBUTE_HEADER_BYTES;
}

function ipIn(view: DataView, addresses: number, v4: number, v6: number): Ip {
  const at = findIn(view, addresses, v4);
  const found = at === 0 ? inside(view, addresses, v6) : at;
  const start = valueAt(view, found, at === 0 ? 16 : 4);
  return decodeIp(bytesAt(view, start, start + (at === 0 ? 16 : 4)));
}
