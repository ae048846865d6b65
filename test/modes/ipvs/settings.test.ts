/** What IPVS is set to, by settings and kernel. That it is: test/deploy/podIpvs.real.test.ts. */
import { describe, expect, test } from 'vitest';
import { ipvsSysctls } from '../../../src/modes/ipvs/settings.ts';

const USUAL = {
  'net/ipv4/vs/conntrack': 1,
  'net/ipv4/vs/expire_nodest_conn': 1,
  'net/ipv4/vs/expire_quiescent_template': 1,
  'net/ipv4/ip_forward': 1,
};

describe('which sysctls', () => {
  const of = (strictARP: boolean, kernel: string): Readonly<Record<string, number>> =>
    Object.fromEntries(ipvsSysctls({ strictARP, kernel }));

  test('the usual', () => expect(of(false, '6.1.0-13-amd64')).toEqual(USUAL));

  test('with strict ARP', () => {
    expect(of(true, '6.1.0-13-amd64')).toEqual({
      ...USUAL,
      'net/ipv4/conf/all/arp_ignore': 1,
      'net/ipv4/conf/all/arp_announce': 2,
    });
  });

  test.each([
    ['3.10.0-1160.el7.x86_64', false],
    ['4.0.9', false],
    ['4.1.0', true],
    ['4.19.0-25-amd64', true],
    ['5.4.0-150-generic', true],
    ['5.8.18', true],
    ['5.9.0', false],
    ['5.10.0-28-amd64', false],
    ['6.12-rc1', false],
    ['unknown', false],
  ])('on kernel %s a reused port is told to be used at once: %s', (kernel, isTold) => {
    expect(of(false, kernel)).toEqual(isTold ? { ...USUAL, 'net/ipv4/vs/conn_reuse_mode': 0 } : USUAL);
  });
});
