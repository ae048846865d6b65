import { describe, expect, it } from 'vitest';
import { MessageWriter, decodeMessages } from '../../src/netlink/codec.ts';
import { deleteFlow, getFlows, decodeFlow } from '../../src/netlink/conntrack.ts';
import type { NetlinkRequest } from '../../src/netlink/socket.ts';
import { ip } from '../plan/given.ts';

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
const bytes = (text: string): Uint8Array => new Uint8Array(Buffer.from(text.replaceAll(/\s/g, ''), 'hex'));

function payloadOf(request: NetlinkRequest): string {
  const writer = new MessageWriter();
  writer.message({ type: request.type, flags: request.flags, sequence: 1 }, request.payload);
  return hex(decodeMessages(writer.finish())[0]?.payload ?? new Uint8Array());
}

describe('what the kernel is asked', () => {
  it('conntrack -L -p udp -d 10.96.0.10 --dport 53', () => {
    const request = getFlows('IPv4', { protocol: 'UDP', address: ip('10.96.0.10'), port: 53 });
    expect([request.type, request.flags]).toEqual([0x0101, 0x300]);
    expect(payloadOf(request)).toBe(
      [
        '02000000', // AF_INET
        '24000180', // CTA_TUPLE_ORIG
        '0c000180', // CTA_TUPLE_IP
        '080002000a60000a', // CTA_IP_V4_DST
        '14000280', // CTA_TUPLE_PROTO
        '0500010011000000', // CTA_PROTO_NUM 17
        '0600030000350000', // CTA_PROTO_DST_PORT 53
        '14001980', // CTA_FILTER
        '080001002a000000', // original: destination, protocol, destination port
        '0800020000000000', // reply: nothing
      ].join(''),
    );
  });

  it('conntrack -L -f ipv6 -p sctp', () => {
    expect(payloadOf(getFlows('IPv6', { protocol: 'SCTP' }))).toBe(
      '0a000000100001800c00028005000100840000001400198008000100080000000800020000000000',
    );
  });

  it('an IPv6 address is not asked for: the kernel would leave out that one', () => {
    const narrow = payloadOf(getFlows('IPv6', { protocol: 'UDP', address: ip('fd00:96::a'), port: 53 }));
    expect(narrow).toBe(payloadOf(getFlows('IPv6', { protocol: 'UDP', port: 53 })));
  });

  it('a node port is asked for at every address', () => {
    const text = payloadOf(getFlows('IPv4', { protocol: 'UDP', address: undefined, port: 30_053 }));
    expect(text).toContain('0800010028000000');
    expect(text).not.toContain('0c000180');
  });
});

/** From a 6.18 kernel: a flow of 10.244.1.12:40000 to 10.96.1.1:53, sent on to 10.244.2.11:8053. */
const MESSAGE = bytes(`
  02000000
  34000180 14000180 080001000af4010c 080002000a600101
           1c000280 0500010011000000 060002009c400000 0600030000350000
  34000280 14000180 080001000af4020b 080002000af4010c
           1c000280 0500010011000000 060002001f750000 060003009c400000
  0800030000000028 0800070000000078 08000c0012345678 08000b0000000001`);

describe('what the kernel answers', () => {
  it('is a flow', () => {
    const flow = decodeFlow(MESSAGE);
    expect(flow).toMatchObject({
      protocol: 'UDP',
      destination: '10.96.1.1',
      destinationPort: 53,
      answerer: '10.244.2.11',
      answererPort: 8053,
      id: 0x12345678,
    });
    expect(hex(flow?.original ?? new Uint8Array())).toBe(hex(MESSAGE.subarray(8, 56)));
  });

  it('is passed over where it is of another protocol, or in a zone', () => {
    const tcp = MESSAGE.slice();
    tcp[36] = 6;
    expect(decodeFlow(tcp)).toBeUndefined();
    const zoned = new Uint8Array([...MESSAGE, ...bytes('0600120000070000')]);
    expect(decodeFlow(zoned)).toBeUndefined();
  });

  it('is never read beyond its end, however it is cut', () => {
    for (let length = 0; length < MESSAGE.length - 8; length++) {
      expect(() => decodeFlow(MESSAGE.subarray(0, length))).toThrow(/netlink: /);
    }
  });

  it('is never read beyond an attribute that lies about its length', () => {
    for (const at of [4, 8, 12, 28, 32]) {
      for (const length of [0, 3, 0xffff]) {
        const lie = MESSAGE.slice();
        new DataView(lie.buffer).setUint16(at, length, true);
        expect(() => decodeFlow(lie)).toThrow(/netlink: /);
      }
    }
  });
});

it('what is deleted is named by its first packet and its number', () => {
  const flow = decodeFlow(MESSAGE);
  if (!flow) throw new Error('no flow');
  const request = deleteFlow('IPv4', flow);
  expect([request.type, request.flags]).toEqual([0x0102, 0]);
  expect(payloadOf(request)).toBe(`02000000${hex(MESSAGE.subarray(4, 56))}08000c0012345678`);
});
