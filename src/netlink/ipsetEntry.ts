/** The members of ipsets. */
import { type Cidr, type Ip, parseCidr, prefixOf } from '../model/ip.ts';
import { AttributeTable, type ValueOf, list, optional, required } from './attributes.ts';
import { type MessageWriter, malformedMessage, viewOf } from './codec.ts';
import { address, protocolByte } from './inet.ts';
import { type AttributeKind, u16be, u8 } from './kinds.ts';

/** ipset insists on hearing that a number or an address is big endian. */
export const NLA_F_NET_BYTEORDER = 0x4000;
const NET = NLA_F_NET_BYTEORDER;

const ADDRESS = new AttributeTable('an address', {
  v4: optional(1 | NET, address),
  v6: optional(2 | NET, address),
});

/** In a nest, under the number of its family. */
const ipNest: AttributeKind<Ip> = {
  write: (writer, type, ip) => {
    const start = writer.openNest();
    address.write(writer, (ip.includes(':') ? 2 : 1) | NET, ip);
    writer.closeNest(start, type);
  },
  read: (view, start, end) => {
    const { v4, v6 } = ADDRESS.readFrom(view, start, end);
    const ip = v4 ?? v6;
    if (ip === undefined) throw malformedMessage('an address without its bytes');
    return ip;
  },
};

const IP = { ip: required(1, ipNest) } as const;
const PORT = { port: required(4 | NET, u16be) } as const;
const IP_PORT = { ...IP, ...PORT, protocol: required(7, protocolByte) } as const;
const SECOND_IP = { secondIp: required(20, ipNest) } as const;

const ENTRIES = {
  'hash:ip': new AttributeTable('an entry of hash:ip', IP),
  'hash:ip,port': new AttributeTable('an entry of hash:ip,port', IP_PORT),
  'hash:ip,port,ip': new AttributeTable('an entry of hash:ip,port,ip', { ...IP_PORT, ...SECOND_IP }),
  'hash:ip,port,net': new AttributeTable('an entry of hash:ip,port,net', {
    ...IP_PORT,
    ...SECOND_IP,
    prefix: required(21, u8),
  }),
  'bitmap:port': new AttributeTable('an entry of bitmap:port', PORT),
} as const;

export type IpsetType = keyof typeof ENTRIES;
export const IPSET_TYPES = Object.keys(ENTRIES) as readonly IpsetType[];

type PlainType = Exclude<IpsetType, 'hash:ip,port,net'>;
type PlainEntry = {
  [Type in PlainType]: { readonly type: Type } & ValueOf<(typeof ENTRIES)[Type]>;
}[PlainType];
/** Networks are never the empty prefix: the kernel refuses 0.0.0.0/0. */
type NetEntry = { readonly type: 'hash:ip,port,net'; readonly net: Cidr } & ValueOf<
  (typeof ENTRIES)['hash:ip,port']
>;
export type IpsetEntry = PlainEntry | NetEntry;

export function writeEntry(writer: MessageWriter, entry: IpsetEntry): void {
  if (entry.type !== 'hash:ip,port,net') {
    ENTRIES[entry.type].write(writer, entry);
    return;
  }
  // A canonical network begins with a canonical address.
  const secondIp = entry.net.slice(0, entry.net.indexOf('/')) as Ip;
  ENTRIES[entry.type].write(writer, { ...entry, secondIp, prefix: prefixOf(entry.net) });
}

/** All that one message has of a set. */
export function decodeEntries(type: IpsetType, members: Uint8Array): readonly IpsetEntry[] {
  const entry: AttributeKind<IpsetEntry> = {
    write: () => undefined,
    read: (view, start, end) => readEntry(type, view, start, end),
  };
  const entries = list(entry).read(viewOf(members), 0, members.length, {});
  return typeof entries === 'object' ? entries : [];
}

function readEntry(type: IpsetType, view: DataView, start: number, end: number): IpsetEntry {
  if (type !== 'hash:ip,port,net') return { type, ...ENTRIES[type].readFrom(view, start, end) } as PlainEntry;
  const { secondIp, prefix, ...rest } = ENTRIES[type].readFrom(view, start, end);
  const net = parseCidr(`${secondIp}/${prefix}`);
  if (!net) throw malformedMessage(`${secondIp} with a prefix of ${prefix} bits`);
  return { type, ...rest, net };
}

export function isIpsetType(text: string): text is IpsetType {
  return Object.hasOwn(ENTRIES, text);
}
