/** The rules of three services, written out as kube-proxy writes them, for the walker's packet table. */
export interface Service {
  readonly name: string;
  readonly clusterIp: string;
  readonly nodePort: number;
  readonly loadBalancerIp: string;
  readonly local: string;
  readonly remote: string;
  readonly internalLocal: boolean;
  readonly externalLocal: boolean;
}

export const SERVICES: readonly Service[] = [
  service(1, '1.2.3.4', { internalLocal: false, externalLocal: false }),
  service(2, '5.6.7.8', { internalLocal: false, externalLocal: true }),
  service(3, '9.10.11.12', { internalLocal: true, externalLocal: false }),
];

function service(
  number: number,
  loadBalancerIp: string,
  policies: Pick<Service, 'internalLocal' | 'externalLocal'>,
): Service {
  return {
    name: `S${number}`,
    clusterIp: `172.30.0.4${number}`,
    nodePort: 3000 + number,
    loadBalancerIp,
    local: `10.180.0.${number}`,
    remote: `10.180.1.${number}`,
    ...policies,
  };
}

export interface Settings {
  /** Pods are told apart by the cluster's CIDR. */
  readonly detector: boolean;
  readonly masqueradeAll: boolean;
}

export const POD_CIDR = '10.0.0.0/8';

const FILTER = `
*filter
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:KUBE-FIREWALL - [0:0]
:KUBE-FORWARD - [0:0]
:KUBE-SERVICES - [0:0]
:KUBE-PROXY-FIREWALL - [0:0]
-A INPUT -j KUBE-FIREWALL
-A INPUT -m conntrack --ctstate NEW -m comment --comment "kubernetes load balancer firewall" -j KUBE-PROXY-FIREWALL
-A FORWARD -m conntrack --ctstate NEW -m comment --comment "kubernetes load balancer firewall" -j KUBE-PROXY-FIREWALL
-A FORWARD -m comment --comment "kubernetes forwarding rules" -j KUBE-FORWARD
-A FORWARD -m conntrack --ctstate NEW -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A OUTPUT -j KUBE-FIREWALL
-A OUTPUT -m conntrack --ctstate NEW -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A KUBE-FIREWALL -m comment --comment "block incoming localnet connections" -d 127.0.0.0/8 ! -s 127.0.0.0/8 -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP
-A KUBE-FORWARD -m conntrack --ctstate INVALID -j DROP
-A KUBE-FORWARD -m comment --comment "kubernetes forwarding rules" -m mark --mark 0x4000/0x4000 -j ACCEPT
-A KUBE-FORWARD -m comment --comment "kubernetes forwarding conntrack rule" -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A KUBE-SERVICES -m comment --comment "idle has no endpoints" -m tcp -p tcp -d 172.30.0.99 --dport 80 -j REJECT
-A KUBE-PROXY-FIREWALL -m comment --comment "guarded is not accepted" -m tcp -p tcp -d 198.51.100.9 --dport 80 -j DROP
COMMIT
`;

const NAT = `
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
:KUBE-SERVICES - [0:0]
:KUBE-NODEPORTS - [0:0]
:KUBE-POSTROUTING - [0:0]
:KUBE-MARK-MASQ - [0:0]
-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A OUTPUT -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A POSTROUTING -m comment --comment "kubernetes postrouting rules" -j KUBE-POSTROUTING
-A KUBE-POSTROUTING -m mark ! --mark 0x00004000/0x00004000 -j RETURN
-A KUBE-POSTROUTING -j MARK --xor-mark 0x00004000
-A KUBE-POSTROUTING -m comment --comment "kubernetes service traffic requiring SNAT" -j MASQUERADE --random-fully
-A KUBE-MARK-MASQ -j MARK --or-mark 0x00004000`;

export function serviceRules(settings: Settings): string {
  const chains = SERVICES.flatMap(({ name }) =>
    ['SVC', 'SVL', 'EXT', 'SEP-L', 'SEP-R'].map((kind) => `:KUBE-${kind}-${name} - [0:0]`),
  );
  const tail = '-A KUBE-SERVICES -m addrtype --dst-type LOCAL -j KUBE-NODEPORTS';
  const rules = SERVICES.flatMap((one) => rulesOf(one, settings));
  return `${FILTER}*nat${NAT}\n${[...chains, ...rules, tail].join('\n')}\nCOMMIT\n`;
}

function rulesOf(one: Service, { detector, masqueradeAll }: Settings): string[] {
  const { name } = one;
  const portal = `-m comment --comment "${name} cluster IP" -m tcp -p tcp -d ${one.clusterIp} --dport 80`;
  const internal = one.internalLocal ? `KUBE-SVL-${name}` : `KUBE-SVC-${name}`;
  const cluster: string[] = [`-A KUBE-SERVICES ${portal} -j ${internal}`];
  if (masqueradeAll) cluster.push(`-A ${internal} ${portal} -j KUBE-MARK-MASQ`);
  else if (detector) cluster.push(`-A ${internal} ${portal} ! -s ${POD_CIDR} -j KUBE-MARK-MASQ`);
  return [
    ...cluster,
    `-A KUBE-SERVICES -m tcp -p tcp -d ${one.loadBalancerIp} --dport 80 -j KUBE-EXT-${name}`,
    `-A KUBE-NODEPORTS -m comment --comment ${name} -m tcp -p tcp --dport ${one.nodePort} -j KUBE-EXT-${name}`,
    ...externalRules(one, detector),
    `-A KUBE-SVC-${name} -m statistic --mode random --probability 0.5000000000 -j KUBE-SEP-L-${name}`,
    `-A KUBE-SVC-${name} -j KUBE-SEP-R-${name}`,
    `-A KUBE-SVL-${name} -j KUBE-SEP-L-${name}`,
    `-A KUBE-SEP-L-${name} -s ${one.local} -j KUBE-MARK-MASQ`,
    `-A KUBE-SEP-L-${name} -m tcp -p tcp -j DNAT --to-destination ${one.local}:8080`,
    `-A KUBE-SEP-R-${name} -s ${one.remote} -j KUBE-MARK-MASQ`,
    `-A KUBE-SEP-R-${name} -m tcp -p tcp -j DNAT --to-destination ${one.remote}:8080`,
  ];
}

function externalRules({ name, externalLocal }: Service, detector: boolean): string[] {
  const chain = `-A KUBE-EXT-${name}`;
  if (!externalLocal) return [`${chain} -j KUBE-MARK-MASQ`, `${chain} -j KUBE-SVC-${name}`];
  return [
    ...(detector ? [`${chain} -s ${POD_CIDR} -j KUBE-SVC-${name}`] : []),
    `${chain} -m addrtype --src-type LOCAL -j KUBE-MARK-MASQ`,
    `${chain} -m addrtype --src-type LOCAL -j KUBE-SVC-${name}`,
    `${chain} -j KUBE-SVL-${name}`,
  ];
}
