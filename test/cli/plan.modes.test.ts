/** `junction plan` in each mode: everything that would be written, as the usual programs take it. */
import { describe, expect, test } from 'vitest';
import { applyRestore } from '../modes/iptables/rules/restore.ts';
import { useFiles } from './files.ts';
import { junction } from './junction.ts';
import { type Planner, plannerFor, WEB_ENDPOINTS } from './plan.ts';

const file = useFiles();
const SHOP = file(
  'shop.yaml',
  `
kind: Node
metadata: { name: node-a }
status: { addresses: [{ type: InternalIP, address: 192.0.2.7 }, { type: InternalIP, address: "2001:db8::7" }] }
---
kind: Service
metadata: { name: web, namespace: shop }
spec:
  type: NodePort
  clusterIP: 10.96.0.1
  clusterIPs: [10.96.0.1, "fd00:96::1"]
  ipFamilies: [IPv4, IPv6]
  sessionAffinity: ClientIP
  ports: [{ name: http, port: 80, nodePort: 30080 }]
---
kind: Service
metadata: { name: dns, namespace: shop }
spec:
  clusterIP: 10.96.0.2
  externalIPs: [198.51.100.7]
  ports: [{ name: dns, port: 53, protocol: UDP }, { name: sctp, port: 9, protocol: SCTP }]
---
kind: Service
metadata: { name: idle, namespace: shop }
spec: { clusterIP: 10.96.0.3, ports: [{ name: dns, port: 53, protocol: UDP }] }
${WEB_ENDPOINTS}---
kind: EndpointSlice
metadata: { name: dns-1, namespace: shop, labels: { kubernetes.io/service-name: dns } }
addressType: IPv4
ports: [{ name: dns, port: 5353, protocol: UDP }, { name: sctp, port: 90, protocol: SCTP }]
endpoints: [{ addresses: [10.244.0.3], nodeName: node-a }]
`,
);

interface PlannedFamily {
  readonly family: string;
  readonly mode: string;
  readonly layout?: string;
  readonly servicePorts: readonly unknown[];
  readonly nft: string;
  readonly ipset: string;
  readonly ipvsadm: string;
  readonly ip: string;
  readonly restore: string;
}

async function planned(plan: Planner, ...flags: readonly string[]): Promise<readonly PlannedFamily[]> {
  const { code, out } = await plan('--output=json', ...flags);
  expect(code).toBe(0);
  return (JSON.parse(out) as { readonly families: readonly PlannedFamily[] }).families;
}

