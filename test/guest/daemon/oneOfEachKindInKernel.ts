/** What the tools show of one service of each kind: what kube-proxy 1.36 leaves, line by line. */
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
  // Those that kube-proxy has not.
  ...['KUBE-', 'KUBE-6-'].flatMap((name) => [
    `${name}NO-LOCAL hash:ip,port`,
    `${name}NO-LOCAL-OUTSIDE hash:ip,port`,
  ]),
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

export const IN_KERNEL = { servers, sets, addresses };
