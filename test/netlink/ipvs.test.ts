import { describe, expect, it } from 'vitest';
import { decodeFamilyId, getFamily } from '../../src/netlink/genetlink.ts';
import {
  setTimeouts,
  decodeDestination,
  deleteDestination,
  newDestination,
  decodeService,
  decodeDestinationCounters,
  decodeServiceCounters,
  getMarkedService,
  getService,
  deleteService,
  newService,
} from '../../src/netlink/ipvs.ts';
import { flushIpvs } from './support/readers.ts';
import { type Ip, parseIp } from '../../src/model/ip.ts';
import { requestHex, unhex } from '../system/support/bytes.ts';

const ip = (text: string): Ip => parseIp(text) ?? ('' as Ip);
const IPVS = 30;
const SERVICE = { protocol: 'TCP', ip: ip('10.0.0.1'), port: 80 } as const;
/** SERVICE { AF inet, PROTOCOL 6, ADDR, PORT 80 } */
const KEY =
  '06000100 02000000 06000200 06000000 14000300 0a000001 00000000 00000000 00000000 06000400 00500000';
const DESTINATION = { ip: ip('10.1.0.1'), port: 8080, weight: 1 };
const DESTINATION_KEY = '14000100 0a010001 00000000 00000000 00000000 06000200 1f900000';

describe('golden bytes', () => {
  it('which number has the family IPVS', () => {
    expect(requestHex(getFamily('IPVS'))).toBe(
      '20000000 10000000 01000000 00000000 03010000 09000200 49505653 00000000',
    );
    expect(decodeFamilyId(unhex('01020000 09000200 49505653 00000000 06000100 1e000000'))).toBe(30);
  });

  it('ipvsadm -A -t 10.0.0.1:80 -s rr -p 10800', () => {
    const service = { ...SERVICE, scheduler: 'rr', flags: 1, timeout: 10_800, clientPrefix: 32 };
    expect(requestHex(newService(IPVS, service))).toBe(
      [
        `68000000 1e000000 01000000 00000000 01010000 54000180 ${KEY}`,
        '07000600 72720000', //                      SCHED_NAME "rr"
        '0c000700 01000000 ffffffff', //             FLAGS persistent of all
        '08000800 302a0000 08000900 ffffffff', //    TIMEOUT 10800, NETMASK 255.255.255.255
      ].join(' '),
    );
  });

  it('ipvsadm -A --sctp-service [fd00::1]:80 -s mh -b mh-port', () => {
    const key = { protocol: 'SCTP', ip: ip('fd00::1'), port: 80 } as const;
    const service = { ...key, scheduler: 'mh', flags: 0x10, timeout: 0, clientPrefix: 128 };
    expect(requestHex(newService(IPVS, service))).toBe(
      [
        '68000000 1e000000 01000000 00000000 01010000 54000180 06000100 0a000000 06000200 84000000',
        '14000300 fd000000 00000000 00000000 00000001 06000400 00500000 07000600 6d680000',
        '0c000700 10000000 ffffffff 08000800 00000000 08000900 80000000', // NETMASK 128, in the machine's order
      ].join(' '),
    );
  });

  it('one virtual server, by its address and by a firewall mark; what each has counted', () => {
    expect(requestHex(getService(IPVS, SERVICE))).toBe(
      `44000000 1e000000 01000000 00000000 04010000 30000180 ${KEY}`,
    );
    expect(requestHex(getMarkedService(IPVS, 'IPv6', 0x4000))).toBe(
      '28000000 1e000000 01000000 00000000 04010000 14000180 06000100 0a000000 08000500 00400000',
    );
    // STATS64 { CONNS 3, INPKTS 15 }
    const counted = '1c000c80 0c000100 03000000 00000000 0c000200 0f000000 00000000';
    expect(decodeServiceCounters(unhex(`01010000 20000180 ${counted}`))).toEqual({
      connections: 3,
      packets: 15,
    });
    expect(decodeDestinationCounters(unhex(`05010000 20000280 ${counted}`))).toEqual({
      connections: 3,
      packets: 15,
    });
    expect(decodeServiceCounters(unhex('01010000 04000180')).packets).toBeUndefined();
  });

  it('ipvsadm -D -t 10.0.0.1:80', () => {
    expect(requestHex(deleteService(IPVS, SERVICE))).toBe(
      `44000000 1e000000 01000000 00000000 03010000 30000180 ${KEY}`,
    );
  });

  it('ipvsadm -a -t 10.0.0.1:80 -r 10.1.0.1:8080 -m -w 1', () => {
    expect(requestHex(newDestination(IPVS, SERVICE, DESTINATION))).toBe(
      [
        `8c000000 1e000000 01000000 00000000 05010000 30000180 ${KEY} 48000280 ${DESTINATION_KEY}`,
        '06000b00 02000000', //                                         ADDR_FAMILY inet
        '08000300 00000000 08000400 01000000', //                       FWD_METHOD masquerade, WEIGHT 1
        '08000500 00000000 08000600 00000000', //                       no thresholds
      ].join(' '),
    );
  });

  it('ipvsadm -d -t 10.0.0.1:80 -r 10.1.0.1:8080', () => {
    expect(requestHex(deleteDestination(IPVS, SERVICE, DESTINATION))).toBe(
      `6c000000 1e000000 01000000 00000000 07010000 30000180 ${KEY} 28000280 ${DESTINATION_KEY} 06000b00 02000000`,
    );
  });

  it('ipvsadm --set 900 0 300', () => {
    expect(requestHex(setTimeouts(IPVS, { tcp: 900, tcpFin: 0, udp: 300 }))).toBe(
      '2c000000 1e000000 01000000 00000000 0c010000 08000400 84030000 08000500 00000000 08000600 2c010000',
    );
  });

  it('ipvsadm -C', () => {
    expect(requestHex(flushIpvs(IPVS))).toBe('14000000 1e000000 01000000 00000000 11010000');
  });
});

