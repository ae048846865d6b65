/** `junction plan --proxy-mode nftables`: the whole table, as nft takes it. */
import { describe, expect, test } from 'vitest';
import { useFiles } from './files.ts';
import { junction } from './junction.ts';
import { plannerFor, WEB_ENDPOINTS } from './plan.ts';

const file = useFiles();
const SHOP = file(
  'shop.yaml',
  `
apiVersion: v1
kind: Node
metadata: { name: node-a }
status: { addresses: [{ type: InternalIP, address: 192.0.2.7 }, { type: InternalIP, address: "2001:db8::7" }] }
---
apiVersion: v1
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
apiVersion: v1
kind: Service
metadata: { name: dns, namespace: shop }
spec:
  clusterIP: 10.96.0.2
  ports: [{ name: dns, port: 53, protocol: UDP }]
${WEB_ENDPOINTS}`,
);
const plan = plannerFor('nftables', SHOP);

interface PlannedFamily {
  readonly family: string;
  readonly mode: string;
  readonly layout?: string;
  readonly restore?: string;
  readonly servicePorts: readonly unknown[];
  readonly nft: string;
}

async function tableOf(...flags: readonly string[]): Promise<string> {
  const { code, out } = await plan('--family=ipv4', ...flags);
  expect(code).toBe(0);
  return out;
}

/** The lines between the braces of a set, a map or a chain. */
function partOf(table: string, head: string): readonly string[] {
  const lines = table.split('\n').map((line) => line.trim());
  const start = lines.indexOf(`${head} {`);
  return lines.slice(start + 1, lines.indexOf('}', start));
}

describe('junction plan in the nftables mode', () => {
  test('prints a table for each family', async () => {
    const { code, out } = await plan();
    expect(code).toBe(0);
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
  });

  test('services are elements, with their names', async () => {
    const table = await tableOf();
    expect(partOf(table, 'map any-2').join(' ')).toContain(
      'elements = { 10.96.0.1 . tcp . 80 . 0 comment "shop/web:http" : 10.244.0.1 . 8080,',
    );
    expect(partOf(table, 'set refused')).toContain(
      'elements = { 10.96.0.2 . udp . 53 comment "shop/dns:dns" }',
    );
  });

  test('node ports answer at the primary address of the node, as this mode has it', async () => {
    expect(partOf(await tableOf(), 'set node-port-ips')).toContain('elements = { 192.0.2.7 }');
  });

  test('and everywhere where that is asked for', async () => {
    const table = await tableOf('--nodeport-addresses=0.0.0.0/0');
    expect(partOf(table, 'set node-port-ips')).not.toContain('elements = { 192.0.2.7 }');
    expect(partOf(table, 'chain services').join('\n')).toContain('fib daddr type local');
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
    const table = (await plan('--family=ipv6')).out;
    const [rule, ...others] = partOf(table, 'chain sticky-tcp-10800');
    expect(rule).toMatch(
      /^# Junction writes this, nft cannot: update @affinity-tcp \{ ct original ip6 saddr /,
    );
    expect(others).toEqual([]);
    expect(partOf(await tableOf(), 'chain sticky-tcp-10800')[0]).toMatch(
      /^tcp dport != 0 update @affinity-tcp \{ ct original ip saddr /,
    );
  });

  test('as JSON, beside the plan', async () => {
    const { out } = await plan('--output=json');
    const { families } = JSON.parse(out) as { readonly families: readonly PlannedFamily[] };
    expect(
      families.map(({ family, mode, layout, restore, servicePorts }) => ({
        family,
        mode,
        layout,
        restore,
        servicePorts: servicePorts.length,
      })),
    ).toEqual([
      { family: 'IPv4', mode: 'nftables', layout: undefined, restore: undefined, servicePorts: 2 },
      { family: 'IPv6', mode: 'nftables', layout: undefined, restore: undefined, servicePorts: 1 },
    ]);
    const text = (await plan()).out.split(/^# .*\n/m).slice(1);
    expect(families.map(({ nft }) => nft.trimEnd())).toEqual(text.map((part) => part.trimEnd()));
  });

  test('as a table, like in every mode', async () => {
    const table = ['--output=table', '--family=ipv4'];
    const withoutHead = ({ out }: { readonly out: string }): string => out.slice(out.indexOf('\n'));
    const inIptables = withoutHead(await plan(...table, '--proxy-mode=iptables'));
    expect(withoutHead(await plan(...table))).toBe(inIptables);
  });
});
