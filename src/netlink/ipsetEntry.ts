/** The members of sets, as messages. */
import { type Cidr, type Ip, familyOf, parseCidr, prefixOf } from '../model/ip.ts';
import type { Protocol } from '../model/objects.ts';
import {
  type MessageWriter,
  NLA_F_NET_BYTEORDER,
  attributesByType,
  decodeU16be,
  decodeU8,
  malformed,
  requiredAttribute,
} from './codec.ts';
import { decodeIp, ipBytes, protocolNumber, protocolOfNumber } from './inet.ts';

const IPSET_ATTR_IP = 1;
const IPSET_ATTR_PORT = 4;
const IPSET_ATTR_PROTO = 7;
const IPSET_ATTR_IP2 = 20;
const IPSET_ATTR_CIDR2 = 21;
const IPSET_ATTR_IPADDR_IPV4 = 1;
const IPSET_ATTR_IPADDR_IPV6 = 2;

export const IPSET_TYPES = [
  'hash:ip',
  'hash:ip,port',
  'hash:ip,port,ip',
  'hash:ip,port,net',
  'bitmap:port',
] as const;
export type IpsetType = (typeof IPSET_TYPES)[number];

interface IpPort {
  readonly ip: Ip;
  readonly protocol: Protocol;
  readonly port: number;
}

/** Networks are never the empty prefix: the kernel refuses 0.0.0.0/0. */
export type IpsetEntry =
  | { readonly type: 'hash:ip'; readonly ip: Ip }
  | ({ readonly type: 'hash:ip,port' } & IpPort)
  | ({ readonly type: 'hash:ip,port,ip'; readonly secondIp: Ip } & IpPort)
  | ({ readonly type: 'hash:ip,port,net'; readonly net: Cidr } & IpPort)
  | { readonly type: 'bitmap:port'; readonly port: number };

export function writeEntry(writer: MessageWriter, entry: IpsetEntry): void {
  if (entry.type === 'bitmap:port') {
    writer.u16be(IPSET_ATTR_PORT | NLA_F_NET_BYTEORDER, entry.port);
    return;
  }
  writeIp(writer, IPSET_ATTR_IP, entry.ip);
  if (entry.type === 'hash:ip') return;
  writer
    .u16be(IPSET_ATTR_PORT | NLA_F_NET_BYTEORDER, entry.port)
    .u8(IPSET_ATTR_PROTO, protocolNumber(entry.protocol));
  if (entry.type === 'hash:ip,port,ip') writeIp(writer, IPSET_ATTR_IP2, entry.secondIp);
  if (entry.type === 'hash:ip,port,net') {
    writeIp(writer, IPSET_ATTR_IP2, addressOf(entry.net));
    writer.u8(IPSET_ATTR_CIDR2, prefixOf(entry.net));
  }
}

export function decodeEntry(type: IpsetType, data: Uint8Array): IpsetEntry {
  const attributes = attributesByType(data);
  const value = (number: number, what: string): Uint8Array =>
    requiredAttribute(attributes, number, `the ${what} in a set of type ${type}`);
  const port = (): number => decodeU16be(value(IPSET_ATTR_PORT, 'port'));
  const ip = (): Ip => readIp(value(IPSET_ATTR_IP, 'address'));
  const ipPort = (): IpPort => ({
    ip: ip(),
    protocol: protocolOf(decodeU8(value(IPSET_ATTR_PROTO, 'protocol'))),
    port: port(),
  });
  const secondIp = (): Ip => readIp(value(IPSET_ATTR_IP2, 'second address'));
  switch (type) {
    case 'hash:ip':
      return { type, ip: ip() };
    case 'bitmap:port':
      return { type, port: port() };
    case 'hash:ip,port':
      return { type, ...ipPort() };
    case 'hash:ip,port,ip':
      return { type, ...ipPort(), secondIp: secondIp() };
    case 'hash:ip,port,net':
      return {
        type,
        ...ipPort(),
        net: netOf(secondIp(), decodeU8(value(IPSET_ATTR_CIDR2, 'prefix length'))),
      };
  }
}

export function isIpsetType(text: string): text is IpsetType {
  return (IPSET_TYPES as readonly string[]).includes(text);
}

/** A canonical network begins with a canonical address. */
function addressOf(net: Cidr): Ip {
  return net.slice(0, net.indexOf('/')) as Ip;
}

function netOf(ip: Ip, prefix: number): Cidr {
  const net = parseCidr(`${ip}/${prefix}`);
  if (!net) throw malformed(`${ip} with a prefix of ${prefix} bits`);
  return net;
}

function protocolOf(number: number): Protocol {
  const protocol = protocolOfNumber(number);
  if (!protocol) throw malformed(`protocol ${number} in a set`);
  return protocol;
}

function writeIp(writer: MessageWriter, type: number, ip: Ip): void {
  const inner = familyOf(ip) === 'IPv4' ? IPSET_ATTR_IPADDR_IPV4 : IPSET_ATTR_IPADDR_IPV6;
  writer.nested(type, (nested) => nested.attribute(inner | NLA_F_NET_BYTEORDER, ipBytes(ip)));
}

function readIp(nested: Uint8Array): Ip {
  const attributes = attributesByType(nested);
  const bytes = attributes.get(IPSET_ATTR_IPADDR_IPV4) ?? attributes.get(IPSET_ATTR_IPADDR_IPV6);
  if (!bytes) throw malformed('an address without its bytes');
  return decodeIp(bytes);
}
