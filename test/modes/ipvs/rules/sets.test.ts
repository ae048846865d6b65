import { describe, expect, test } from 'vitest';
import { entryKey, SET_IDS, type SetEntry, IPSETS, setName } from '../../../../src/modes/ipvs/rules/sets.ts';
import { cidr, ip } from '../../../plan/given.ts';

/** Name in IPv4, name in IPv6, type: as operators know them. */
const NAMES = `
  KUBE-LOOP-BACK                 KUBE-6-LOOP-BACK                hash:ip,port,ip
  KUBE-CLUSTER-IP                KUBE-6-CLUSTER-IP               hash:ip,port
  KUBE-EXTERNAL-IP               KUBE-6-EXTERNAL-IP              hash:ip,port
  KUBE-EXTERNAL-IP-LOCAL         KUBE-6-EXTERNAL-IP-LOCAL        hash:ip,port
  KUBE-LOAD-BALANCER             KUBE-6-LOAD-BALANCER            hash:ip,port
  KUBE-LOAD-BALANCER-FW          KUBE-6-LOAD-BALANCER-FW         hash:ip,port
  KUBE-LOAD-BALANCER-LOCAL       KUBE-6-LOAD-BALANCER-LOCAL      hash:ip,port
  KUBE-LOAD-BALANCER-SOURCE-IP   KUBE-6-LOAD-BALANCER-SOURCE-IP  hash:ip,port,ip
  KUBE-LOAD-BALANCER-SOURCE-CIDR KUBE-6-LOAD-BALANCER-SOURCE-CID hash:ip,port,net
  KUBE-NODE-PORT-TCP             KUBE-6-NODE-PORT-TCP            bitmap:port
  KUBE-NODE-PORT-LOCAL-TCP       KUBE-6-NODE-PORT-LOCAL-TCP      bitmap:port
  KUBE-NODE-PORT-UDP             KUBE-6-NODE-PORT-UDP            bitmap:port
  KUBE-NODE-PORT-LOCAL-UDP       KUBE-6-NODE-PORT-LOCAL-UDP      bitmap:port
  KUBE-NODE-PORT-SCTP-HASH       KUBE-6-NODE-PORT-SCTP-HASH      hash:ip,port
  KUBE-NODE-PORT-LOCAL-SCTP-HASH KUBE-6-NODE-PORT-LOCAL-SCTP-HAS hash:ip,port
  KUBE-HEALTH-CHECK-NODE-PORT    KUBE-6-HEALTH-CHECK-NODE-PORT   bitmap:port
  KUBE-IPVS-IPS                  KUBE-6-IPVS-IPS                 hash:ip
  KUBE-NO-LOCAL                  KUBE-6-NO-LOCAL                 hash:ip,port
  KUBE-NO-LOCAL-OUTSIDE          KUBE-6-NO-LOCAL-OUTSIDE         hash:ip,port
`;

test('names and types of the sets', () => {
  const rows = SET_IDS.map((id) => [setName(id, 'IPv4'), setName(id, 'IPv6'), IPSETS[id].type].join(' '));
  expect(rows).toEqual(
    NAMES.trim()
      .split('\n')
      .map((line) => line.trim().replaceAll(/\s+/g, ' ')),
  );
});

test('those that kube-proxy has not are made on demand', () => {
  expect(SET_IDS.filter((id) => 'onDemand' in IPSETS[id])).toEqual(['noLocal', 'noLocalOutside']);
});

describe('entries as ipset lists them', () => {
  const at = { ip: ip('10.0.0.1'), protocol: 'TCP', port: 80 } as const;
  const at6 = { ip: ip('fd00::1'), protocol: 'SCTP', port: 80 } as const;
  test.each<[string, SetEntry]>([
    ['10.0.0.1', { type: 'hash:ip', ip: ip('10.0.0.1') }],
    ['30080', { type: 'bitmap:port', port: 30_080 }],
    ['10.0.0.1,tcp:80', { type: 'hash:ip,port', ...at }],
    ['fd00::1,sctp:80', { type: 'hash:ip,port', ...at6 }],
    ['10.0.0.1,tcp:80,10.0.0.2', { type: 'hash:ip,port,ip', ...at, secondIp: ip('10.0.0.2') }],
    ['10.0.0.1,tcp:80,9.9.9.0/24', { type: 'hash:ip,port,net', ...at, net: cidr('9.9.9.0/24') }],
    ['10.0.0.1,tcp:80,9.9.9.9', { type: 'hash:ip,port,net', ...at, net: cidr('9.9.9.9/32') }],
    ['fd00::1,sctp:80,fd00::2', { type: 'hash:ip,port,net', ...at6, net: cidr('fd00::2/128') }],
    ['fd00::1,sctp:80,2001:db8::/32', { type: 'hash:ip,port,net', ...at6, net: cidr('2001:db8::/32') }],
  ])('%s', (text, entry) => expect(entryKey(entry)).toBe(text));
});
