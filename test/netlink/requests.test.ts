/** Requests byte for byte, as the tools named here send them. For little-endian machines, which is where these tests run. */
import { expect, it } from 'vitest';
import type { Cidr, Ip } from '../../src/model/ip.ts';
import { decodeFlow, deleteFlow, getFlows } from '../../src/netlink/conntrack.ts';
import { getFamily } from '../../src/netlink/generic.ts';
import {
  addEntry,
  createSet,
  deleteEntry,
  listRequest,
  swapSets,
  typeRequest,
} from '../../src/netlink/ipset.ts';
import {
  deleteDestination,
  deleteService,
  newDestination,
  newService,
  setTimeouts,
} from '../../src/netlink/ipvs.ts';
import { getNfacct, newNfacct } from '../../src/netlink/nfacct.ts';
import { addAddress, newLink } from '../../src/netlink/rtnetlink.ts';
import type { NetlinkRequest } from '../../src/netlink/request.ts';
import { inWords, requestHex, unhex } from '../system/support/bytes.ts';
import { FLOW } from './support/golden.ts';
import { flushIpvs } from './support/readers.ts';

const ip = '10.0.0.1' as Ip;
const TCP = { protocol: 'TCP', ip, port: 80 } as const;
const SCTP = { protocol: 'SCTP', ip: 'fd00::1' as Ip, port: 80 } as const;
const HASH_IP = { type: 'hash:ip', family: 'IPv4', hashSize: 1024, maxElements: 65_536 } as const;
/** nfgenmsg and protocol 6, then SETNAME "A". */
const IPSET = '01000000 00000000 02000000 05000100 06000000';
const A = '06000200 41000000';

const IPVS = 30;
const DESTINATION = { ip: '10.1.0.1' as Ip, port: 8080, weight: 1 };
/** Header, then SERVICE { AF inet, PROTOCOL 6, ADDR, PORT 80 }. */
const KEY = `06000100 02000000 06000200 06000000
  14000300 0a000001 00000000 00000000 00000000 06000400 00500000`;
const DESTINATION_KEY = '14000100 0a010001 00000000 00000000 00000000 06000200 1f900000';
const ipvs = (length: string, command: string): string => `${length} 1e000000 01000000 00000000 ${command}`;

