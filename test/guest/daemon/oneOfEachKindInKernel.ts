/**
 * What the tools show of one service of each kind: what kube-proxy 1.36 leaves, line by line, and one rule more in
 * KUBE-LOAD-BALANCER for what the node itself sends.
 */
import type { KernelWords } from './kernelWords.ts';

const NODE_IPS = ['10.244.1.1', '192.0.2.1', '192.168.100.2'];
const NODE_IPS_6 = ['[2001:db8:1::1]', '[fd00:100::2]', '[fd00:244:1::1]'];

const servers = [
  'TCP 10.96.20.1:80 rr -> 10.244.1.11:8080, 10.244.1.12:8080, 10.244.2.11:8080',
  'TCP 10.96.20.2:53 rr -> 10.244.2.12:53',
  'UDP 10.96.20.2:53 rr -> 10.244.2.12:53',
  'TCP 10.96.20.3:80 rr persistent 180 -> 10.244.1.11:8080, 10.244.2.11:8080',
  'TCP 203.0.113.23:80 rr persistent 180 -> 10.244.1.11:8080',
  'TCP 10.96.20.4:8080 rr -> 10.244.1.12:8080, 10.244.2.12:8080',
  'TCP 198.51.100.24:8080 rr -> 10.244.1.12:8080, 10.244.2.12:8080',
  'TCP 10.96.20.5:80 rr ->',
  'TCP 198.51.100.25:80 rr ->',
  'TCP 10.96.20.6:80 rr -> 10.244.1.11:8080',
  'TCP [fd00:96::20]:80 rr -> [fd00:244:1::11]:8080, [fd00:244:2::11]:8080',
  'TCP [2001:db8:113::27]:80 rr -> [fd00:244:1::11]:8080, [fd00:244:2::11]:8080',
  ...NODE_IPS.flatMap((ip) => [
    `TCP ${ip}:30503 rr persistent 180 -> 10.244.1.11:8080`,
    `TCP ${ip}:30504 rr -> 10.244.1.12:8080, 10.244.2.12:8080`,
    `TCP ${ip}:30505 rr ->`,
  ]),
  ...NODE_IPS_6.map((ip) => `TCP ${ip}:30507 rr -> [fd00:244:1::11]:8080, [fd00:244:2::11]:8080`),
].sort();

const sets = [
  'KUBE-CLUSTER-IP hash:ip,port 10.96.20.1,tcp:80 10.96.20.2,tcp:53 10.96.20.2,udp:53 10.96.20.3,tcp:80 10.96.20.4,tcp:8080 10.96.20.5,tcp:80 10.96.20.6,tcp:80',
  'KUBE-EXTERNAL-IP hash:ip,port 198.51.100.24,tcp:8080 198.51.100.25,tcp:80',
  'KUBE-EXTERNAL-IP-LOCAL hash:ip,port',
  'KUBE-HEALTH-CHECK-NODE-PORT bitmap:port 31503',
  'KUBE-IPVS-IPS hash:ip 10.96.20.1 10.96.20.2 10.96.20.3 10.96.20.4 10.96.20.5 10.96.20.6 198.51.100.24 198.51.100.25 203.0.113.23',
  'KUBE-LOAD-BALANCER hash:ip,port 203.0.113.23,tcp:80',
  'KUBE-LOAD-BALANCER-FW hash:ip,port 203.0.113.23,tcp:80',
  'KUBE-LOAD-BALANCER-LOCAL hash:ip,port 203.0.113.23,tcp:80',
  'KUBE-LOAD-BALANCER-SOURCE-CIDR hash:ip,port,net 203.0.113.23,tcp:80,192.0.2.0/24 203.0.113.23,tcp:80,198.18.0.0/15',
  'KUBE-LOAD-BALANCER-SOURCE-IP hash:ip,port,ip',
  'KUBE-LOOP-BACK hash:ip,port,ip 10.244.1.11,tcp:8080,10.244.1.11 10.244.1.12,tcp:8080,10.244.1.12',
  'KUBE-NODE-PORT-LOCAL-SCTP-HASH hash:ip,port',
  'KUBE-NODE-PORT-LOCAL-TCP bitmap:port 30503',
  'KUBE-NODE-PORT-LOCAL-UDP bitmap:port',
  'KUBE-NODE-PORT-SCTP-HASH hash:ip,port',
  'KUBE-NODE-PORT-TCP bitmap:port 30503 30504 30505',
  'KUBE-NODE-PORT-UDP bitmap:port',
  'KUBE-6-CLUSTER-IP hash:ip,port fd00:96::20,tcp:80',
  'KUBE-6-EXTERNAL-IP hash:ip,port',
  'KUBE-6-EXTERNAL-IP-LOCAL hash:ip,port',
  'KUBE-6-HEALTH-CHECK-NODE-PORT bitmap:port',
  'KUBE-6-IPVS-IPS hash:ip 2001:db8:113::27 fd00:96::20',
  'KUBE-6-LOAD-BALANCER hash:ip,port 2001:db8:113::27,tcp:80',
  'KUBE-6-LOAD-BALANCER-FW hash:ip,port',
  'KUBE-6-LOAD-BALANCER-LOCAL hash:ip,port',
  'KUBE-6-LOAD-BALANCER-SOURCE-CID hash:ip,port,net',
  'KUBE-6-LOAD-BALANCER-SOURCE-IP hash:ip,port,ip',
  'KUBE-6-LOOP-BACK hash:ip,port,ip fd00:244:1::11,tcp:8080,fd00:244:1::11',
  'KUBE-6-NODE-PORT-LOCAL-SCTP-HAS hash:ip,port',
  'KUBE-6-NODE-PORT-LOCAL-TCP bitmap:port',
  'KUBE-6-NODE-PORT-LOCAL-UDP bitmap:port',
  'KUBE-6-NODE-PORT-SCTP-HASH hash:ip,port',
  'KUBE-6-NODE-PORT-TCP bitmap:port 30507',
  'KUBE-6-NODE-PORT-UDP bitmap:port',
].sort();

