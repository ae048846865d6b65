/** Byte for byte what nft 1.0.6 has the kernel keep for a set that is declared so. */
import { expect, it } from 'vitest';
import { type SetSpec, encodeSetUserData } from '../../../src/netlink/nftables/setSpec.ts';

const IP_DADDR = '0004 07000000 010c 0004 0c000000 0104 0c000000';
const L4PROTO = '0004 09000000 0106 0004 10000000';
const TH_DPORT = '0004 07000000 010c 0004 0b000000 0104 02000000';

it.each<[line: string, spec: Omit<SetSpec, 'name'>, parts: readonly string[]]>([
  ['set { type ipv4_addr; }', { key: { type: ['ipv4_addr'] } }, ['0004 02000000']],
  [
    'set { type ipv4_addr; comment "every address that some service has"; }',
    { key: { type: ['ipv4_addr'] }, comment: 'every address that some service has' },
    ['0004 02000000', '0724 65766572792061646472657373207468617420736f6d6520736572766963652068617300'],
  ],
  [
    'set { typeof ip6 daddr; flags interval; comment "b\'s comment"; size 100; }',
    {
      key: { typeof: ['ip6 daddr'] },
      flags: ['interval'],
      comment: "b's comment",
      size: 100,
    },
    ['0004 02000000', '0314 0004 07000000 010c 0004 0d000000 0104 09000000', '070c 62277320636f6d6d656e7400'],
  ],
  [
    'map { type inet_proto : ipv6_addr; }',
    { key: { type: ['inet_proto'] }, data: { type: ['ipv6_addr'] } },
    ['0004 00000000', '0104 02000000', '0604 00000000'],
  ],
  [
    'map { typeof ip daddr . meta l4proto . th dport . numgen random mod 3 : ip daddr . th dport; counter; }',
    {
      key: { typeof: ['ip daddr', 'meta l4proto', 'th dport', 'numgen random mod 3'] },
      data: { typeof: ['ip daddr', 'th dport'] },
      counter: true,
    },
    [
      '0004 00000000',
      '0104 00000000',
      `0360 0004 0d000000 0158 0014 ${IP_DADDR} 010e ${L4PROTO} 0214 ${TH_DPORT}`,
      '031a 0004 17000000 0112 0004 01000000 0104 03000000 0204 00000000',
      `0434 0004 0d000000 012c 0014 ${IP_DADDR} 0114 ${TH_DPORT}`,
      '0604 00000000',
    ],
  ],
  [
    'map { typeof ip6 daddr : verdict; comment "vm"; }',
    { key: { typeof: ['ip6 daddr'] }, data: 'verdict', comment: 'vm' },
    [
      '0004 02000000',
      '0104 00000000',
      '0314 0004 07000000 010c 0004 0d000000 0104 09000000',
      '0408 0004 01000000 0100',
      '0604 00000000',
      '0703 766d00',
    ],
  ],
])('%s', (_, spec, parts) => {
  const bytes = encodeSetUserData({ name: 's', ...spec });
  expect(Buffer.from(bytes).toString('hex')).toBe(parts.join('').replaceAll(' ', ''));
});
