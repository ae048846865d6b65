/** Every edit of the writer as the command that it means: which part of the kernel gets it, in which bytes. */
import { constants } from 'node:os';
import { describe, expect, test } from 'vitest';
import type { IpvsEdit } from '../../../src/modes/ipvs/rules/client.ts';
import type { SetType } from '../../../src/modes/ipvs/rules/sets.ts';
import { changeOf, wireOf, type Wire } from '../../../src/modes/ipvs/client.ts';
import { cidr, ip } from '../../plan/given.ts';
import { requestHex } from '../../system/support/bytes.ts';

const NUMBERS = {
  ipvs: 30,
  revisions: new Map<SetType, number>([
    ['hash:ip', 5],
    ['bitmap:port', 3],
    ['hash:ip,port,net', 8],
  ]),
};
const DEVICE = 7;
/** nfgenmsg and protocol 6. */
const SET = '01000000 00000000 02000000 05000100 06000000';
const SERVER = { protocol: 'TCP', ip: ip('10.0.0.1'), port: 80 } as const;
const ATTRIBUTES = { ...SERVER, scheduler: 'rr', flags: 1, timeout: 10_800, clientPrefix: 32 };
const DESTINATION = { ip: ip('10.1.0.1'), port: 8080, key: '10.1.0.1:8080' };
/** AF inet, PROTOCOL 6, ADDR, PORT 80 */
const KEY =
  '06000100 02000000 06000200 06000000 14000300 0a000001 00000000 00000000 00000000 06000400 00500000';
const OF_DESTINATION = '14000100 0a010001 00000000 00000000 00000000 06000200 1f900000 06000b00 02000000';
const HEADER = '1e000000 01000000 00000000';
const SERVICE = '07000600 72720000 0c000700 01000000 ffffffff 08000800 302a0000 08000900 ffffffff';
const weight = (value: number): string =>
  `08000300 00000000 08000400 0${value}000000 08000500 00000000 08000600 00000000`;

const GOLDEN: readonly (readonly [command: string, IpvsEdit, Wire, bytes: string])[] = [
  [
    'ipset create A hash:ip family inet hashsize 1024 maxelem 131072',
    { kind: 'createSet', set: 'A', type: 'hash:ip', capacity: 131_072 },
    'set',
    `54000000 02060004 ${SET} 06000200 41000000 0c000300 68617368 3a697000 05000400 05000000 05000500 02000000 14000780 08001240 00000400 08001340 00020000`,
  ],
  [
    'ipset create P bitmap:port range 0-65535',
    { kind: 'createSet', set: 'P', type: 'bitmap:port', capacity: 5 },
    'set',
    `58000000 02060004 ${SET} 06000200 50000000 10000300 6269746d 61703a70 6f727400 05000400 03000000 05000500 00000000 14000780 06000440 00000000 06000540 ffff0000`,
  ],
  ['ipset destroy A', { kind: 'destroySet', set: 'A' }, 'set', `24000000 03060002 ${SET} 06000200 41000000`],
  [
    'ipset swap A B',
    { kind: 'swapSets', set: 'A', other: 'B' },
    'set',
    `2c000000 06060000 ${SET} 06000200 41000000 06000300 42000000`,
  ],
  [
    'ipset add A 10.0.0.1,tcp:80,192.0.2.0/24',
    { kind: 'addEntry', set: 'A', entry: { type: 'hash:ip,port,net', ...SERVER, net: cidr('192.0.2.0/24') } },
    'set',
    `58000000 09060002 ${SET} 06000200 41000000 34000780 0c000180 08000140 0a000001 06000440 00500000 05000700 06000000 0c001480 08000140 c0000200 05001500 18000000`,
  ],
  [
    'ipset del A 30080',
    { kind: 'deleteEntry', set: 'A', entry: { type: 'bitmap:port', port: 30_080 } },
    'set',
    `30000000 0a060002 ${SET} 06000200 41000000 0c000780 06000440 75800000`,
  ],
  [
    'ipvsadm -A -t 10.0.0.1:80 -s rr -p 10800',
    { kind: 'newServer', server: ATTRIBUTES },
    'server',
    `68000000 ${HEADER} 01010000 54000180 ${KEY} ${SERVICE}`,
  ],
  [
    'ipvsadm -E -t 10.0.0.1:80 -s rr -p 10800',
    { kind: 'setServer', server: ATTRIBUTES },
    'server',
    `68000000 ${HEADER} 02010000 54000180 ${KEY} ${SERVICE}`,
  ],
  [
    'ipvsadm -D -t 10.0.0.1:80',
    { kind: 'deleteServer', server: SERVER },
    'server',
    `44000000 ${HEADER} 03010000 30000180 ${KEY}`,
  ],
  [
    'ipvsadm -a -t 10.0.0.1:80 -r 10.1.0.1:8080 -m -w 1',
    { kind: 'newDestination', server: SERVER, destination: DESTINATION, weight: 1 },
    'server',
    `8c000000 ${HEADER} 05010000 30000180 ${KEY} 48000280 ${OF_DESTINATION} ${weight(1)}`,
  ],
  [
    'ipvsadm -e -t 10.0.0.1:80 -r 10.1.0.1:8080 -m -w 0',
    { kind: 'setDestination', server: SERVER, destination: DESTINATION, weight: 0 },
    'server',
    `8c000000 ${HEADER} 06010000 30000180 ${KEY} 48000280 ${OF_DESTINATION} ${weight(0)}`,
  ],
  [
    'ipvsadm -d -t 10.0.0.1:80 -r 10.1.0.1:8080',
    { kind: 'deleteDestination', server: SERVER, destination: DESTINATION },
    'server',
    `6c000000 ${HEADER} 07010000 30000180 ${KEY} 28000280 ${OF_DESTINATION}`,
  ],
  [
    'ip link add kube-ipvs0 type dummy',
    { kind: 'makeDevice' },
    'link',
    '40000000 10000006 01000000 00000000 00000000 00000000 00000000 00000000 0f000300 6b756265 2d697076 73300000 10001280 0a000100 64756d6d 79000000',
  ],
  [
    'ip link del kube-ipvs0',
    { kind: 'dropDevice' },
    'link',
    '30000000 11000000 01000000 00000000 00000000 00000000 00000000 00000000 0f000300 6b756265 2d697076 73300000',
  ],
  [
    'ip addr add 10.96.0.1/32 dev kube-ipvs0',
    { kind: 'bind', ip: ip('10.96.0.1') },
    'address',
    '28000000 14000006 01000000 00000000 02200000 07000000 08000200 0a600001 08000100 0a600001',
  ],
  [
    'ip addr del fd00::1/128 dev kube-ipvs0',
    { kind: 'unbind', ip: ip('fd00::1') },
    'address',
    '40000000 15000000 01000000 00000000 0a800000 07000000 14000200 fd000000 00000000 00000000 00000001 14000100 fd000000 00000000 00000000 00000001',
  ],
];

