import { describe, expect, it } from 'vitest';
import { type InterfaceLister, localIps } from '../../src/system/interfaces.ts';

const v4 = { netmask: '', mac: '', cidr: null, family: 'IPv4' } as const;
const v6 = { netmask: '', mac: '', cidr: null, family: 'IPv6', scopeid: 0 } as const;
const list: InterfaceLister = () => ({
  lo: [
    { ...v4, address: '127.0.0.1', internal: true },
    { ...v6, address: '::1', internal: true },
  ],
  eth0: [
    { ...v4, address: '192.168.0.2', internal: false },
    { ...v6, address: 'FE80:0:0::1%eth0', internal: false },
  ],
  eth1: [{ ...v4, address: '192.168.0.2', internal: false }],
});

describe('local addresses', () => {
  it('are canonical, and listed once by family', () => {
    expect(localIps('IPv4', list)).toEqual(['127.0.0.1', '192.168.0.2']);
    expect(localIps('IPv6', list)).toEqual(['::1', 'fe80::1']);
  });

  it('hold loopback on a real machine', () => expect(localIps('IPv4')).toContain('127.0.0.1'));
});
