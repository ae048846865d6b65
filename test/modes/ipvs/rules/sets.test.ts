import { expect, test } from 'vitest';
import { SET_IDS, IPSETS, setName } from '../../../../src/modes/ipvs/rules/sets.ts';

/** Name in IPv4, name in IPv6, type: as operators know them. */
const NAMES = `
  KUBE-IPVS-IPS                  KUBE-6-IPVS-IPS                 hash:ip
  KUBE-NO-LOCAL                  KUBE-6-NO-LOCAL                 hash:ip,port
  KUBE-NO-LOCAL-OUTSIDE          KUBE-6-NO-LOCAL-OUTSIDE         hash:ip,port
  KUBE-LOAD-BALANCER             KUBE-6-LOAD-BALANCER            hash:ip,port
  KUBE-LOAD-BALANCER-FW          KUBE-6-LOAD-BALANCER-FW         hash:ip,port
  KUBE-LOAD-BALANCER-LOCAL       KUBE-6-LOAD-BALANCER-LOCAL      hash:ip,port
  KUBE-CLUSTER-IP                KUBE-6-CLUSTER-IP               hash:ip,port
  KUBE-EXTERNAL-IP               KUBE-6-EXTERNAL-IP              hash:ip,port
  KUBE-EXTERNAL-IP-LOCAL         KUBE-6-EXTERNAL-IP-LOCAL        hash:ip,port
  KUBE-NODE-PORT-SCTP-HASH       KUBE-6-NODE-PORT-SCTP-HASH      hash:ip,port
  KUBE-NODE-PORT-LOCAL-SCTP-HASH KUBE-6-NODE-PORT-LOCAL-SCTP-HAS hash:ip,port
  KUBE-LOAD-BALANCER-SOURCE-IP   KUBE-6-LOAD-BALANCER-SOURCE-IP  hash:ip,port,ip
  KUBE-LOOP-BACK                 KUBE-6-LOOP-BACK                hash:ip,port,ip
  KUBE-LOAD-BALANCER-SOURCE-CIDR KUBE-6-LOAD-BALANCER-SOURCE-CID hash:ip,port,net
  KUBE-NODE-PORT-TCP             KUBE-6-NODE-PORT-TCP            bitmap:port
  KUBE-NODE-PORT-LOCAL-TCP       KUBE-6-NODE-PORT-LOCAL-TCP      bitmap:port
  KUBE-NODE-PORT-UDP             KUBE-6-NODE-PORT-UDP            bitmap:port
  KUBE-NODE-PORT-LOCAL-UDP       KUBE-6-NODE-PORT-LOCAL-UDP      bitmap:port
  KUBE-HEALTH-CHECK-NODE-PORT    KUBE-6-HEALTH-CHECK-NODE-PORT   bitmap:port
`;

test('names and types of the sets', () => {
  const rows = SET_IDS.map((id) => [setName(id, 'IPv4'), setName(id, 'IPv6'), IPSETS[id].type].join(' '));
  expect(rows).toEqual(
    NAMES.trim()
      .split('\n')
      .map((line) => line.trim().replaceAll(/\s+/g, ' ')),
  );
});
