/**
 * The kernel's table of connections: reads the flows of datagram protocols, deletes one. Numbers from
 * linux/netfilter/nfnetlink_conntrack.h.
 *
 * A table may hold hundreds of thousands of flows, so they are not read with an attribute table: the bytes are read in
 * place, and only a flow that is wanted becomes an object.
 */
import { constants } from 'node:os';
import { type Family, type Ip, parseBytes } from '../model/ip.ts';
import { AttributeTable, findAttribute, optional } from './attributes.ts';
import type { Change, ChangeOutcome } from './batch.ts';
import type { ScanEnd, TransactionChannel } from './channel.ts';
import { ATTRIBUTE_HEADER_BYTES, LITTLE_ENDIAN, NLM_F_DUMP, malformedMessage, viewOf } from './codec.ts';
import { type TransportProtocol, addressFamily, decodeIp, protocolByte } from './inet.ts';
import { bytes, bytesAt, u16be, u32, u32be } from './kinds.ts';
import { NFGENMSG_BYTES, NFNL_SUBSYS_CTNETLINK, nfnlRequest } from './nfnetlink.ts';
import type { NetlinkRequest } from './socket.ts';
import type { FlowFilter } from './worker/flowFilter.ts';

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

export type FlowProtocol = Exclude<TransportProtocol, 'TCP'>;

/** What a dump is narrowed to inside the kernel. */
export interface DumpFilter<P extends TransportProtocol = FlowProtocol> {
  readonly protocol: P;
  readonly address?: Ip | undefined;
  readonly port?: number;
}

export interface KernelFlow {
  readonly protocol: FlowProtocol;
  /** What its first packet was for. */
  readonly destination: Ip;
  readonly destinationPort: number;
  /** Where the replies come from. */
  readonly answerer: Ip;
  readonly answererPort: number;
  /** The kernel's number for it: another flow with the same addresses and ports has another one. */
  readonly id: number;
  /** Addresses and ports of the first packet, as the kernel writes them. */
  readonly original: Uint8Array;
}

/**
 * Kernels before 5.8 do not know the filter, ignore it, and return every flow of the family: whoever reads the reply has
 * to check again.
 */
export function getFlows(
  family: Family,
  { protocol, address, port }: DumpFilter<TransportProtocol>,
): NetlinkRequest {
  // For IPv6 the kernel compares the wrong way round, from 5.8 on and still in 6.18: it would leave out the very
  // address that is asked for.
  const destination = address === undefined || family === 'IPv6' ? undefined : parseBytes(address);
  const originalFlags =
    FILTER_PROTO_NUM | (destination ? FILTER_IP_DST : 0) | (port === undefined ? 0 : FILTER_PROTO_DST_PORT);
  return nfnlRequest(NFNL_SUBSYS_CTNETLINK, IPCTNL_MSG_CT_GET, NLM_F_DUMP, addressFamily(family), (writer) =>
    REQUEST.write(writer, { destination, protocol, port, originalFlags, replyFlags: 0 }),
  );
}

/** With its number, so that a younger flow with the same addresses and ports is not hit. */
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
  readonly #channel: TransactionChannel;

  constructor(family: Family, channel: TransactionChannel) {
    this.#family = family;
    this.#channel = channel;
  }

  /** Those that pass the filter, some at a time, as the kernel returns them. They may be removed meanwhile. */
  scan(dump: DumpFilter, filter: FlowFilter, take: (flows: readonly KernelFlow[]) => void): Promise<ScanEnd> {
    return this.#channel.scan(getFlows(this.#family, dump), filter, (messages) =>
      take(messages.flatMap(({ payload }) => decodeFlow(payload) ?? [])),
    );
  }

  /** Outcomes in the order of the flows; one that has ended by itself is `absent`. */
  remove(flows: readonly KernelFlow[]): Promise<readonly ChangeOutcome[]> {
    return this.#channel.apply(flows.map((flow) => deleteFlow(this.#family, flow)));
  }
}

