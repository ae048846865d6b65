/** Every decoder of the library, with a message that it reads. For little-endian machines, which is where tests run. */
import { decodeAddress, decodeLink, decodeRoute } from '../../../src/netlink/rtnetlink.ts';
import { decodeErrno, decodeMessages } from '../../../src/netlink/codec.ts';
import { decodeText } from '../../../src/netlink/kinds.ts';
import {
  decodeAttributes,
  decodeU16,
  decodeU16be,
  decodeU32,
  decodeU32be,
  decodeU64be,
  decodeU8,
} from './attributes.ts';
import { decodeFlow } from '../../../src/netlink/conntrack.ts';
import { decodeFamilyId } from '../../../src/netlink/generic.ts';
import { decodeIp } from '../../../src/netlink/inet.ts';
import { IPSET_TYPES, decodeRevision } from '../../../src/netlink/ipset.ts';
import { decodeEntry, decodeIpset } from './readers.ts';
import {
  decodeDestination,
  decodeDestinationCounters,
  decodeService,
  decodeServiceCounters,
} from '../../../src/netlink/ipvs.ts';
import { decodeNfacct } from '../../../src/netlink/nfacct.ts';
import { decodeGeneration } from '../../../src/netlink/nftables/message.ts';
import { Exchange, Sequence } from '../../../src/netlink/request.ts';
import { unhex } from '../../system/support/bytes.ts';
import { type Decoder, decoder } from './fuzz.ts';

const LINK = `00000403 02000000 49000100 00000000 0a000300 76697030 00000000
  10001280 0a000100 64756d6d 79000000`;
const ADDRESS_4 = '02200000 07000000 08000200 0a600001 08000100 0a600001';
const ADDRESS_6 = '0a800000 07000000 14000100 fd000000 00000000 00000000 00000001';
const SET = `02000000 05000100 06000000 06000200 41000000 0c000300 68617368 3a697000 05000500 02000000
  05000400 05000000 2c000780 08001240 00000400 08001340 00010000 08001940 00000001 08001a40 00000060
  08001840 00000002 14000880 10000780 0c000180 08000140 0a000001`;
/** An address, a port, a protocol, a second address and its prefix: something for every type of set. */
const ENTRY = `0c000180 08000140 0a000001 06000440 00500000 05000700 06000000
  0c001480 08000140 c0000200 05001500 18000000`;
const FAMILY = '01020000 09000200 49505653 00000000 06000100 1e000000';
const SERVICE_4 = `01010000 54000180 06000100 02000000 06000200 06000000
  14000300 0a000001 00000000 00000000 00000000 06000400 00500000
  07000600 72720000 0c000700 03000000 ffffffff 08000800 302a0000 08000900 ffffff00`;
const SERVICE_6 = `01010000 54000180 06000100 0a000000 06000200 84000000
  14000300 fd000000 00000000 00000000 00000001 06000400 00500000
  07000600 6d680000 0c000700 10000000 ffffffff 08000800 00000000 08000900 80000000`;
const DESTINATION = `05010000 48000280 14000100 0a010001 00000000 00000000 00000000 06000200 1f900000
  06000b00 02000000 08000300 03000000 08000400 01000000 08000700 02000000 08000800 05000000`;
/** From a 6.18 kernel: of 10.244.1.12:40000 to 10.96.1.1:53, sent on to 10.244.2.11:8053. */
export const FLOW = `02000000
  34000180 14000180 080001000af4010c 080002000a600101 1c000280 0500010011000000 060002009c400000 0600030000350000
  34000280 14000180 080001000af4020b 080002000af4010c 1c000280 0500010011000000 060002001f750000 060003009c400000
  0800030000000028 0800070000000078 08000c0012345678 08000b0000000001`;
const FLOW_6 = `0a000000
  4c000180 2c000180 14000300 fd000000000000000000000000000001 14000400 fd000000000000000000000000000002
           1c000280 0500010084000000 060002009c400000 0600030000350000
  4c000280 2c000180 14000300 fd000000000000000000000000000003 14000400 fd000000000000000000000000000001
           1c000280 0500010084000000 060002001f750000 060003009c400000
  08000c0012345678`;
const COUNTER = `00000000 0a000100 64726f70 73000000
  0c000200 00000000 00000003 0c000300 00000000 000000fc 08000400 00000001`;
const GENERATION = '00000000 08000100 00000007';
/** STATS64 { CONNS 3, INPKTS 15 } */
const COUNTED = '1c000c80 0c000100 03000000 00000000 0c000200 0f000000 00000000';
/** Two messages: an acknowledgement, and a refusal with the request that it refuses. */
const DATAGRAM = `24000000 02000000 01000000 00000000 00000000 10000000 10000000 01000000 00000000
  24000000 02000000 02000000 00000000 f0ffffff 10000000 10000000 02000000 00000000`;