test.each(GOLDEN)('%s', (_, edit, wire, bytes) => {
  expect(wireOf(edit)).toBe(wire);
  expect(requestHex(changeOf(edit, 'IPv4', NUMBERS, DEVICE))).toBe(bytes);
});

test('in IPv6 a set of addresses is of that family, one of ports of none', () => {
  const hex = (edit: IpvsEdit): string => requestHex(changeOf(edit, 'IPv6', NUMBERS, DEVICE));
  expect(hex({ kind: 'createSet', set: 'A', type: 'hash:ip', capacity: 4 })).toContain('05000500 0a000000');
  expect(hex({ kind: 'createSet', set: 'A', type: 'bitmap:port', capacity: 4 })).toContain(
    '05000500 00000000',
  );
});

describe('what the kernel means by its refusals', () => {
  const { EEXIST, ENOENT, ESRCH, ENODEV, EADDRNOTAVAIL } = constants.errno;
  const IPSET_ERR_EXIST = 4103;
  const entry = { type: 'bitmap:port', port: 1 } as const;
  test.each<[string, IpvsEdit, readonly (readonly [number, string])[]]>([
    [
      'a set that is there otherwise is a refusal',
      { kind: 'createSet', set: 'A', type: 'hash:ip', capacity: 4 },
      [],
    ],
    ['a set to destroy', { kind: 'destroySet', set: 'A' }, [[ENOENT, 'absent']]],
    ['sets to swap', { kind: 'swapSets', set: 'A', other: 'B' }, [[ENOENT, 'absent']]],
    [
      'an entry to add',
      { kind: 'addEntry', set: 'A', entry },
      [
        [IPSET_ERR_EXIST, 'exists'],
        [ENOENT, 'absent'],
      ],
    ],
    [
      'an entry to delete',
      { kind: 'deleteEntry', set: 'A', entry },
      [
        [IPSET_ERR_EXIST, 'absent'],
        [ENOENT, 'absent'],
      ],
    ],
    [
      'a server to make; a scheduler that is missing is a refusal',
      { kind: 'newServer', server: ATTRIBUTES },
      [[EEXIST, 'exists']],
    ],
    ['a server to change', { kind: 'setServer', server: ATTRIBUTES }, [[ESRCH, 'absent']]],
    ['a server to delete', { kind: 'deleteServer', server: SERVER }, [[ESRCH, 'absent']]],
    [
      'an endpoint to add',
      { kind: 'newDestination', server: SERVER, destination: DESTINATION, weight: 1 },
      [
        [EEXIST, 'exists'],
        [ESRCH, 'absent'],
      ],
    ],
    [
      'an endpoint to change',
      { kind: 'setDestination', server: SERVER, destination: DESTINATION, weight: 1 },
      [
        [ESRCH, 'absent'],
        [ENOENT, 'absent'],
      ],
    ],
    ['a device to make', { kind: 'makeDevice' }, [[EEXIST, 'exists']]],
    ['a device to delete', { kind: 'dropDevice' }, [[ENODEV, 'absent']]],
    ['an address to bind', { kind: 'bind', ip: ip('10.0.0.1') }, [[EEXIST, 'exists']]],
  ])('%s', (_, edit, expected) => {
    expect([...changeOf(edit, 'IPv4', NUMBERS, DEVICE).expected]).toEqual(expected);
  });

  test('an address to unbind that is not there, or whose device is not', () => {
    const { expected } = changeOf({ kind: 'unbind', ip: ip('10.0.0.1') }, 'IPv4', NUMBERS, DEVICE);
    expect([expected.get(EADDRNOTAVAIL), expected.get(ENODEV)]).toEqual(['absent', 'absent']);
  });
});
