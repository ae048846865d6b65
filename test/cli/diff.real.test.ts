/** `junction diff` against the rules of a real kernel: ours, damaged ones, and those that kube-proxy writes. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { DiffReport } from '../../src/diff/types.ts';
import type { Argv } from '../../src/system/processes.ts';
import { JUNCTION } from '../support/programs.ts';
import { type Namespace, openNamespace, requireNamespaces } from '../system/support/namespace.ts';
import { useFiles } from './files.ts';
import { plannerFor } from './plan.ts';

const file = useFiles();
const SHOP = file(
  'shop.yaml',
  `
kind: Service
metadata: { name: web, namespace: shop }
spec:
  type: LoadBalancer
  clusterIP: 10.96.0.1
  ports: [{ name: http, port: 80, nodePort: 30080 }]
  loadBalancerSourceRanges: [192.0.2.0/24]
status: { loadBalancer: { ingress: [{ ip: 203.0.113.1 }] } }
---
kind: Service
metadata: { name: dns, namespace: shop }
spec: { clusterIP: 10.96.0.2, ports: [{ name: dns, port: 53, protocol: UDP }] }
---
kind: EndpointSlice
apiVersion: discovery.k8s.io/v1
metadata: { name: web-1, namespace: shop, labels: { kubernetes.io/service-name: web } }
addressType: IPv4
ports: [{ name: http, port: 8080 }]
endpoints:
  - { addresses: [10.244.0.1], nodeName: node-a }
  - { addresses: [10.244.1.1], nodeName: node-b }
`,
);

let namespace: Namespace;
beforeEach(async (context) => {
  requireNamespaces(context);
  namespace = await openNamespace();
  await run('ip', 'link', 'set', 'lo', 'up');
  await run('ip', 'link', 'add', 'eth0', 'type', 'veth', 'peer', 'name', 'eth1');
  await run('ip', 'address', 'add', '192.168.0.1/24', 'dev', 'eth0');
  for (const link of ['eth0', 'eth1']) await run('ip', 'link', 'set', link, 'up');
});
afterEach(() => namespace.close());

async function run(...argv: Argv): Promise<void> {
  const { code, stderr } = await namespace.runner(argv);
  if (code !== 0) throw new Error(`${argv.join(' ')}: ${stderr}`);
}

interface Diffed {
  readonly code: number | null;
  readonly report: DiffReport;
}

async function diff(mode: string, ...flags: readonly string[]): Promise<Diffed> {
  const given = `--manifests ${SHOP} --proxy-mode ${mode} --hostname-override node-a --family ipv4`;
  const asked = [...given.split(' '), '--cluster-cidr', '10.244.0.0/16', '--output', 'json', ...flags];
  const argv = [process.execPath, JUNCTION, 'diff', ...asked] as const;
  const { code, stdout, stderr } = await namespace.runner(argv);
  if (stdout === '') throw new Error(stderr);
  return { code, report: JSON.parse(stdout) as DiffReport };
}

async function apply(mode: 'iptables' | 'nftables'): Promise<void> {
  const { out } = await plannerFor(mode, SHOP)('--family', 'ipv4', '--cluster-cidr', '10.244.0.0/16');
  // What a plan prints is of the machine that prints it: node ports answer on its addresses.
  await pipe(out, mode === 'iptables' ? ['iptables-restore', '--noflush'] : ['nft', '-f', '-']);
  // What a restore cannot say: chains and jumps beside other programs' rules.
  await pipe(out.replaceAll(/^(?!# {3}-t ).*\n/gm, '').replaceAll(/^#/gm, 'iptables'), ['sh', '-e']);
}

async function pipe(stdin: string, argv: Argv): Promise<void> {
  const { code, stderr } = await namespace.runner(argv, { stdin });
  if (code !== 0) throw new Error(stderr);
}

function texts({ report }: Diffed): string {
  return report.families
    .flatMap(({ shared, services }) => [...shared, ...services.flatMap(({ rules }) => rules)])
    .map(({ sign, object, text }) => `${sign} ${object}: ${text}`)
    .join('\n');
}

function meaningOf({ report }: Diffed, service: string): readonly (readonly string[])[] {
  const found = report.families.flatMap(({ services }) =>
    services.filter((each) => each.service === service),
  );
  return found.flatMap(({ meaning }) => meaning.map(({ packet, from, to }) => [packet, from, to]));
}

describe('iptables', () => {
  test('rules as planned are the same, and one that is deleted is named, with the packets that it concerns', async () => {
    await apply('iptables');
    const whole = await diff('iptables');
    expect(texts(whole)).toBe('');
    expect(whole.report.isSame).toBe(true);
    expect(whole.code).toBe(0);
    expect(whole.report.families[0]?.meaning).toMatchObject({
      different: 0,
      notEvaluated: 0,
      isSampled: false,
    });

    await run('iptables', '-t', 'nat', '-D', 'KUBE-SERVICES', '1');
    const damaged = await diff('iptables');
    expect(damaged.code).toBe(1);
    const [family] = damaged.report.families;
    expect(family?.rules).toMatchObject({ added: 1, removed: 0 });
    expect(texts(damaged)).toMatch(/^\+ chain nat KUBE-SERVICES: .*shop\/web:http/);
    expect(family?.services.map(({ service }) => service)).toEqual(['shop/web']);
    expect(meaningOf(damaged, 'shop/web').length).toBeGreaterThan(0);
    expect(meaningOf(damaged, 'shop/web')[0]?.[1]).toBe('no service answers');
  });

  test('what differs in text alone, in meaning alone, and a service that is not planned', async () => {
    await apply('iptables');
    await run('iptables', '-t', 'nat', '-A', 'KUBE-NODEPORTS', '-s', '192.0.2.77', '-j', 'RETURN');
    const text = await diff('iptables');
    expect(text.report.isSame).toBe(false);
    expect(text.report.families).toMatchObject([{ meaning: { different: 0 }, rules: { removed: 1 } }]);

    await run('iptables', '-t', 'nat', '-D', 'KUBE-NODEPORTS', '-s', '192.0.2.77', '-j', 'RETURN');
    await run('iptables', '-I', 'FORWARD', '-d', '10.244.1.1', '-j', 'DROP');
    const foreign = await diff('iptables');
    expect(foreign.code).toBe(1);
    expect(foreign.report.families).toMatchObject([{ rules: { added: 0, removed: 0, changed: 0 } }]);
    expect(JSON.stringify(meaningOf(foreign, 'shop/web'))).toContain("another program's rule");

    const chain = 'KUBE-SVC-AAAAAAAAAAAAAAAA';
    const comment = ['-m', 'comment', '--comment', 'shop/old:http cluster IP'];
    await run('iptables', '-t', 'nat', '-N', chain);
    await run('iptables', '-t', 'nat', '-A', 'KUBE-SERVICES', '-d', '10.96.0.9', ...comment, '-j', chain);
    const { report } = await diff('iptables');
    expect(report.families[0]?.services.map(({ service }) => service)).toContain('shop/old');
  });
});

/** The shape of the table that kube-proxy writes: a map of verdicts to a chain for each service and endpoint. */
const KUBE_PROXY = `
table ip kube-proxy {
  map service-ips {
    type ipv4_addr . inet_proto . inet_service : verdict
    elements = { 10.96.0.1 . tcp . 80 : goto service-web, 203.0.113.1 . tcp . 80 : goto external-web }
  }
  map no-endpoint-services {
    type ipv4_addr . inet_proto . inet_service : verdict
    elements = { 10.96.0.2 . udp . 53 : goto reject-chain }
  }
  map firewall-ips {
    type ipv4_addr . inet_proto . inet_service : verdict
    elements = { 203.0.113.1 . tcp . 80 : goto firewall-web }
  }
  map service-nodeports {
    type inet_proto . inet_service : verdict
    elements = { tcp . 30080 : goto external-web }
  }
  set cluster-ips {
    type ipv4_addr
    elements = { 10.96.0.1, 10.96.0.2 }
  }
  chain mark-for-masquerade { meta mark set meta mark | 0x00004000; }
  chain reject-chain { reject; }
  chain endpoint-1 {
    ip saddr 10.244.0.1 jump mark-for-masquerade
    meta l4proto tcp dnat to 10.244.0.1:8080
  }
  chain endpoint-2 {
    ip saddr 10.244.1.1 jump mark-for-masquerade
    meta l4proto tcp dnat to 10.244.1.1:8080
  }
  chain service-web {
    ip daddr 10.96.0.1 tcp dport 80 ip saddr != 10.244.0.0/16 jump mark-for-masquerade
    numgen random mod 2 vmap { 0 : goto endpoint-1, 1 : goto endpoint-2 }
  }
  chain external-web {
    jump mark-for-masquerade
    goto service-web
  }
  chain firewall-web {
    ip saddr != 192.0.2.0/24 drop
  }
  chain services {
    ip daddr . meta l4proto . th dport vmap @service-ips
    ip daddr 192.168.0.1 meta l4proto . th dport vmap @service-nodeports
  }
  chain cluster-ips-check {
    ip daddr @cluster-ips reject
  }
  chain filter-prerouting {
    type filter hook prerouting priority -110; policy accept;
    ct state new ip daddr . meta l4proto . th dport vmap @firewall-ips
  }
  chain filter-output {
    type filter hook output priority -110; policy accept;
    ct state new ip daddr . meta l4proto . th dport vmap @firewall-ips
  }
  chain filter-forward {
    type filter hook forward priority -110; policy accept;
    ct state new ip daddr . meta l4proto . th dport vmap @no-endpoint-services
    ct state new jump cluster-ips-check
  }
  chain filter-output-post-dnat {
    type filter hook output priority -90; policy accept;
    ct state new ip daddr . meta l4proto . th dport vmap @no-endpoint-services
    ct state new jump cluster-ips-check
  }
  chain nat-prerouting { type nat hook prerouting priority dstnat; policy accept; jump services; }
  chain nat-output { type nat hook output priority -100; policy accept; jump services; }
  chain nat-postrouting {
    type nat hook postrouting priority srcnat; policy accept;
    meta mark & 0x00004000 == 0x00000000 return
    meta mark set meta mark ^ 0x00004000
    masquerade fully-random
  }
}
`;