describe('answers', () => {
  const rest = '07000600 72720000 0c000700 03000000 ffffffff 08000800 302a0000';

  it('a service', () => {
    expect(decodeService(unhex(`01010000 54000180 ${KEY} ${rest} 08000900 ffffff00`))).toEqual({
      ...SERVICE,
      scheduler: 'rr',
      flags: 3,
      timeout: 10_800,
      clientPrefix: 24,
    });
  });

  it('a service for a firewall mark is none of ours', () => {
    const mark = '06000100 02000000 08000500 07000000';
    expect(decodeService(unhex(`01010000 38000180 ${mark} ${rest} 08000900 ffffffff`))).toBeUndefined();
  });

  const counts = '08000700 02000000 08000800 05000000';

  it('a destination', () => {
    const text = `05010000 48000280 ${DESTINATION_KEY} 06000b00 02000000 08000300 03000000 08000400 01000000 ${counts}`;
    expect(decodeDestination(unhex(text))).toEqual({
      ...DESTINATION,
      forwarding: 'route',
      activeConnections: 2,
      inactiveConnections: 5,
    });
  });

  it.each([
    ['a service without attributes', () => decodeService(unhex('01010000'))],
    ['a service without a scheduler', () => decodeService(unhex(`01010000 30000180 ${KEY}`))],
    [
      'a netmask with holes',
      () => decodeService(unhex(`01010000 54000180 ${KEY} ${rest} 08000900 ff00ff00`)),
    ],
    [
      'a destination of no family',
      () => decodeDestination(unhex(`05010000 2c000280 ${DESTINATION_KEY} ${counts}`)),
    ],
    ['a family without a number', () => decodeFamilyId(unhex('01020000'))],
  ])('%s', (_, act) => {
    expect(act).toThrow(expect.objectContaining({ code: 'NETLINK_MALFORMED' }));
  });
});