export const DECODERS: readonly Decoder[] = [
  decoder('messages', decodeMessages, DATAGRAM),
  decoder('a reply', readReply, DATAGRAM),
  decoder('attributes', decodeAttributes, ENTRY),
  decoder('an acknowledgement', decodeErrno, 'f0ffffff 10000000 10000000 01000000 00000000', 16),
  decoder('a string', decodeText, '76697030 00', 'vip0'),
  decoder('a string without its end', decodeText, '4142', 'AB'),
  decoder('8 bits', decodeU8, '01', 1),
  decoder('16 bits', decodeU16, '0100', 1),
  decoder('16 bits, big endian', decodeU16be, '0001', 1),
  decoder('32 bits', decodeU32, '01000000', 1),
  decoder('32 bits, big endian', decodeU32be, '00000001', 1),
  decoder('64 bits, big endian', decodeU64be, '00000000 00000001', 1n),
  decoder('an IPv4 address', decodeIp, '0a000001', '10.0.0.1'),
  decoder('an IPv6 address', decodeIp, 'fd000000 00000000 00000000 00000001', 'fd00::1'),
  decoder('a link', decodeLink, LINK, { index: 2, name: 'vip0', kind: 'dummy', flags: 0x10049 }),
  decoder('a link of no kind', decodeLink, '00000403 01000000 49000100 00000000 07000300 6c6f0000', {
    index: 1,
    name: 'lo',
    kind: undefined,
    flags: 0x10049,
  }),
  decoder('an address of a link', decodeAddress, ADDRESS_4, {
    linkIndex: 7,
    ip: '10.96.0.1',
    family: 'IPv4',
    prefix: 32,
    scope: 'global',
  }),
  decoder('an IPv6 address of a link', decodeAddress, ADDRESS_6, {
    linkIndex: 7,
    ip: 'fd00::1',
    family: 'IPv6',
    prefix: 128,
    scope: 'global',
  }),
  decoder('a route', decodeRoute, '02200000 ff020002 00000000 08000100 0a600001', { isLocal: true }),
  decoder('a set', (payload) => decodeIpset([{ payload }]), SET, {
    type: 'hash:ip',
    maxElements: 65_536,
    entries: [{ type: 'hash:ip', ip: '10.0.0.1' }],
  }),
  ...IPSET_TYPES.map((type) => decoder(`an entry of ${type}`, (data) => decodeEntry(type, data), ENTRY)),
  decoder('the revision of a type of set', decodeRevision, '02000000 05000400 05000000', 5),
  decoder('the number of a family', decodeFamilyId, FAMILY, 30),
  decoder('a virtual server', decodeService, SERVICE_4, {
    protocol: 'TCP',
    ip: '10.0.0.1',
    port: 80,
    scheduler: 'rr',
    flags: 3,
    timeout: 10_800,
    clientPrefix: 24,
  }),
  decoder('an IPv6 virtual server', decodeService, SERVICE_6, {
    protocol: 'SCTP',
    ip: 'fd00::1',
    port: 80,
    scheduler: 'mh',
    flags: 0x10,
    timeout: 0,
    clientPrefix: 128,
  }),
  decoder('a real server', decodeDestination, DESTINATION, {
    ip: '10.1.0.1',
    port: 8080,
    weight: 1,
    activeConnections: 2,
    inactiveConnections: 5,
  }),
  decoder('what a virtual server counted', decodeServiceCounters, `01010000 20000180 ${COUNTED}`, {
    connections: 3,
    packets: 15,
  }),
  decoder('what a real server counted', decodeDestinationCounters, `05010000 20000280 ${COUNTED}`, {
    connections: 3,
    packets: 15,
  }),
  decoder('what a kernel before 4.1 counted', decodeServiceCounters, '01010000 04000180', {}),
  decoder('a flow', (bytes) => decodeFlow(bytes), FLOW, {
    protocol: 'UDP',
    destination: '10.96.1.1',
    destinationPort: 53,
    answerer: '10.244.2.11',
    answererPort: 8053,
    id: 0x12345678,
    original: unhex(FLOW).subarray(8, 56),
  }),
  decoder('an IPv6 flow', (bytes) => decodeFlow(bytes), FLOW_6),
  decoder('a counter', decodeNfacct, COUNTER, { name: 'drops', packets: 3n, bytes: 252n }),
  decoder('the generation of nf_tables', decodeGeneration, GENERATION, { id: 7 }),
];

function readReply(bytes: Uint8Array): unknown {
  const sequence = new Sequence();
  sequence.next();
  const exchange = new Exchange(sequence);
  const number = exchange.add({ type: 16, flags: 0x300, payload: () => undefined });
  exchange.take(bytes);
  return exchange.replyTo(number);
}