it.each<[command: string, request: NetlinkRequest, bytes: string]>([
  [
    'nfacct add drops',
    newNfacct('drops'), // 32 bytes, ACCT NEW, request ack excl create, sequence 1; any family; NAME "drops", padded
    '20000000 00070006 01000000 00000000 00000000 0a000100 64726f70 73000000',
  ],
  [
    'nfacct get drops',
    getNfacct('drops'),
    '20000000 01070000 01000000 00000000 00000000 0a000100 64726f70 73000000',
  ],
  [
    'ip link add kube-ipvs0 type dummy',
    newLink('kube-ipvs0', 'dummy'), // NEWLINK, create exclusively; ifinfomsg; IFNAME; LINKINFO { KIND "dummy" }
    `40000000 10000006 01000000 00000000 00000000 00000000 00000000 00000000
     0f000300 6b756265 2d697076 73300000 10001280 0a000100 64756d6d 79000000`,
  ],
  [
    'ip addr add 10.96.0.1/32 dev INDEX 7',
    addAddress(7, '10.96.0.1' as Ip),
    '28000000 14000006 01000000 00000000 02200000 07000000 08000200 0a600001 08000100 0a600001',
  ],
  [
    'ipset create A hash:ip family inet hashsize 1024 maxelem 65536',
    createSet('A', HASH_IP, 5), // CREATE; TYPENAME, REVISION 5, FAMILY inet; DATA { HASHSIZE, MAXELEM }, big endian and marked so
    `54000000 02060004 ${IPSET} ${A} 0c000300 68617368 3a697000 05000400 05000000 05000500 02000000
     14000780 08001240 00000400 08001340 00010000`,
  ],
  [
    'ipset create P bitmap:port range 0-65535',
    createSet('P', { type: 'bitmap:port', from: 0, to: 65_535 }, 3), // DATA { PORT_FROM 0, PORT_TO 65535 }
    `58000000 02060004 ${IPSET} 06000200 50000000 10000300 6269746d 61703a70 6f727400
     05000400 03000000 05000500 00000000 14000780 06000440 00000000 06000540 ffff0000`,
  ],
  [
    'ipset add A 10.0.0.1,tcp:80,192.0.2.0/24',
    addEntry('A', { type: 'hash:ip,port,net', ...TCP, net: '192.0.2.0/24' as Cidr }), // …, IP2 { IPV4 }, CIDR2 24 }
    `58000000 09060002 ${IPSET} ${A} 34000780 0c000180 08000140 0a000001
     06000440 00500000 05000700 06000000 0c001480 08000140 c0000200 05001500 18000000`,
  ],
  [
    'ipset del A fd00::1,sctp:80',
    deleteEntry('A', { type: 'hash:ip,port', ...SCTP }),
    `50000000 0a060002 ${IPSET} ${A}
     2c000780 18000180 14000240 fd000000 00000000 00000000 00000001 06000440 00500000 05000700 84000000`,
  ],
  ['ipset swap A B', swapSets('A', 'B'), `2c000000 06060000 ${IPSET} ${A} 06000300 42000000`],
  ['ipset list A', listRequest('A'), `24000000 07060000 ${IPSET} ${A}`],
  [
    'which revision of hash:ip for IPv6',
    typeRequest('hash:ip', 'IPv6'),
    `30000000 0d060000 ${IPSET} 0c000300 68617368 3a697000 05000500 0a000000`,
  ],
  [
    'which number has the family IPVS',
    getFamily('IPVS'),
    '20000000 10000000 01000000 00000000 03010000 09000200 49505653 00000000',
  ],
  [
    'ipvsadm -A -t 10.0.0.1:80 -s rr -p 10800',
    newService(IPVS, { ...TCP, scheduler: 'rr', flags: 1, timeout: 10_800, clientPrefix: 32 }),
    // SCHED_NAME "rr", FLAGS persistent of all, TIMEOUT 10800, NETMASK 255.255.255.255
    `${ipvs('68000000', '01010000')} 54000180 ${KEY}
     07000600 72720000 0c000700 01000000 ffffffff 08000800 302a0000 08000900 ffffffff`,
  ],
  [
    'ipvsadm -A --sctp-service [fd00::1]:80 -s mh -b mh-port',
    newService(IPVS, { ...SCTP, scheduler: 'mh', flags: 0x10, timeout: 0, clientPrefix: 128 }),
    // NETMASK 128, in the machine's order
    `${ipvs('68000000', '01010000')} 54000180 06000100 0a000000 06000200 84000000
     14000300 fd000000 00000000 00000000 00000001 06000400 00500000 07000600 6d680000
     0c000700 10000000 ffffffff 08000800 00000000 08000900 80000000`,
  ],
  ['ipvsadm -D -t 10.0.0.1:80', deleteService(IPVS, TCP), `${ipvs('44000000', '03010000')} 30000180 ${KEY}`],
  [
    'ipvsadm -a -t 10.0.0.1:80 -r 10.1.0.1:8080 -m -w 1',
    newDestination(IPVS, TCP, DESTINATION),
    // ADDR_FAMILY inet, FWD_METHOD masquerade, WEIGHT 1, no thresholds
    `${ipvs('8c000000', '05010000')} 30000180 ${KEY} 48000280 ${DESTINATION_KEY}
     06000b00 02000000 08000300 00000000 08000400 01000000 08000500 00000000 08000600 00000000`,
  ],
  [
    'ipvsadm -d -t 10.0.0.1:80 -r 10.1.0.1:8080',
    deleteDestination(IPVS, TCP, DESTINATION),
    `${ipvs('6c000000', '07010000')} 30000180 ${KEY} 28000280 ${DESTINATION_KEY} 06000b00 02000000`,
  ],
  [
    'ipvsadm --set 900 0 300',
    setTimeouts(IPVS, { tcp: 900, tcpFin: 0, udp: 300 }),
    `${ipvs('2c000000', '0c010000')} 08000400 84030000 08000500 00000000 08000600 2c010000`,
  ],
  ['ipvsadm -C', flushIpvs(IPVS), ipvs('14000000', '11010000')],
  [
    'conntrack -L -p udp -d 10.96.0.10 --dport 53',
    getFlows('IPv4', { protocol: 'UDP', address: '10.96.0.10' as Ip, port: 53 }),
    // CTA_TUPLE_ORIG { IP { V4_DST }, PROTO { NUM 17, DST_PORT 53 } }, FILTER { destination, protocol, port; of replies none }
    `4c000000 01010003 01000000 00000000 02000000 24000180 0c000180 08000200 0a60000a
     14000280 05000100 11000000 06000300 00350000 14001980 08000100 2a000000 08000200 00000000`,
  ],
  [
    'conntrack -L -p udp --dport 30053: a node port is asked for at every address',
    getFlows('IPv4', { protocol: 'UDP', address: undefined, port: 30_053 }),
    `40000000 01010003 01000000 00000000 02000000 18000180
     14000280 05000100 11000000 06000300 75650000 14001980 08000100 28000000 08000200 00000000`,
  ],
  [
    'conntrack -L -f ipv6 -p sctp',
    getFlows('IPv6', { protocol: 'SCTP' }),
    `38000000 01010003 01000000 00000000 0a000000 10000180
     0c000280 05000100 84000000 14001980 08000100 08000000 08000200 00000000`,
  ],
  [
    'conntrack -D, of one flow by its first packet and its number',
    deleteFlow('IPv4', decodeFlow(unhex(FLOW)) ?? expect.unreachable()),
    `50000000 02010000 01000000 00000000 02000000 34000180 14000180 08000100 0af4010c 08000200 0a600101
     1c000280 05000100 11000000 06000200 9c400000 06000300 00350000 08000c00 12345678`,
  ],
])('%s', (_, request, bytes) => expect(requestHex(request)).toBe(inWords(bytes)));

it('an IPv6 address is not asked for in conntrack: the kernel would leave out that one', () => {
  const narrow = getFlows('IPv6', { protocol: 'UDP', address: 'fd00:96::a' as Ip, port: 53 });
  expect(requestHex(narrow)).toBe(requestHex(getFlows('IPv6', { protocol: 'UDP', port: 53 })));
});
