import { describe, expect, test } from 'vitest';
import { reversePathDrops } from '../../src/doctor/sysctls.ts';
import { checkSysctls, type SysctlContext } from '../../src/doctor/sysctls.ts';
import type { DoctorLink } from '../../src/doctor/machine.ts';
import type { Ip } from '../../src/model/ip.ts';
import { codesOf, type FakeMachine, fakeMachine, groupOf } from './fakeMachine.ts';

const CONNTRACK: SysctlContext['conntrack'] = {
  maxPerCore: 32_768,
  min: 131_072,
  tcpEstablishedTimeout: 0,
  tcpCloseWaitTimeout: 0,
  tcpBeLiberal: true,
  udpTimeout: 0,
  udpStreamTimeout: 0,
};
const CONTEXT: SysctlContext = { families: ['IPv4', 'IPv6'], conntrack: CONNTRACK, localhostNodePorts: true };
const GOOD = {
  'net/ipv4/ip_forward': '1',
  'net/ipv6/conf/all/forwarding': '1',
  'net/bridge/bridge-nf-call-iptables': '1',
  'net/bridge/bridge-nf-call-ip6tables': '1',
  'net/ipv4/conf/all/route_localnet': '1',
  'net/ipv4/conf/all/rp_filter': '0',
  'net/netfilter/nf_conntrack_max': '262144',
  'net/netfilter/nf_conntrack_tcp_be_liberal': '1',
};
const link = (index: number, name: string, kind: string | undefined, ...addresses: string[]): DoctorLink => ({
  index,
  name,
  kind,
  isUp: true,
  addresses: addresses as Ip[],
});
const LINKS = [
  link(1, 'lo', undefined, '127.0.0.1'),
  link(2, 'eth0', 'veth', '192.0.2.1'),
  link(3, 'cni0', 'bridge', '10.244.1.1'),
];

const look = (fake: FakeMachine, context = CONTEXT) =>
  groupOf((group) => checkSysctls(group, fakeMachine({ links: LINKS, ...fake }), context));

describe('sysctls', () => {
  test('nothing to say where all is as it should be', async () => {
    const group = await look({ sysctls: GOOD });
    expect(codesOf(group)).toEqual([]);
    expect(group.fine).toContain('net.ipv4.ip_forward is 1');
    expect(group.notEvaluated).toEqual([]);
  });

  test('a family that no service has needs no settings', async () => {
    const sysctls = {
      ...GOOD,
      'net/ipv6/conf/all/forwarding': '0',
      'net/bridge/bridge-nf-call-ip6tables': '0',
    };
    const group = await look({ sysctls }, { ...CONTEXT, unused: ['IPv6'] });
    expect(codesOf(group)).toEqual([]);
    expect(group.fine).toContain('no service has an IPv6 address');
  });

  test.each([
    ['net/ipv4/ip_forward', '0', 'error forwarding-off', 'sysctl -w net.ipv4.ip_forward=1'],
    ['net/ipv6/conf/all/forwarding', '0', 'error forwarding-off', 'sysctl -w net.ipv6.conf.all.forwarding=1'],
    [
      'net/bridge/bridge-nf-call-iptables',
      '0',
      'warning bridge-bypasses-rules',
      'sysctl -w net.bridge.bridge-nf-call-iptables=1',
    ],
    [
      'net/ipv4/conf/all/route_localnet',
      '0',
      'warning localnet-not-routed',
      'sysctl -w net.ipv4.conf.all.route_localnet=1',
    ],
    [
      'net/netfilter/nf_conntrack_max',
      '1000',
      'info conntrack-setting',
      'sysctl -w net.netfilter.nf_conntrack_max=131072',
    ],
    [
      'net/netfilter/nf_conntrack_tcp_be_liberal',
      '0',
      'info conntrack-setting',
      'sysctl -w net.netfilter.nf_conntrack_tcp_be_liberal=1',
    ],
  ])('%s is %s', async (name, value, code, cure) => {
    const group = await look({ sysctls: { ...GOOD, [name]: value } });
    expect(codesOf(group)).toEqual([code]);
    const [finding] = group.findings;
    expect(finding?.evidence).toContain(value);
    expect(finding?.cure).toContain(cure);
    expect(finding?.consequence).not.toBe('');
  });

  test('what cannot be read is not guessed', async () => {
    const group = await look({ sysctls: {} });
    expect(group.notEvaluated.join('\n')).toContain('net.ipv4.ip_forward: it cannot be read');
    expect(codesOf(group)).toEqual(['warning localnet-not-routed']);
  });
});

describe('rp_filter', () => {
  const STRICT = { ...GOOD, 'net/ipv4/conf/eth0/rp_filter': '1' };
  const ARRIVAL = '192.0.2.1 from 198.51.100.1 iif 2';
  const netstat = (dropped: number): string =>
    `TcpExt: SyncookiesSent IPReversePathFilter Other\nTcpExt: 7 ${dropped} 9\nIpExt: InNoRoutes\nIpExt: 1\n`;
  const here = { state: 'found', outLink: 2, gateway: undefined, isLocal: true } as const;

  test('strict, and the way back is the same', async () => {
    const group = await look({
      sysctls: STRICT,
      routes: { [ARRIVAL]: here },
      files: { 'net/netstat': netstat(0) },
    });
    expect(codesOf(group)).toEqual([]);
    expect(group.fine).toContain('rp_filter is strict on eth0, and dropped nothing');
  });

  test('strict, and the way back is another: the kernel drops', async () => {
    const group = await look({
      sysctls: STRICT,
      routes: { [ARRIVAL]: { state: 'refused', errno: 'EXDEV' } },
      files: { 'net/netstat': netstat(12) },
    });
    expect(codesOf(group)).toEqual(['error rp-filter-drops']);
    expect(group.findings[0]?.evidence).toContain('12 packets dropped so far');
    expect(group.findings[0]?.cure).toBe('sysctl -w net.ipv4.conf.eth0.rp_filter=2');
  });

  test('loose on all wins over strict on one', async () => {
    const group = await look({
      sysctls: { ...STRICT, 'net/ipv4/conf/all/rp_filter': '2' },
      files: { 'net/netstat': netstat(5) },
    });
    expect(codesOf(group)).toEqual([]);
  });

  test('the counter is found by its name', () => {
    expect(reversePathDrops(netstat(3))).toBe(3);
    expect(reversePathDrops('')).toBe(0);
  });
});
