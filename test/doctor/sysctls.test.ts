import { describe, expect, test } from 'vitest';
import type { DoctorLink } from '../../src/doctor/machine.ts';
import { checkSysctls, type SysctlContext } from '../../src/doctor/sysctls.ts';
import type { Ip } from '../../src/model/ip.ts';
import { codesOf, type FakeMachine, fakeMachine, groupOf } from './fakeMachine.ts';

const CONTEXT: SysctlContext = {
  families: ['IPv4', 'IPv6'],
  conntrack: {
    maxPerCore: 32_768,
    min: 131_072,
    tcpEstablishedTimeout: 0,
    tcpCloseWaitTimeout: 0,
    tcpBeLiberal: true,
    udpTimeout: 0,
    udpStreamTimeout: 0,
  },
  localhostNodePorts: true,
};
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
const link = (index: number, name: string, kind: string | undefined, address: string): DoctorLink => ({
  index,
  name,
  kind,
  isUp: true,
  addresses: [address as Ip],
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
    expect([codesOf(group), group.notEvaluated]).toEqual([[], []]);
    expect(group.fine).toContain('net.ipv4.ip_forward is 1');
  });

  test('a family that no service has needs no settings', async () => {
    const off = { 'net/ipv6/conf/all/forwarding': '0', 'net/bridge/bridge-nf-call-ip6tables': '0' };
    const group = await look({ sysctls: { ...GOOD, ...off } }, { ...CONTEXT, unused: ['IPv6'] });
    expect(codesOf(group)).toEqual([]);
    expect(group.fine).toContain('no service has an IPv6 address');
  });

  test.each([
    ['net/ipv4/ip_forward', '0', 'error forwarding-off', '1'],
    ['net/ipv6/conf/all/forwarding', '0', 'error forwarding-off', '1'],
    ['net/bridge/bridge-nf-call-iptables', '0', 'warning bridge-bypasses-rules', '1'],
    ['net/ipv4/conf/all/route_localnet', '0', 'warning localnet-not-routed', '1'],
    ['net/netfilter/nf_conntrack_max', '1000', 'info conntrack-setting', '131072'],
    ['net/netfilter/nf_conntrack_tcp_be_liberal', '0', 'info conntrack-setting', '1'],
  ])('%s is %s', async (name, value, code, wanted) => {
    const group = await look({ sysctls: { ...GOOD, [name]: value } });
    expect(codesOf(group)).toEqual([code]);
    const [finding] = group.findings;
    expect(finding?.evidence).toContain(value);
    expect(finding?.cure).toContain(`sysctl -w ${name.replaceAll('/', '.')}=${wanted}`);
    expect(finding?.consequence).not.toBe('');
  });

  test('what cannot be read is not guessed', async () => {
    const group = await look({ sysctls: {} });
    expect(group.notEvaluated.join('\n')).toContain('net.ipv4.ip_forward: it cannot be read');
    expect(codesOf(group)).toEqual(['warning localnet-not-routed']);
  });
});

describe('rp_filter is strict', () => {
  const BACK = { state: 'found', outLink: 2, gateway: undefined, isLocal: true } as const;
  const strict = (route: NonNullable<FakeMachine['routes']>[string], dropped: number, all = '0') =>
    look({
      sysctls: { ...GOOD, 'net/ipv4/conf/eth0/rp_filter': '1', 'net/ipv4/conf/all/rp_filter': all },
      routes: { '192.0.2.1 from 198.51.100.1 iif 2': route },
      files: { 'net/netstat': `TcpExt: Syncs IPReversePathFilter Other\nTcpExt: 7 ${dropped} 9\nIpExt: 1\n` },
    });

  test('and the way back is the same', async () => {
    const group = await strict(BACK, 0);
    expect(codesOf(group)).toEqual([]);
    expect(group.fine).toContain('rp_filter is strict on eth0, and dropped nothing');
  });

  test('and the way back is another: the kernel drops', async () => {
    const group = await strict({ state: 'refused', errno: 'EXDEV' }, 12);
    expect(codesOf(group)).toEqual(['error rp-filter-drops']);
    expect(group.findings[0]?.evidence).toContain('12 packets dropped so far');
    expect(group.findings[0]?.cure).toBe('sysctl -w net.ipv4.conf.eth0.rp_filter=2');
  });

  test('on one, but loose on all, which wins', async () => {
    expect(codesOf(await strict(BACK, 5, '2'))).toEqual([]);
  });
});
