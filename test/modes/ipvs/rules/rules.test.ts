/** The iptables part, line by line: for each family, and by who is a pod. */
import { describe, expect, test } from 'vitest';
import { ipvsLayout } from '../../../../src/modes/ipvs/rules/rules.ts';
import { wholeRestore } from '../../../../src/modes/iptables/rules/whole.ts';
import type { Family } from '../../../../src/model/ip.ts';
import type { NodeView } from '../../../../src/plan/types.ts';
import { Cluster } from '../../../plan/cluster.ts';
import { VIEW, VIEW_6 } from '../../../plan/given.ts';
import { compileOptions } from '../../iptables/compiled.ts';
import { rulesByChain } from '../../iptables/rules/goldenCluster.ts';

interface Given {
  readonly family?: Family;
  readonly view?: Partial<NodeView>;
  readonly world?: string;
}

/** Every chain with its rules, top to bottom. */
function skeleton({ family = 'IPv4', view = {}, world = '' }: Given = {}): string {
  const cluster = new Cluster({ ...(family === 'IPv4' ? VIEW : VIEW_6), ...view }, family).tell(world);
  cluster.replan();
  const options = compileOptions(cluster.planner, { dropInvalid: false });
  return [...rulesByChain(wholeRestore(ipvsLayout, cluster.planner, options))]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([chain, rules]) => [chain, ...rules.map((rule) => `  ${rule}`)])
    .join('\n');
}

/** Without the margin that the source has. */
function text(lines: string): string {
  return lines.replaceAll(/^ {4}/gm, '').trim();
}

function inIPv6(lines: string): string {
  return lines
    .replaceAll('--match-set KUBE-', '--match-set KUBE-6-')
    .replaceAll('KUBE-6-LOAD-BALANCER-SOURCE-CIDR', 'KUBE-6-LOAD-BALANCER-SOURCE-CID')
    .replaceAll('KUBE-6-NODE-PORT-LOCAL-SCTP-HASH', 'KUBE-6-NODE-PORT-LOCAL-SCTP-HAS')
    .replaceAll('127.0.0.0/8', '::1/128')
    .replaceAll('10.244.0.0/16', 'fd00:244::/32');
}

const CLUSTER_IP =
  '-m comment --comment "Kubernetes service cluster ip + port for masquerade purpose" -m set --match-set KUBE-CLUSTER-IP';
const EXTERNAL_IP =
  '-m comment --comment "Kubernetes service external ip + port for masquerade and filter purpose" -m set --match-set KUBE-EXTERNAL-IP dst,dst';
const EXTERNAL_IP_LOCAL =
  '-m comment --comment "Kubernetes service external ip + port with externalTrafficPolicy=local" -m set --match-set KUBE-EXTERNAL-IP-LOCAL dst,dst';
const LOAD_BALANCER_LOCAL =
  '-m comment --comment "Kubernetes service load balancer ip + port with externalTrafficPolicy=local" -m set --match-set KUBE-LOAD-BALANCER-LOCAL dst,dst';
const MARK_CLUSTER_IP = `${CLUSTER_IP} dst,dst ! -s 10.244.0.0/16 -j KUBE-MARK-MASQ`;
const DROP_OUTSIDE =
  '-m comment --comment "Kubernetes service ip + port without local endpoints for clients outside" -m set --match-set KUBE-NO-LOCAL-OUTSIDE dst,dst';