const addresses = [
  '10.96.20.1/32',
  '10.96.20.2/32',
  '10.96.20.3/32',
  '10.96.20.4/32',
  '10.96.20.5/32',
  '10.96.20.6/32',
  '198.51.100.24/32',
  '198.51.100.25/32',
  '2001:db8:113::27/128',
  '203.0.113.23/32',
  'fd00:96::20/128',
];

const rules = `*filter
:KUBE-FORWARD
:KUBE-IPVS-FILTER
:KUBE-IPVS-OUT-FILTER
:KUBE-NODE-PORT
:KUBE-PROXY-FIREWALL
:KUBE-SOURCE-RANGES-FIREWALL
-A INPUT -m comment --comment "kubernetes ipvs access filter" -j KUBE-IPVS-FILTER
-A INPUT -m comment --comment "kube-proxy firewall rules" -j KUBE-PROXY-FIREWALL
-A INPUT -m comment --comment "kubernetes health check rules" -j KUBE-NODE-PORT
-A FORWARD -m comment --comment "kube-proxy firewall rules" -j KUBE-PROXY-FIREWALL
-A FORWARD -m comment --comment "kubernetes forwarding rules" -j KUBE-FORWARD
-A OUTPUT -m comment --comment "kubernetes ipvs access filter" -j KUBE-IPVS-OUT-FILTER
-A KUBE-FORWARD -m comment --comment "kubernetes forwarding rules" -m mark --mark 0x4000/0x4000 -j ACCEPT
-A KUBE-FORWARD -m comment --comment "kubernetes forwarding conntrack rule" -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A KUBE-IPVS-FILTER -m set --match-set KUBE-LOAD-BALANCER dst,dst -j RETURN
-A KUBE-IPVS-FILTER -m set --match-set KUBE-CLUSTER-IP dst,dst -j RETURN
-A KUBE-IPVS-FILTER -m set --match-set KUBE-EXTERNAL-IP dst,dst -j RETURN
-A KUBE-IPVS-FILTER -m set --match-set KUBE-EXTERNAL-IP-LOCAL dst,dst -j RETURN
-A KUBE-IPVS-FILTER -m set --match-set KUBE-HEALTH-CHECK-NODE-PORT dst -j RETURN
-A KUBE-IPVS-FILTER -m conntrack --ctstate NEW -m set --match-set KUBE-IPVS-IPS dst -j REJECT --reject-with icmp-port-unreachable
-A KUBE-IPVS-OUT-FILTER -s 203.0.113.23/32 -m ipvs --vproto 6 --vaddr 203.0.113.23 --vport 80 -j DROP
-A KUBE-NODE-PORT -m comment --comment "Kubernetes health check node port" -m set --match-set KUBE-HEALTH-CHECK-NODE-PORT dst -j ACCEPT
-A KUBE-PROXY-FIREWALL -m comment --comment "Kubernetes service load balancer ip + port for load balancer with sourceRange" -m set --match-set KUBE-LOAD-BALANCER-FW dst,dst -j KUBE-SOURCE-RANGES-FIREWALL
-A KUBE-SOURCE-RANGES-FIREWALL -m comment --comment "Kubernetes service load balancer ip + port + source cidr for packet filter purpose" -m set --match-set KUBE-LOAD-BALANCER-SOURCE-CIDR dst,dst,src -j RETURN
-A KUBE-SOURCE-RANGES-FIREWALL -j DROP
*nat
:KUBE-LOAD-BALANCER
:KUBE-MARK-MASQ
:KUBE-NODE-PORT
:KUBE-POSTROUTING
:KUBE-SERVICES
-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A OUTPUT -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A POSTROUTING -m comment --comment "kubernetes postrouting rules" -j KUBE-POSTROUTING
-A KUBE-LOAD-BALANCER -m comment --comment "Kubernetes service load balancer ip + port with externalTrafficPolicy=local" -m set --match-set KUBE-LOAD-BALANCER-LOCAL dst,dst -m addrtype --src-type LOCAL -j KUBE-MARK-MASQ
-A KUBE-LOAD-BALANCER -m comment --comment "Kubernetes service load balancer ip + port with externalTrafficPolicy=local" -m set --match-set KUBE-LOAD-BALANCER-LOCAL dst,dst -j RETURN
-A KUBE-LOAD-BALANCER -j KUBE-MARK-MASQ
-A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000
-A KUBE-NODE-PORT -p tcp -m comment --comment "Kubernetes nodeport TCP port with externalTrafficPolicy=local" -m set --match-set KUBE-NODE-PORT-LOCAL-TCP dst -j RETURN
-A KUBE-NODE-PORT -p tcp -m comment --comment "Kubernetes nodeport TCP port for masquerade purpose" -m set --match-set KUBE-NODE-PORT-TCP dst -j KUBE-MARK-MASQ
-A KUBE-POSTROUTING -m comment --comment "Kubernetes endpoints dst ip:port, source ip for solving hairpin purpose" -m set --match-set KUBE-LOOP-BACK dst,dst,src -j MASQUERADE
-A KUBE-POSTROUTING -m mark ! --mark 0x4000/0x4000 -j RETURN
-A KUBE-POSTROUTING -j MARK --set-xmark 0x4000/0x0
-A KUBE-POSTROUTING -m comment --comment "kubernetes service traffic requiring SNAT" -j MASQUERADE --random-fully
-A KUBE-SERVICES -s 127.0.0.0/8 -j RETURN
-A KUBE-SERVICES -m comment --comment "Kubernetes service lb portal" -m set --match-set KUBE-LOAD-BALANCER dst,dst -j KUBE-LOAD-BALANCER
-A KUBE-SERVICES ! -s 10.244.0.0/16 -m comment --comment "Kubernetes service cluster ip + port for masquerade purpose" -m set --match-set KUBE-CLUSTER-IP dst,dst -j KUBE-MARK-MASQ
-A KUBE-SERVICES -m comment --comment "Kubernetes service external ip + port for masquerade and filter purpose" -m set --match-set KUBE-EXTERNAL-IP dst,dst -j KUBE-MARK-MASQ
-A KUBE-SERVICES -m comment --comment "Kubernetes service external ip + port for masquerade and filter purpose" -m set --match-set KUBE-EXTERNAL-IP dst,dst -m physdev ! --physdev-is-in -m addrtype ! --src-type LOCAL -j ACCEPT
-A KUBE-SERVICES -m comment --comment "Kubernetes service external ip + port for masquerade and filter purpose" -m set --match-set KUBE-EXTERNAL-IP dst,dst -m addrtype --dst-type LOCAL -j ACCEPT
-A KUBE-SERVICES -m addrtype --dst-type LOCAL -j KUBE-NODE-PORT
-A KUBE-SERVICES -m set --match-set KUBE-CLUSTER-IP dst,dst -j ACCEPT
-A KUBE-SERVICES -m set --match-set KUBE-LOAD-BALANCER dst,dst -j ACCEPT`;