describe('nftables', () => {
  test('an element that is deleted is named, with the packets that it concerns', async () => {
    await apply('nftables');
    await run('nft', 'delete', 'element', 'ip', 'junction-a', 'service-ips', '{ 10.96.0.1 }');
    const damaged = await diff('nftables');
    expect(damaged.code).toBe(1);
    expect(texts(damaged)).toContain('+ element service-ips: 10.96.0.1');
    expect(meaningOf(damaged, 'shop/web').map(([packet]) => packet)).toContain(
      '198.51.100.1 → 10.96.0.1:80/TCP',
    );
  });

  test("beside kube-proxy's table: every rule is new, and what they mean is the same", async () => {
    const { code, stderr } = await namespace.runner(['nft', '-f', '-'], { stdin: KUBE_PROXY });
    expect([code, stderr]).toEqual([0, '']);
    const { report } = await diff('nftables', '--nodeport-addresses', '192.168.0.1/32');
    expect(report.notes.join('\n')).toContain("table ip kube-proxy is kube-proxy's");
    expect(report.families[0]?.rules.added).toBeGreaterThan(20);
    const elsewhere = report.families.flatMap(({ services }) => services.flatMap(({ meaning }) => meaning));
    expect(elsewhere).toEqual([]);
    expect(report.families[0]?.meaning.notEvaluated).toBe(0);
  });

  test('what kube-proxy does otherwise is found in its table', async () => {
    const other = KUBE_PROXY.replace('ip saddr != 192.0.2.0/24 drop', 'ip saddr != 198.18.0.0/15 drop');
    await namespace.runner(['nft', '-f', '-'], { stdin: other });
    const found = meaningOf(await diff('nftables', '--nodeport-addresses', '192.168.0.1/32'), 'shop/web');
    expect(found.map(([packet]) => packet)).toEqual(
      expect.arrayContaining(['192.0.2.0 → 203.0.113.1:80/TCP', '192.0.2.255 → 203.0.113.1:80/TCP']),
    );
    expect(found.find(([packet]) => packet?.startsWith('192.0.2.0 '))?.[1]).toContain(
      'dropped by ip kube-proxy firewall-web',
    );
  });
});