const RULES = text(`
    filter FORWARD
      -m comment --comment "kube-proxy firewall rules" -j KUBE-PROXY-FIREWALL
      -m comment --comment "kubernetes forwarding rules" -j KUBE-FORWARD
    filter INPUT
      -m comment --comment "kubernetes ipvs access filter" -j KUBE-IPVS-FILTER
      -m comment --comment "kube-proxy firewall rules" -j KUBE-PROXY-FIREWALL
      -m comment --comment "kubernetes health check rules" -j KUBE-NODE-PORT
    filter KUBE-FORWARD
      -m comment --comment "kubernetes forwarding rules" -m mark --mark 0x00004000/0x00004000 -j ACCEPT
      -m comment --comment "kubernetes forwarding conntrack rule" -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
    filter KUBE-IPVS-FILTER
      -m set --match-set KUBE-LOAD-BALANCER dst,dst -j RETURN
      -m set --match-set KUBE-CLUSTER-IP dst,dst -j RETURN
      -m set --match-set KUBE-EXTERNAL-IP dst,dst -j RETURN
      -m set --match-set KUBE-EXTERNAL-IP-LOCAL dst,dst -j RETURN
      -m set --match-set KUBE-HEALTH-CHECK-NODE-PORT dst -j RETURN
      -m conntrack --ctstate NEW -m set --match-set KUBE-IPVS-IPS dst -j REJECT
    filter KUBE-IPVS-OUT-FILTER
    filter KUBE-NODE-PORT
      -m comment --comment "Kubernetes health check node port" -m set --match-set KUBE-HEALTH-CHECK-NODE-PORT dst -j ACCEPT
    filter KUBE-PROXY-FIREWALL
      -m comment --comment "Kubernetes service ip + port without local endpoints" -m set --match-set KUBE-NO-LOCAL dst,dst -j DROP
      ${DROP_OUTSIDE} ! -s 10.244.0.0/16 -m addrtype ! --src-type LOCAL -j DROP
      -m comment --comment "Kubernetes service load balancer ip + port for load balancer with sourceRange" -m set --match-set KUBE-LOAD-BALANCER-FW dst,dst -j KUBE-SOURCE-RANGES-FIREWALL
    filter KUBE-SOURCE-RANGES-FIREWALL
      -m comment --comment "Kubernetes service load balancer ip + port + source cidr for packet filter purpose" -m set --match-set KUBE-LOAD-BALANCER-SOURCE-CIDR dst,dst,src -j RETURN
      -m comment --comment "Kubernetes service load balancer ip + port + source IP for packet filter purpose" -m set --match-set KUBE-LOAD-BALANCER-SOURCE-IP dst,dst,src -j RETURN
      -j DROP
    filter OUTPUT
      -m comment --comment "kubernetes ipvs access filter" -j KUBE-IPVS-OUT-FILTER
    nat KUBE-LOAD-BALANCER
      ${LOAD_BALANCER_LOCAL} -m addrtype --src-type LOCAL -j KUBE-MARK-MASQ
      ${LOAD_BALANCER_LOCAL} -j RETURN
      -j KUBE-MARK-MASQ
    nat KUBE-MARK-MASQ
      -j MARK --or-mark 0x00004000
    nat KUBE-NODE-PORT
      -p tcp -m comment --comment "Kubernetes nodeport TCP port with externalTrafficPolicy=local" -m set --match-set KUBE-NODE-PORT-LOCAL-TCP dst -j RETURN
      -p tcp -m comment --comment "Kubernetes nodeport TCP port for masquerade purpose" -m set --match-set KUBE-NODE-PORT-TCP dst -j KUBE-MARK-MASQ
      -p udp -m comment --comment "Kubernetes nodeport UDP port with externalTrafficPolicy=local" -m set --match-set KUBE-NODE-PORT-LOCAL-UDP dst -j RETURN
      -p udp -m comment --comment "Kubernetes nodeport UDP port for masquerade purpose" -m set --match-set KUBE-NODE-PORT-UDP dst -j KUBE-MARK-MASQ
      -p sctp -m comment --comment "Kubernetes nodeport SCTP port with externalTrafficPolicy=local with type 'hash ip:port'" -m set --match-set KUBE-NODE-PORT-LOCAL-SCTP-HASH dst,dst -j RETURN
      -p sctp -m comment --comment "Kubernetes nodeport SCTP port for masquerade purpose with type 'hash ip:port'" -m set --match-set KUBE-NODE-PORT-SCTP-HASH dst,dst -j KUBE-MARK-MASQ
    nat KUBE-POSTROUTING
      -m comment --comment "Kubernetes endpoints dst ip:port, source ip for solving hairpin purpose" -m set --match-set KUBE-LOOP-BACK dst,dst,src -j MASQUERADE
      -m mark ! --mark 0x00004000/0x00004000 -j RETURN
      -j MARK --xor-mark 0x00004000
      -m comment --comment "kubernetes service traffic requiring SNAT" -j MASQUERADE --random-fully
    nat KUBE-SERVICES
      -s 127.0.0.0/8 -j RETURN
      -m comment --comment "Kubernetes service lb portal" -m set --match-set KUBE-LOAD-BALANCER dst,dst -j KUBE-LOAD-BALANCER
      ${MARK_CLUSTER_IP}
      ${EXTERNAL_IP} -j KUBE-MARK-MASQ
      ${EXTERNAL_IP} -m addrtype --dst-type LOCAL -j ACCEPT
      ${EXTERNAL_IP_LOCAL} -m addrtype --src-type LOCAL -j KUBE-MARK-MASQ
      ${EXTERNAL_IP_LOCAL} -m addrtype --dst-type LOCAL -j ACCEPT
      -m addrtype --dst-type LOCAL -j KUBE-NODE-PORT
      -m set --match-set KUBE-CLUSTER-IP dst,dst -j ACCEPT
      -m set --match-set KUBE-LOAD-BALANCER dst,dst -j ACCEPT
    nat OUTPUT
      -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
    nat POSTROUTING
      -m comment --comment "kubernetes postrouting rules" -j KUBE-POSTROUTING
    nat PREROUTING
      -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
`);

