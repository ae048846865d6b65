/**
 * Flows that may be stale, by what was dialled and who answers, as bytes: the main thread writes a filter, and the
 * thread that owns the sockets compares each flow with it. Pure.
 */
import { type Family, type Ip } from '../../model/ip.ts';
import { ATTRIBUTE_HEADER_BYTES, ByteBuffer, HEADER_BYTES, LITTLE_ENDIAN, viewOf } from '../codec.ts';
import { type FlowProtocol, locateFlow } from '../conntrack.ts';
import { PROTOCOL_NUMBERS, writeIp } from '../inet.ts';
import { NFGENMSG_BYTES } from '../nfnetlink.ts';
import type { MessageTest } from './scan.ts';

export interface FlowFilter {
  readonly kind: 'flows';
  readonly addressBytes: number;
  /** Records: protocol, whether it has an address, port, group of servers, address. */
  readonly frontends: Uint8Array<ArrayBuffer>;
  /** Records of addresses and ports, one group after the other. */
  readonly servers: Uint8Array<ArrayBuffer>;
  /** Where each group begins, in records; and where the last one ends. */
  readonly groups: Uint32Array<ArrayBuffer>;
}

/** A flow to this address and port may be stale, unless one of these answers it; `undefined`: to any address. */
interface FlowFrontend {
  readonly protocol: FlowProtocol;
  readonly address: Ip | undefined;
  readonly port: number;
  readonly servers: Iterable<FlowServer>;
}

interface FlowServer {
  readonly ip: Ip;
  readonly port: number;
}

/** Protocol, whether there is an address, and the port; then the group. */
const GROUP_OFFSET = 4;
const ADDRESS_OFFSET = 8;
const PORT_BYTES = 2;
const YIELD_EVERY = 500;

class Records extends ByteBuffer {
  constructor() {
    super(1024);
  }

  /** Where to write the next one. */
  next(size: number): { readonly bytes: Uint8Array; readonly view: DataView; readonly at: number } {
    const at = this.used;
    this.reserve(size);
    this.used = at + size;
    return { bytes: this.bytes, view: this.view, at };
  }

  finish(): Uint8Array<ArrayBuffer> {
    return this.bytes.slice(0, this.used);
  }
}

/** Frontends that have the same servers should have the same object: it is written once. */
export function* writeFlowFilter(
  frontends: Iterable<FlowFrontend>,
  family: Family,
): Generator<void, FlowFilter> {
  const addressBytes = family === 'IPv4' ? 4 : 16;
  const records = new Records();
  const servers = new Records();
  const groups: number[] = [];
  const known = new Map<Iterable<FlowServer>, number>();
  let count = 0;
  let steps = 0;
  for (const frontend of frontends) {
    let group = known.get(frontend.servers);
    if (group === undefined) {
      group = groups.length;
      known.set(frontend.servers, group);
      groups.push(count);
      for (const { ip, port } of frontend.servers) {
        const { bytes, view, at } = servers.next(addressBytes + PORT_BYTES);
        writeIp(ip, bytes, at);
        view.setUint16(at + addressBytes, port);
        count++;
        if (++steps % YIELD_EVERY === 0) yield;
      }
    }
    const { bytes, view, at } = records.next(ADDRESS_OFFSET + addressBytes);
    view.setUint8(at, PROTOCOL_NUMBERS[frontend.protocol]);
    view.setUint8(at + 1, frontend.address === undefined ? 0 : 1);
    view.setUint16(at + 2, frontend.port);
    view.setUint32(at + GROUP_OFFSET, group);
    if (frontend.address !== undefined) writeIp(frontend.address, bytes, at + ADDRESS_OFFSET);
    if (++steps % YIELD_EVERY === 0) yield;
  }
  return {
    kind: 'flows',
    addressBytes,
    frontends: records.finish(),
    servers: servers.finish(),
    groups: Uint32Array.from([...groups, count]),
  };
}

/** Frontends by protocol and port: by address, and the one of any address. */
interface AtPort {
  any: number | undefined;
  readonly byAddress: Map<string, number>;
}

/** Yields while it is being made. */
export function* flowTest({
  addressBytes,
  frontends,
  servers,
  groups,
}: FlowFilter): Generator<void, MessageTest> {
  const ports = yield* portsOf(frontends, addressBytes);
  const groupSets = new Map<number, ReadonlySet<string>>();
  const serversOf = (group: number): ReadonlySet<string> => {
    let set = groupSets.get(group);
    if (!set)
      groupSets.set(
        group,
        (set = textsOf(servers, addressBytes, groups[group] ?? 0, groups[group + 1] ?? 0)),
      );
    return set;
  };
  let examined = 0;
  let found: AtPort | undefined;
  const wanted = (protocol: FlowProtocol, port: number): boolean => {
    found = ports.get(portKey(PROTOCOL_NUMBERS[protocol], port));
    return found !== undefined;
  };
  return {
    get examined() {
      return examined;
    },
    take: (message) => {
      const view = viewOf(message);
      const places = locateFlow(view, HEADER_BYTES + NFGENMSG_BYTES, wanted);
      if (!places || !found) return undefined;
      examined++;
      const bytes = Buffer.from(message.buffer, message.byteOffset, message.byteLength);
      const address = addressText(bytes, view, places.destination);
      const group = found.byAddress.get(address) ?? found.any;
      if (group === undefined) return undefined;
      const port = bytes.toString('latin1', places.answererPort, places.answererPort + PORT_BYTES);
      return serversOf(group).has(addressText(bytes, view, places.answerer) + port) ? undefined : message;
    },
  };
}

function addressText(bytes: Buffer, view: DataView, at: number): string {
  return bytes.toString('latin1', at + ATTRIBUTE_HEADER_BYTES, at + view.getUint16(at, LITTLE_ENDIAN));
}

function* portsOf(
  frontends: Uint8Array<ArrayBuffer>,
  addressBytes: number,
): Generator<void, ReadonlyMap<number, AtPort>> {
  const ports = new Map<number, AtPort>();
  const bytes = Buffer.from(frontends.buffer, frontends.byteOffset, frontends.byteLength);
  const size = ADDRESS_OFFSET + addressBytes;
  for (let at = 0; at + size <= bytes.length; at += size) {
    if ((at / size) % YIELD_EVERY === 0) yield;
    const key = portKey(bytes.readUInt8(at), bytes.readUInt16BE(at + 2));
    let port = ports.get(key);
    if (!port) ports.set(key, (port = { any: undefined, byAddress: new Map() }));
    const group = bytes.readUInt32BE(at + GROUP_OFFSET);
    if (bytes.readUInt8(at + 1) === 0) port.any = group;
    else port.byAddress.set(bytes.toString('latin1', at + ADDRESS_OFFSET, at + size), group);
  }
  return ports;
}

function portKey(protocol: number, port: number): number {
  return protocol * 0x1_0000 + port;
}

function textsOf(
  servers: Uint8Array<ArrayBuffer>,
  addressBytes: number,
  from: number,
  to: number,
): ReadonlySet<string> {
  const size = addressBytes + PORT_BYTES;
  const bytes = Buffer.from(servers.buffer, servers.byteOffset, servers.byteLength);
  const texts = new Set<string>();
  for (let at = from * size; at < to * size; at += size) texts.add(bytes.toString('latin1', at, at + size));
  return texts;
}
