/** A worked example: four service ports on node-a, and the rules that kube-proxy writes for them. */
export const APPENDIX_WORLD = `
  kube-system/kube-dns 10.96.0.10 dns:53/udp
  kube-system/kube-dns-1 of kube-dns dns:53/udp | 10.244.0.2 node-a | 10.244.1.3 node-b
  shop/web LoadBalancer 10.96.7.7 http:80@30080 etp=Local lb=198.51.100.20 ranges=203.0.113.0/24,192.0.2.0/24 hc=32100 affinity=10800
  shop/web-1 of web http:8080 | 10.244.0.8 node-a | 10.244.1.9 node-b
  shop/idle 10.96.9.9 8080
  shop/agent 10.96.5.5 grpc:9000 itp=Local
  shop/agent-1 of agent grpc:9000 | 10.244.1.4 node-b
`;

export const APPENDIX_A = `*filter
:KUBE-SERVICES - [0:0]
:KUBE-EXTERNAL-SERVICES - [0:0]
:KUBE-FORWARD - [0:0]
:KUBE-NODEPORTS - [0:0]
:KUBE-PROXY-FIREWALL - [0:0]
:KUBE-FIREWALL - [0:0]
-A KUBE-FIREWALL -m comment --comment "block incoming localnet connections" -d 127.0.0.0/8 ! -s 127.0.0.0/8 -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP
-A KUBE-PROXY-FIREWALL -m comment --comment "shop/web:http traffic not accepted by KUBE-FW-67NZLRHBNDSAWJRO" -m tcp -p tcp -d 198.51.100.20 --dport 80 -j DROP
-A KUBE-NODEPORTS -m comment --comment "shop/web:http health check node port" -m tcp -p tcp --dport 32100 -j ACCEPT
-A KUBE-SERVICES -m comment --comment "shop/idle has no endpoints" -m tcp -p tcp -d 10.96.9.9 --dport 8080 -j REJECT
-A KUBE-SERVICES -m comment --comment "shop/agent:grpc has no local endpoints" -m tcp -p tcp -d 10.96.5.5 --dport 9000 -j DROP
-A KUBE-FORWARD -m conntrack --ctstate INVALID -j DROP
-A KUBE-FORWARD -m comment --comment "kubernetes forwarding rules" -m mark --mark 0x00004000/0x00004000 -j ACCEPT
-A KUBE-FORWARD -m comment --comment "kubernetes forwarding conntrack rule" -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
COMMIT
*nat
:KUBE-SERVICES - [0:0]
:KUBE-NODEPORTS - [0:0]
:KUBE-POSTROUTING - [0:0]
:KUBE-MARK-MASQ - [0:0]
:KUBE-SVC-TCOU7JCQXEZGVUNU - [0:0]
:KUBE-SEP-YIL6JZP7A3QYXJU2 - [0:0]
:KUBE-SEP-EJJ3L23ZA35VLW6X - [0:0]
:KUBE-EXT-67NZLRHBNDSAWJRO - [0:0]
:KUBE-FW-67NZLRHBNDSAWJRO - [0:0]
:KUBE-SVC-67NZLRHBNDSAWJRO - [0:0]
:KUBE-SVL-67NZLRHBNDSAWJRO - [0:0]
:KUBE-SEP-A5SSNHTSPSJVNQ6T - [0:0]
:KUBE-SEP-Z5LSZF7RYHBWLYWB - [0:0]
-A KUBE-POSTROUTING -m mark ! --mark 0x00004000/0x00004000 -j RETURN
-A KUBE-POSTROUTING -j MARK --xor-mark 0x00004000
-A KUBE-POSTROUTING -m comment --comment "kubernetes service traffic requiring SNAT" -j MASQUERADE --random-fully
-A KUBE-MARK-MASQ -j MARK --or-mark 0x00004000
-A KUBE-SERVICES -m comment --comment "kube-system/kube-dns:dns cluster IP" -m udp -p udp -d 10.96.0.10 --dport 53 -j KUBE-SVC-TCOU7JCQXEZGVUNU
-A KUBE-SVC-TCOU7JCQXEZGVUNU -m comment --comment "kube-system/kube-dns:dns cluster IP" -m udp -p udp -d 10.96.0.10 --dport 53 ! -s 10.244.0.0/16 -j KUBE-MARK-MASQ
-A KUBE-SVC-TCOU7JCQXEZGVUNU -m comment --comment "kube-system/kube-dns:dns -> 10.244.0.2:53" -m statistic --mode random --probability 0.5000000000 -j KUBE-SEP-YIL6JZP7A3QYXJU2
-A KUBE-SVC-TCOU7JCQXEZGVUNU -m comment --comment "kube-system/kube-dns:dns -> 10.244.1.3:53" -j KUBE-SEP-EJJ3L23ZA35VLW6X
-A KUBE-SEP-YIL6JZP7A3QYXJU2 -m comment --comment kube-system/kube-dns:dns -s 10.244.0.2 -j KUBE-MARK-MASQ
-A KUBE-SEP-YIL6JZP7A3QYXJU2 -m comment --comment kube-system/kube-dns:dns -m udp -p udp -j DNAT --to-destination 10.244.0.2:53
-A KUBE-SEP-EJJ3L23ZA35VLW6X -m comment --comment kube-system/kube-dns:dns -s 10.244.1.3 -j KUBE-MARK-MASQ
-A KUBE-SEP-EJJ3L23ZA35VLW6X -m comment --comment kube-system/kube-dns:dns -m udp -p udp -j DNAT --to-destination 10.244.1.3:53
-A KUBE-SERVICES -m comment --comment "shop/web:http cluster IP" -m tcp -p tcp -d 10.96.7.7 --dport 80 -j KUBE-SVC-67NZLRHBNDSAWJRO
-A KUBE-SERVICES -m comment --comment "shop/web:http loadbalancer IP" -m tcp -p tcp -d 198.51.100.20 --dport 80 -j KUBE-FW-67NZLRHBNDSAWJRO
-A KUBE-NODEPORTS -m comment --comment shop/web:http -m tcp -p tcp --dport 30080 -j KUBE-EXT-67NZLRHBNDSAWJRO
-A KUBE-SVC-67NZLRHBNDSAWJRO -m comment --comment "shop/web:http cluster IP" -m tcp -p tcp -d 10.96.7.7 --dport 80 ! -s 10.244.0.0/16 -j KUBE-MARK-MASQ
-A KUBE-EXT-67NZLRHBNDSAWJRO -m comment --comment "pod traffic for shop/web:http external destinations" -s 10.244.0.0/16 -j KUBE-SVC-67NZLRHBNDSAWJRO
-A KUBE-EXT-67NZLRHBNDSAWJRO -m comment --comment "masquerade LOCAL traffic for shop/web:http external destinations" -m addrtype --src-type LOCAL -j KUBE-MARK-MASQ
-A KUBE-EXT-67NZLRHBNDSAWJRO -m comment --comment "route LOCAL traffic for shop/web:http external destinations" -m addrtype --src-type LOCAL -j KUBE-SVC-67NZLRHBNDSAWJRO
-A KUBE-EXT-67NZLRHBNDSAWJRO -j KUBE-SVL-67NZLRHBNDSAWJRO
-A KUBE-FW-67NZLRHBNDSAWJRO -m comment --comment "shop/web:http loadbalancer IP" -s 203.0.113.0/24 -j KUBE-EXT-67NZLRHBNDSAWJRO
-A KUBE-FW-67NZLRHBNDSAWJRO -m comment --comment "shop/web:http loadbalancer IP" -s 192.0.2.0/24 -j KUBE-EXT-67NZLRHBNDSAWJRO
-A KUBE-FW-67NZLRHBNDSAWJRO -m comment --comment "shop/web:http loadbalancer IP" -s 198.51.100.20 -j KUBE-EXT-67NZLRHBNDSAWJRO
-A KUBE-FW-67NZLRHBNDSAWJRO -m comment --comment "other traffic to shop/web:http will be dropped by KUBE-PROXY-FIREWALL"
-A KUBE-SVC-67NZLRHBNDSAWJRO -m comment --comment "shop/web:http -> 10.244.0.8:8080" -m recent --name KUBE-SEP-A5SSNHTSPSJVNQ6T --rcheck --seconds 10800 --reap -j KUBE-SEP-A5SSNHTSPSJVNQ6T
-A KUBE-SVC-67NZLRHBNDSAWJRO -m comment --comment "shop/web:http -> 10.244.1.9:8080" -m recent --name KUBE-SEP-Z5LSZF7RYHBWLYWB --rcheck --seconds 10800 --reap -j KUBE-SEP-Z5LSZF7RYHBWLYWB
-A KUBE-SVC-67NZLRHBNDSAWJRO -m comment --comment "shop/web:http -> 10.244.0.8:8080" -m statistic --mode random --probability 0.5000000000 -j KUBE-SEP-A5SSNHTSPSJVNQ6T
-A KUBE-SVC-67NZLRHBNDSAWJRO -m comment --comment "shop/web:http -> 10.244.1.9:8080" -j KUBE-SEP-Z5LSZF7RYHBWLYWB
-A KUBE-SVL-67NZLRHBNDSAWJRO -m comment --comment "shop/web:http -> 10.244.0.8:8080" -m recent --name KUBE-SEP-A5SSNHTSPSJVNQ6T --rcheck --seconds 10800 --reap -j KUBE-SEP-A5SSNHTSPSJVNQ6T
-A KUBE-SVL-67NZLRHBNDSAWJRO -m comment --comment "shop/web:http -> 10.244.0.8:8080" -j KUBE-SEP-A5SSNHTSPSJVNQ6T
-A KUBE-SEP-A5SSNHTSPSJVNQ6T -m comment --comment shop/web:http -s 10.244.0.8 -j KUBE-MARK-MASQ
-A KUBE-SEP-A5SSNHTSPSJVNQ6T -m comment --comment shop/web:http -m recent --name KUBE-SEP-A5SSNHTSPSJVNQ6T --set -m tcp -p tcp -j DNAT --to-destination 10.244.0.8:8080
-A KUBE-SEP-Z5LSZF7RYHBWLYWB -m comment --comment shop/web:http -s 10.244.1.9 -j KUBE-MARK-MASQ
-A KUBE-SEP-Z5LSZF7RYHBWLYWB -m comment --comment shop/web:http -m recent --name KUBE-SEP-Z5LSZF7RYHBWLYWB --set -m tcp -p tcp -j DNAT --to-destination 10.244.1.9:8080
-A KUBE-SERVICES -m comment --comment "kubernetes service nodeports; NOTE: this must be the last rule in this chain" -m addrtype --dst-type LOCAL -j KUBE-NODEPORTS
COMMIT
`;