/** `undefined`: of another protocol, or in a zone, where no rule of a service proxy puts one. */
export function decodeFlow(payload: Uint8Array): KernelFlow | undefined {
  const view = viewOf(payload);
  const places = locateFlow(view, NFGENMSG_BYTES, () => true);
  if (!places) return undefined;
  const { protocol, destination, destinationPort, answerer, answererPort, original } = places;
  const id = need(findAttribute(view, NFGENMSG_BYTES, payload.length, CTA_ID), CTA_ID);
  return {
    protocol,
    destination: ipAt(view, destination),
    destinationPort: view.getUint16(destinationPort),
    answerer: ipAt(view, answerer),
    answererPort: view.getUint16(answererPort),
    id: view.getUint32(valueAt(view, id, 4)),
    original: valueOf(view, original),
  };
}

/** Where the parts of a flow are in a message: addresses as attributes, ports as they are. */
interface FlowPlaces {
  readonly protocol: FlowProtocol;
  readonly original: number;
  readonly destination: number;
  readonly destinationPort: number;
  readonly answerer: number;
  readonly answererPort: number;
}

/** Its attributes begin at `start`. `undefined`: not wanted, of another protocol, or in a zone. */
export function locateFlow(
  view: DataView,
  start: number,
  wanted: (protocol: FlowProtocol, destinationPort: number) => boolean,
): FlowPlaces | undefined {
  const all = (type: number): number => findAttribute(view, start, view.byteLength, type);
  const original = need(all(CTA_TUPLE_ORIG), CTA_TUPLE_ORIG);
  const first = inside(view, original, CTA_TUPLE_PROTO);
  const protocol = protocolByte.word(view.getUint8(valueAt(view, inside(view, first, CTA_PROTO_NUM), 1)));
  if (!protocol) return undefined;
  const destinationPort = valueAt(view, inside(view, first, CTA_PROTO_DST_PORT), 2);
  if (protocol === 'TCP' || !wanted(protocol, view.getUint16(destinationPort))) return undefined;
  const reply = need(all(CTA_TUPLE_REPLY), CTA_TUPLE_REPLY);
  if (all(CTA_ZONE) || findIn(view, original, CTA_TUPLE_ZONE) || findIn(view, reply, CTA_TUPLE_ZONE))
    return undefined;
  const ports = inside(view, reply, CTA_TUPLE_PROTO);
  return {
    protocol,
    original,
    destination: addressIn(view, inside(view, original, CTA_TUPLE_IP), CTA_IP_V4_DST, CTA_IP_V6_DST),
    destinationPort,
    answerer: addressIn(view, inside(view, reply, CTA_TUPLE_IP), CTA_IP_V4_SRC, CTA_IP_V6_SRC),
    answererPort: valueAt(view, inside(view, ports, CTA_PROTO_SRC_PORT), 2),
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

function valueOf(view: DataView, at: number): Uint8Array {
  return bytesAt(view, at + ATTRIBUTE_HEADER_BYTES, at + view.getUint16(at, LITTLE_ENDIAN));
}

function addressIn(view: DataView, addresses: number, v4: number, v6: number): number {
  const at = findIn(view, addresses, v4);
  if (at === 0) return inside(view, addresses, v6);
  valueAt(view, at, 4);
  return at;
}

function ipAt(view: DataView, at: number): Ip {
  const start = at + ATTRIBUTE_HEADER_BYTES;
  if (view.getUint16(at, LITTLE_ENDIAN) !== ATTRIBUTE_HEADER_BYTES + 4) return decodeIp(valueOf(view, at));
  const octet = (index: number): number => view.getUint8(start + index);
  // Written out, because it is what a large table spends its time on.
  return `${octet(0)}.${octet(1)}.${octet(2)}.${octet(3)}` as Ip;
}