const FAMILIES = [
  ['IPv4', (lines: string) => lines],
  ['IPv6', inIPv6],
] as const;

describe.each(FAMILIES)('%s', (family, as) => {
  test('the same whatever the sets have', () => {
    expect(skeleton({ family })).toBe(as(RULES));
    expect(skeleton({ family, world: 'a/x 10.96.0.1 80@30080 ext=198.51.100.1' })).toBe(as(RULES));
  });

  test('everybody is masqueraded', () => {
    expect(skeleton({ family, view: { masqueradeAll: true } })).toBe(
      as(RULES.replace(MARK_CLUSTER_IP, `${CLUSTER_IP} dst,dst -j KUBE-MARK-MASQ`)),
    );
  });

  test('pods cannot be told apart: only what comes from a service address is masqueraded', () => {
    expect(skeleton({ family, view: { localDetector: { kind: 'none' } } })).toBe(
      as(
        RULES.replace(MARK_CLUSTER_IP, `${CLUSTER_IP} src,dst -j KUBE-MARK-MASQ`).replace(
          `${DROP_OUTSIDE} ! -s 10.244.0.0/16`,
          DROP_OUTSIDE,
        ),
      ),
    );
  });

  test.each([
    ['a bridge', { kind: 'interface', name: 'cni0' }, 'cni0'],
    ['a prefix of interface names', { kind: 'interfacePrefix', prefix: 'veth' }, 'veth+'],
  ] as const)('pods are known by %s', (_, localDetector, name) => {
    expect(skeleton({ family, view: { localDetector } })).toBe(
      as(RULES.replaceAll('! -s 10.244.0.0/16', `! -i ${name}`)),
    );
  });
});

/** `nat KUBE-SERVICES|rule` */
function linesByChain(lines: string): readonly string[] {
  let chain = '';
  return lines.split('\n').flatMap((line) => {
    if (line.startsWith('  ')) return [`${chain}|${line}`];
    chain = line;
    return [];
  });
}

describe('load balancers that are closed to the node', () => {
  const OUT = 'filter KUBE-IPVS-OUT-FILTER';
  const rulesOf = (world: string, given: Given = {}): readonly string[] =>
    linesByChain(skeleton({ world, ...given })).flatMap((line) =>
      line.startsWith(`${OUT}|`) ? [line.slice(OUT.length + 3)] : [],
    );

  test('what the node sends from their address is dropped', () => {
    expect(rulesOf('a/x 10.96.0.1 p:80 q:53/udp lb=203.0.113.1,203.0.113.2 ranges=9.9.9.0/24')).toEqual([
      '-s 203.0.113.1 -m ipvs --vaddr 203.0.113.1 --vproto tcp --vport 80 -j DROP',
      '-s 203.0.113.2 -m ipvs --vaddr 203.0.113.2 --vproto tcp --vport 80 -j DROP',
      '-s 203.0.113.1 -m ipvs --vaddr 203.0.113.1 --vproto udp --vport 53 -j DROP',
      '-s 203.0.113.2 -m ipvs --vaddr 203.0.113.2 --vproto udp --vport 53 -j DROP',
    ]);
  });

  test.each([
    ['the node is allowed', 'a/x 10.96.0.1 80 lb=203.0.113.1 ranges=9.9.9.0/24,192.0.2.0/24'],
    ['everybody is', 'a/x 10.96.0.1 80@30080 lb=203.0.113.1 ext=198.51.100.1'],
  ])('not where %s', (_, world) => expect(rulesOf(world)).toEqual([]));

  test('in IPv6', () => {
    expect(
      rulesOf('a/x fd00:96::1 80/sctp lb=2001:db8:1::1 ranges=2001:db8:2::/64', { family: 'IPv6' }),
    ).toEqual(['-s 2001:db8:1::1 -m ipvs --vaddr 2001:db8:1::1 --vproto sctp --vport 80 -j DROP']);
  });
});