const rules6 = `*filter
:KUBE-FORWARD
:KUBE-IPVS-FILTER
:KUBE-IPVS-OUT-FILTER
:KUBE-NODE-PORT
:KUBE-PROXY-FIREWALL
:KUBE-SOURCE-RANGES-FIREWALL
-A INPUT -m comment --comment "kubernetes ipvs access filter" -j KUBE-IPVS-FILTER
-A INPUT -m comment --comment "kube-proxy firewall rules" -j KUBE-PROXY-FIREWALL
-A INPUT -m comment --comment "kubernetes health check rules" -j KUBE-NODE-PORT
-A FORWARD -m comment --comment "kube-proxy firewall rules" -j KUBE-PROXY-FIREWALL
-A FORWARD -m comment --comment "kubernetes forwarding rules" -j KUBE-FORWARD
-A OUTPUT -m comment --comment "kubernetes ipvs access filter" -j KUBE-IPVS-OUT-FILTER
-A KUBE-FORWARD -m comment --comment "kubernetes forwarding rules" -m mark --mark 0x4000/0x4000 -j ACCEPT
-A KUBE-FORWARD -m comment --comment "kubernetes forwarding conntrack rule" -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A KUBE-IPVS-FILTER -m set --match-set KUBE-6-LOAD-BALANCER dst,dst -j RETURN
-A KUBE-IPVS-FILTER -m set --match-set KUBE-6-CLUSTER-IP dst,dst -j RETURN
-A KUBE-IPVS-FILTER -m set --match-set KUBE-6-EXTERNAL-IP dst,dst -j RETURN
-A KUBE-IPVS-FILTER -m set --match-set KUBE-6-EXTERNAL-IP-LOCAL dst,dst -j RETURN
-A KUBE-IPVS-FILTER -m set --match-set KUBE-6-HEALTH-CHECK-NODE-PORT dst -j RETURN
-A KUBE-IPVS-FILTER -m conntrack --ctstate NEW -m set --match-set KUBE-6-IPVS-IPS dst -j REJECT --reject-with icmp6-port-unreachable
-A KUBE-NODE-PORT -m comment --comment "Kubernetes health check node port" -m set --match-set KUBE-6-HEALTH-CHECK-NODE-PORT dst -j ACCEPT
-A KUBE-SOURCE-RANGES-FIREWALL -j DROP
*nat
:KUBE-LOAD-BALANCER
:KUBE-MARK-MASQ
:KUBE-NODE-PORT
:KUBE-POSTROUTING
:KUBE-SERVICES
-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A OUTPUT -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A POSTROUTING -m comment --comment "kubernetes postrouting rules" -j KUBE-POSTROUTING
-A KUBE-LOAD-BALANCER -j KUBE-MARK-MASQ
-A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000
-A KUBE-NODE-PORT -p tcp -m comment --comment "Kubernetes nodeport TCP port for masquerade purpose" -m set --match-set KUBE-6-NODE-PORT-TCP dst -j KUBE-MARK-MASQ
-A KUBE-POSTROUTING -m comment --comment "Kubernetes endpoints dst ip:port, source ip for solving hairpin purpose" -m set --match-set KUBE-6-LOOP-BACK dst,dst,src -j MASQUERADE
-A KUBE-POSTROUTING -m mark ! --mark 0x4000/0x4000 -j RETURN
-A KUBE-POSTROUTING -j MARK --set-xmark 0x4000/0x0
-A KUBE-POSTROUTING -m comment --comment "kubernetes service traffic requiring SNAT" -j MASQUERADE --random-fully
-A KUBE-SERVICES -s ::1/128 -j RETURN
-A KUBE-SERVICES -m comment --comment "Kubernetes service lb portal" -m set --match-set KUBE-6-LOAD-BALANCER dst,dst -j KUBE-LOAD-BALANCER
-A KUBE-SERVICES ! -s fd00:244::/32 -m comment --comment "Kubernetes service cluster ip + port for masquerade purpose" -m set --match-set KUBE-6-CLUSTER-IP dst,dst -j KUBE-MARK-MASQ
-A KUBE-SERVICES -m addrtype --dst-type LOCAL -j KUBE-NODE-PORT
-A KUBE-SERVICES -m set --match-set KUBE-6-CLUSTER-IP dst,dst -j ACCEPT
-A KUBE-SERVICES -m set --match-set KUBE-6-LOAD-BALANCER dst,dst -j ACCEPT`;

export const IN_KERNEL: KernelWords = {
  servers,
  sets,
  addresses,
  rules: rules.split('\n'),
  rules6: rules6.split('\n'),
};