/** The lines without order, and without the empty one at the end. */
const linesOf = (text = ''): readonly string[] => text.trimEnd().split('\n').sort();
const partsOf = (text: string): readonly string[] =>
  text
    .split(/^# IP.*\n/m)
    .slice(1)
    .map((part) => part.replaceAll(/^#.*\n/gm, '').trimEnd());

test.each(['ipvs', 'nftables'] as const)('as a table, %s mode says what iptables mode says', async (mode) => {
  const table = ['--output=table', '--family=ipv4'];
  const withoutHead = ({ out }: { readonly out: string }): string => out.slice(out.indexOf('\n'));
  const ofIptables = withoutHead(await plannerFor('iptables', SHOP)(...table, '--nodeport-addresses='));
  expect(withoutHead(await plannerFor(mode, SHOP)(...table, '--nodeport-addresses='))).toBe(ofIptables);
});

describe('ipvs mode', () => {
  const plan = plannerFor('ipvs', SHOP);

  test('four parts for each family, in the order in which they may be written; as JSON each by itself', async () => {
    const { out } = await plan();
    expect(out.match(/^# IP.*$/gm)).toEqual([
      '# IPv4, sets, for: ipset restore -exist',
      '# IPv4, virtual servers, for: ipvsadm --restore',
      '# IPv4, rules, for: iptables-restore --noflush',
      '# IPv4, addresses, for: ip -force -batch -',
      '# IPv6, sets, for: ipset restore -exist',
      '# IPv6, virtual servers, for: ipvsadm --restore',
      '# IPv6, rules, for: ip6tables-restore --noflush',
      '# IPv6, addresses, for: ip -force -batch -',
    ]);
    const families = await planned(plan);
    for (const { mode, layout } of families) expect([mode, layout]).toEqual(['ipvs', undefined]);
    const parts = families.flatMap(({ ipset, ipvsadm, restore, ip }) => [ipset, ipvsadm, restore, ip]);
    expect(parts.map((part) => part.trimEnd())).toEqual(partsOf(out));
  });

  test('virtual servers before their endpoints, with affinity and scheduler', async () => {
    const [ipv4, ipv6] = await planned(plan);
    // Node ports answer on the addresses of the machine that plans.
    expect(linesOf(ipv4?.ipvsadm).filter((line) => !line.includes(':30080'))).toEqual([
      '-A --sctp-service 10.96.0.2:9 -s rr',
      '-A --sctp-service 198.51.100.7:9 -s rr',
      '-A -t 10.96.0.1:80 -s rr -p 10800',
      '-A -u 10.96.0.2:53 -s rr',
      '-A -u 10.96.0.3:53 -s rr',
      '-A -u 198.51.100.7:53 -s rr',
      '-a --sctp-service 10.96.0.2:9 -r 10.244.0.3:90 -m -w 1',
      '-a --sctp-service 198.51.100.7:9 -r 10.244.0.3:90 -m -w 1',
      '-a -t 10.96.0.1:80 -r 10.244.0.1:8080 -m -w 1',
      '-a -t 10.96.0.1:80 -r 10.244.1.1:8080 -m -w 1',
      '-a -u 10.96.0.2:53 -r 10.244.0.3:5353 -m -w 1',
      '-a -u 198.51.100.7:53 -r 10.244.0.3:5353 -m -w 1',
    ]);
    const lines = ipv4?.ipvsadm.split('\n') ?? [];
    for (const [index, line] of lines.entries())
      if (line.startsWith('-a'))
        expect(lines.slice(0, index).join()).toContain(`-A ${line.split(' ', 3).slice(1).join(' ')} `);
    expect(ipv6?.ipvsadm).toContain(
      '-A -t [fd00:96::1]:80 -s rr -p 10800\n-a -t [fd00:96::1]:80 -r [fd00:244::1]:8080 -m -w 1\n',
    );
    const [, hashed] = await planned(plan, '--ipvs-scheduler=mh');
    expect(hashed?.ipvsadm).toContain('-A -t [fd00:96::1]:80 -s mh -p 10800 -b mh-port\n');
  });

  test('sets of the family, those without entries too, and rules that match them', async () => {
    const [ipv4, ipv6] = await planned(plan);
    const ipset = ipv4?.ipset ?? '';
    expect(ipset).toContain('create KUBE-CLUSTER-IP hash:ip,port family inet hashsize 1024 maxelem 65536\n');
    expect(ipset).toContain('create KUBE-NODE-PORT-TCP bitmap:port range 0-65535\n');
    expect(ipset).not.toContain('KUBE-NO-LOCAL');
    expect(ipv6?.ipset).toContain(
      'create KUBE-6-CLUSTER-IP hash:ip,port family inet6 hashsize 1024 maxelem 65536\n',
    );
    const sets = (verb: string): readonly string[] =>
      [...ipset.matchAll(new RegExp(`^${verb} (\\S+)`, 'gm'))].map(([, name = '']) => name);
    expect(sets('flush')).toEqual(sets('create'));
    expect(ipset.match(/^add KUBE-(?:EXTERNAL|LOOP|NODE).*$/gm)?.sort()).toEqual([
      'add KUBE-EXTERNAL-IP 198.51.100.7,sctp:9',
      'add KUBE-EXTERNAL-IP 198.51.100.7,udp:53',
      'add KUBE-LOOP-BACK 10.244.0.1,tcp:8080,10.244.0.1',
      'add KUBE-LOOP-BACK 10.244.0.3,sctp:90,10.244.0.3',
      'add KUBE-LOOP-BACK 10.244.0.3,udp:5353,10.244.0.3',
      'add KUBE-NODE-PORT-TCP 30080',
    ]);
    const restore = ipv4?.restore ?? '';
    expect(applyRestore(new Map(), restore).get('nat')?.has('KUBE-LOAD-BALANCER')).toBe(true);
    const matched = [...restore.matchAll(/--match-set (\S+)/g)].map(([, name]) => name);
    expect(matched).toContain('KUBE-EXTERNAL-IP');
    for (const name of matched) expect(ipset).toContain(`create ${name} `);
  });

  test('every address once, on a device that is made first', async () => {
    const [ipv4, ipv6] = await planned(plan);
    const addresses = ['10.96.0.1', '10.96.0.2', '10.96.0.3', '198.51.100.7'];
    expect(linesOf(ipv4?.ip)).toEqual([
      ...addresses.map((ip) => `address replace ${ip}/32 dev kube-ipvs0`),
      'link add name kube-ipvs0 type dummy',
    ]);
    expect(ipv6?.ip).toContain(
      'link add name kube-ipvs0 type dummy\naddress replace fd00:96::1/128 dev kube-ipvs0\n',
    );
  });
});

describe('nftables mode', () => {
  const plan = plannerFor('nftables', SHOP);

  /** The lines between the braces of a set, a map or a chain, of IPv4. */
  async function partOf(head: string, ...flags: readonly string[]): Promise<string> {
    const lines = (await plan('--family=ipv4', ...flags)).out.split('\n').map((line) => line.trim());
    const start = lines.indexOf(`${head} {`);
    return lines.slice(start + 1, lines.indexOf('}', start)).join('\n');
  }

  test('a table for each family; as JSON beside the plan', async () => {
    const { out } = await plan();
    expect(out.match(/^[#a-z].*$/gm)).toEqual([
      '# IPv4, for: nft -f -',
      'add table ip junction',
      'delete table ip junction',
      'table ip junction {',
      '# IPv6, for: nft -f -',
      'add table ip6 junction',
      'delete table ip6 junction',
      'table ip6 junction {',
    ]);
    const families = await planned(plan);
    expect(families).toMatchObject([
      { family: 'IPv4', mode: 'nftables', servicePorts: { length: 4 } },
      { family: 'IPv6', mode: 'nftables', servicePorts: { length: 1 } },
    ]);
    expect(families.map(({ nft }) => nft.trimEnd())).toEqual(partsOf(out));
  });

  test('services are elements, with their names', async () => {
    expect((await partOf('map any-2')).replaceAll('\n', ' ')).toContain(
      'elements = { 10.96.0.1 . tcp . 80 . 0 comment "shop/web:http" : 10.244.0.1 . 8080,',
    );
    expect(await partOf('set refused')).toContain(
      'elements = { 10.96.0.3 . udp . 53 comment "shop/idle:dns" }',
    );
  });

  test('node ports answer at the primary address of the node, or everywhere where that is asked for', async () => {
    const primary = 'elements = { 192.0.2.7 }';
    expect(await partOf('set node-port-ips')).toContain(primary);
    expect(await partOf('set node-port-ips', '--nodeport-addresses=0.0.0.0/0')).not.toContain(primary);
    expect(await partOf('chain services', '--nodeport-addresses=0.0.0.0/0')).toContain(
      'fib daddr type local',
    );
  });

  test('the mark of this mode', async () => {
    const config = file(
      'config.yaml',
      'apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmode: nftables\niptables: { masqueradeBit: 3 }\nnftables: { masqueradeBit: 5 }\n',
    );
    const { out } = await junction('plan', '--config', config, '--manifests', SHOP, '--family=ipv4');
    expect(out).toContain('meta mark set meta mark | 0x00000020');
    expect(out).not.toContain('0x00000008');
  });

  test('what nft itself cannot write is a comment', async () => {
    const { out } = await plan();
    expect(out.match(/^\t\t# Junction writes this, nft cannot: .*$/gm)).toEqual([
      expect.stringMatching(/: update @affinity-tcp \{ ct original ip6 saddr /),
    ]);
    expect(await partOf('chain sticky-tcp-10800')).toMatch(
      /^tcp dport != 0 update @affinity-tcp \{ ct original ip saddr /,
    );
  });
});

// The API server lets a load balancer's status name any address; none of these may become the node's, in any mode.
describe('addresses that no load balancer may have', () => {
  const OWN = ['127.0.0.1', '127.8.8.8', '0.0.0.0', '169.254.169.254', '224.0.0.7', '255.255.255.255'];
  const OWN6 = ['::1', 'fe80::7', 'ff02::7'];
  const ingress = [...OWN, ...OWN6, '203.0.113.9', '2001:db8::9'].map((ip) => `{ ip: '${ip}' }`).join(', ');
  const balanced = file(
    'balanced.yaml',
    `
kind: Service
metadata: { name: web, namespace: shop }
spec: { type: LoadBalancer, clusterIP: 10.96.0.1, clusterIPs: [10.96.0.1, 'fd00:96::1'], ipFamilies: [IPv4, IPv6], ports: [{ port: 6443 }] }
status: { loadBalancer: { ingress: [${ingress}] } }
---
kind: EndpointSlice
metadata: { name: web-1, namespace: shop, labels: { kubernetes.io/service-name: web } }
addressType: IPv4
ports: [{ name: '', port: 8080 }]
endpoints: [{ addresses: [10.244.0.3] }]
`,
  );

  test.each(['iptables', 'ipvs', 'nftables'] as const)('%s mode', async (mode) => {
    const plan = plannerFor(mode, balanced);
    const ports = JSON.stringify((await planned(plan)).map(({ servicePorts }) => servicePorts));
    expect(ports).toContain('203.0.113.9');
    const { out, err } = await plan();
    const lines = out.split('\n').filter((line) => line.includes('6443'));
    expect(lines.join('\n')).toContain('203.0.113.9');
    for (const ip of [...OWN, ...OWN6]) {
      expect(ports).not.toContain(`"${ip}"`);
      expect(lines.filter((line) => line.includes(` ${ip}`))).toEqual([]);
      expect(err).toMatch(new RegExp(`ingress\\[\\d\\]\\.ip ${ip} is `));
    }
  });
});
