/** Every expression: the line that `nft --debug=netlink` prints for it, what it is here, and the kernel's bytes. */
import { unhex } from '../../../system/support/bytes.ts';
import type { Expression } from '../../../../src/netlink/nftables/expressions.ts';

export interface GoldenExpression {
  readonly line: string;
  readonly value: Expression;
  readonly bytes: Uint8Array;
}

const golden = (line: string, value: Expression, bytes: string): GoldenExpression => ({
  line,
  value,
  bytes: unhex(bytes),
});

export const GOLDEN_EXPRESSIONS: readonly GoldenExpression[] = [
  golden(
    '[ payload load 4b @ network header + 16 => reg 1 ]',
    { kind: 'payload', base: 'network', offset: 16, bytes: 4, into: 1 },
    '0c000100 7061796c 6f616400 24000200 08000100 00000001 08000200 00000001 08000300 00000010 08000400 00000004',
  ),
  golden(
    '[ payload load 2b @ transport header + 2 => reg 13 ]',
    { kind: 'payload', base: 'transport', offset: 2, bytes: 2, into: 13 },
    '0c000100 7061796c 6f616400 24000200 08000100 0000000d 08000200 00000002 08000300 00000002 08000400 00000002',
  ),
  golden(
    '[ meta load l4proto => reg 1 ]',
    { kind: 'meta', key: 'l4proto', into: 1 },
    '09000100 6d657461 00000000 14000200 08000200 00000010 08000100 00000001',
  ),
  golden(
    '[ meta set mark with reg 1 ]',
    { kind: 'set meta', key: 'mark', from: 1 },
    '09000100 6d657461 00000000 14000200 08000200 00000003 08000300 00000001',
  ),
  golden(
    '[ cmp eq reg 1 0x00000006 ]',
    { kind: 'compare', from: 1, comparison: '==', value: Uint8Array.of(6) },
    '08000100 636d7000 20000200 08000100 00000001 08000200 00000000 0c000300 05000100 06000000',
  ),
  golden(
    '[ cmp gte reg 1 0x00000004 ]',
    { kind: 'compare', from: 1, comparison: '>=', value: Uint8Array.of(4, 0) },
    '08000100 636d7000 20000200 08000100 00000001 08000200 00000005 0c000300 06000100 04000000',
  ),
  golden(
    '[ bitwise reg 1 = ( reg 1 & 0xffffbfff ) ^ 0x00004000 ]',
    { kind: 'bitwise', from: 1, into: 1, mask: unhex('ffbfffff'), xor: unhex('00400000') },
    `0c000100 62697477 69736500 3c000200 08000100 00000001 08000200 00000001 08000300 00000004 08000600 00000000
     0c000400 08000100 ffbfffff 0c000500 08000100 00400000`,
  ),
  golden(
    '[ lookup reg 1 set s ]',
    { kind: 'lookup', set: 's', from: 1 },
    '0b000100 6c6f6f6b 75700000 1c000200 06000100 73000000 08000200 00000001 08000500 00000000',
  ),
  golden(
    '[ lookup reg 1 set s 0x1 ]',
    { kind: 'lookup', set: 's', from: 1, isInverted: true },
    '0b000100 6c6f6f6b 75700000 1c000200 06000100 73000000 08000200 00000001 08000500 00000001',
  ),
  golden(
    '[ lookup reg 1 set m dreg 0 ]',
    { kind: 'lookup', set: 'm', from: 1, into: 0 },
    '0b000100 6c6f6f6b 75700000 24000200 06000100 6d000000 08000200 00000001 08000300 00000000 08000500 00000000',
  ),
  golden(
    '[ immediate reg 1 0x00000011 ]',
    { kind: 'immediate', into: 1, value: unhex('11000000') },
    '0e000100 696d6d65 64696174 65000000 18000200 08000100 00000001 0c000200 08000100 11000000',
  ),
  golden(
    '[ immediate reg 0 goto -> b ]',
    { kind: 'verdict', verdict: 'goto', chain: 'b' },
    `0e000100 696d6d65 64696174 65000000 24000200 08000100 00000000 18000200 14000200 08000100 fffffffc
     06000200 62000000`,
  ),
  golden(
    '[ immediate reg 0 drop ]',
    { kind: 'verdict', verdict: 'drop' },
    '0e000100 696d6d65 64696174 65000000 1c000200 08000100 00000000 10000200 0c000200 08000100 00000000',
  ),
  golden(
    '[ fib daddr type => reg 1 ]',
    { kind: 'fib', of: ['daddr'], result: 'type', into: 1 },
    '08000100 66696200 1c000200 08000100 00000001 08000200 00000003 08000300 00000002',
  ),
  golden(
    '[ fib saddr . iif oif => reg 1 ]',
    { kind: 'fib', of: ['saddr', 'iif'], result: 'oif', into: 1 },
    '08000100 66696200 1c000200 08000100 00000001 08000200 00000001 08000300 00000009',
  ),
  golden(
    '[ nat dnat ip addr_min reg 1 proto_min reg 2 flags 0x2 ]',
    { kind: 'nat', direction: 'dnat', family: 'ip', address: 1, port: 2, flags: [] },
    `08000100 6e617400 3c000200 08000100 00000001 08000200 00000002 08000300 00000001 08000400 00000001
     08000500 00000002 08000600 00000002 08000700 00000003`,
  ),
  golden(
    '[ nat snat ip addr_min reg 1 flags 0x4 ]',
    { kind: 'nat', direction: 'snat', family: 'ip', address: 1, flags: ['random'] },
    `08000100 6e617400 2c000200 08000100 00000000 08000200 00000002 08000300 00000001 08000400 00000001
     08000700 00000005`,
  ),
  golden('[ masq ]', { kind: 'masquerade', flags: [] }, '09000100 6d617371 00000000 04000200'),
  golden(
    '[ masq flags 0x10 ]',
    { kind: 'masquerade', flags: ['fully-random'] },
    '09000100 6d617371 00000000 0c000200 08000100 00000010',
  ),
  golden(
    '[ numgen reg 1 = random mod 3 ]',
    { kind: 'numgen', generator: 'random', modulus: 3, into: 1 },
    '0b000100 6e756d67 656e0000 24000200 08000100 00000001 08000200 00000003 08000300 00000001 08000400 00000000',
  ),
  golden(
    '[ reject type 0 code 3 ]',
    { kind: 'reject', with: 'icmp', code: 3 },
    '0b000100 72656a65 63740000 14000200 08000100 00000000 05000200 03000000',
  ),
  golden(
    '[ reject type 1 code 0 ]',
    { kind: 'reject', with: 'tcp reset', code: 0 },
    '0b000100 72656a65 63740000 0c000200 08000100 00000001',
  ),
  golden(
    '[ ct load status => reg 1 ]',
    { kind: 'ct', key: 'status', into: 1 },
    '07000100 63740000 14000200 08000100 00000001 08000200 00000002',
  ),
  golden(
    '[ ct load dst_ip => reg 1 , dir original ]',
    { kind: 'ct', key: 'ip daddr', direction: 'original', into: 1 },
    '07000100 63740000 1c000200 08000100 00000001 08000200 00000014 05000300 00000000',
  ),
  golden(
    '[ dynset update reg_key 1 set d sreg_data 2 timeout 180000ms ]',
    { kind: 'dynset', operation: 'update', set: 'd', key: 1, data: 2, timeoutMs: 180_000 },
    `0b000100 64796e73 65740000 38000200 08000400 00000001 08000500 00000002 08000300 00000001 06000100 64000000
     0c000600 00000000 0002bf20 08000900 00000000`,
  ),
  golden(
    '[ byteorder reg 1 = hton(reg 1, 2, 1) ]',
    { kind: 'byteorder', operation: 'hton', from: 1, into: 1, bytes: 1, size: 2 },
    `0e000100 62797465 6f726465 72000000 2c000200 08000100 00000001 08000200 00000001 08000300 00000001
     08000400 00000001 08000500 00000002`,
  ),
  golden(
    '[ counter pkts 0 bytes 0 ]',
    { kind: 'counter', packets: 0n, bytes: 0n },
    '0c000100 636f756e 74657200 1c000200 0c000100 00000000 00000000 0c000200 00000000 00000000',
  ),
  golden(
    '[ ct set mark with reg 1 ], which has no word here',
    { kind: 'other', name: 'ct', data: unhex('08000400 00000001 08000200 00000003') },
    '07000100 63740000 14000200 08000400 00000001 08000200 00000003',
  ),
  golden(
    '[ limit rate 5/second burst 5 type packets flags 0x0 ], which has no word here',
    {
      kind: 'other',
      name: 'limit',
      data: unhex(
        '0c000100 00000000 00000005 0c000200 00000000 00000001 08000300 00000005 08000400 00000000 08000500 00000000',
      ),
    },
    `0a000100 6c696d69 74000000 34000200 0c000100 00000000 00000005 0c000200 00000000 00000001 08000300 00000005
     08000400 00000000 08000500 00000000`,
  ),
];
