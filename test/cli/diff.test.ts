/** `junction diff` of two plans. What it prints: golden/diff.txt; against a kernel: diff.real.test.ts. */
import { describe, expect, test } from 'vitest';
import type { DiffReport } from '../../src/diff/types.ts';
import { useFiles } from './files.ts';
import { junction, type Run } from './junction.ts';

const file = useFiles();

const BASE = `
apiVersion: v1
kind: Node
metadata: { name: node-a }
status: { addresses: [{ type: InternalIP, address: 192.168.0.1 }] }
---
apiVersion: v1
kind: Service
metadata: { name: web, namespace: shop }
spec:
  type: LoadBalancer
  clusterIP: 10.96.0.1
  ports: [{ name: http, port: 80, nodePort: 30080 }]
  loadBalancerSourceRanges: [192.0.2.0/24]
status: { loadBalancer: { ingress: [{ ip: 203.0.113.1 }] } }
---
apiVersion: v1
kind: Service
metadata: { name: api, namespace: shop }
spec: { clusterIP: 10.96.0.2, ports: [{ port: 80 }] }
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: web-1, namespace: shop, labels: { kubernetes.io/service-name: web } }
addressType: IPv4
ports: [{ name: http, port: 8080 }]
endpoints:
  - { addresses: [10.244.0.1], nodeName: node-a }
  - { addresses: [10.244.1.1], nodeName: node-b }
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: api-1, namespace: shop, labels: { kubernetes.io/service-name: api } }
addressType: IPv4
ports: [{ name: '', port: 8080 }]
endpoints: [{ addresses: [10.244.1.1], nodeName: node-b }]
`;

const base = file('base.yaml', BASE);
const MODES = [
  [
    'iptables',
    '+ chain nat KUBE-SEP-UGQTAJUJOQJVZIEC: -m comment --comment shop/web:http -s 10.244.1.7 -j KUBE-MARK-MASQ',
  ],
  ['ipvs', '+ virtual server -t 10.96.0.1:80: -a -t 10.96.0.1:80 -r 10.244.1.7:8080 -m -w 1'],
  ['nftables', '+ map any-2: 10.96.0.1 . tcp . 80 . 1 comment "shop/web:http" : 10.244.1.7 . 8080'],
] as const;

async function diff(mode: string, ...args: readonly string[]): Promise<Run> {
  const node = ['--hostname-override', 'node-a', '--cluster-cidr', '10.244.0.0/16', '--family', 'ipv4'];
  return junction('diff', '--manifests', base, ...node, '--proxy-mode', mode, ...args);
}

async function report(mode: string, ...args: readonly string[]): Promise<DiffReport> {
  return JSON.parse((await diff(mode, ...args, '-o', 'json')).out) as DiffReport;
}

describe.each(MODES)('two plans, %s', (mode, rule) => {
  test('that are the same', async () => {
    const { code, out } = await diff(mode, '--to-manifests', file('same.yaml', BASE));
    expect(out).toContain('no difference');
    expect(code).toBe(0);
  });

  test('an endpoint more, and a service less: their rules, and where packets go', async () => {
    const more = BASE.replace(
      '{ addresses: [10.244.1.1], nodeName: node-b }\n---',
      '{ addresses: [10.244.1.7], nodeName: node-b }\n---',
    );
    const path = file(`more-${mode}.yaml`, more);
    const { code, out } = await diff(mode, '--to-manifests', path);
    expect(code).toBe(1);
    expect(out).toContain('shop/web:http/TCP: endpoint 10.244.1.7:8080 added to cluster');
    expect(out).toContain(`  ${rule}\n`);
    expect(out).toContain('- plan: forwarded to 10.244.0.1:8080 or 10.244.1.1:8080');
    expect(out).toContain('+ plan: forwarded to 10.244.0.1:8080 or 10.244.1.7:8080');
    const [family] = (await report(mode, '--to-manifests', path)).families;
    expect(family?.services.map(({ service }) => service)).toEqual(['shop/web']);
    expect(family?.rules.added).toBeGreaterThan(0);
    expect(family?.rules.removed).toBe(family?.rules.added);
    expect(family?.shared).toEqual([]);

    const kept = BASE.split('---').filter((text) => !/name: api/.test(text));
    const less = await diff(mode, '--to-manifests', file(`kept-${mode}.yaml`, kept.join('---')));
    expect(less.out).toContain('shop/api/TCP: removed');
    expect(less.out).toContain('+ plan: no service answers');
    expect(less.out).not.toContain('shop/web\n');
  });

  test('a source range: what is inside and outside of both', async () => {
    const path = file(`ranges-${mode}.yaml`, BASE.replace('192.0.2.0/24', '198.18.0.0/15'));
    const { families } = await report(mode, '--to-manifests', path);
    const meaning = families[0]?.services[0]?.meaning ?? [];
    const found = new Map(meaning.map(({ packet, from, to }) => [packet.split(' ')[0], `${from}; ${to}`]));
    for (const source of ['192.0.2.0', '192.0.2.255'])
      expect(found.get(source)).toMatch(/^forwarded.*; dropped/);
    for (const source of ['198.18.0.0', '198.19.255.255'])
      expect(found.get(source)).toMatch(/^dropped.*; forwarded/);
    expect(found.has('192.0.3.0')).toBe(false);
  });
});

describe('another configuration', () => {
  const configuration = (mode: string, fields: object): string =>
    file(
      `${mode}.conf`,
      JSON.stringify({
        apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
        kind: 'KubeProxyConfiguration',
        mode,
        ...fields,
      }),
    );

  test('rules that are for all services', async () => {
    const config = configuration('iptables', {
      clusterCIDR: '10.244.0.0/16',
      iptables: { masqueradeBit: 12 },
    });
    const { code, out } = await diff('iptables', '--to-config', config);
    expect(code).toBe(1);
    expect(out).toContain('- chain nat KUBE-MARK-MASQ: -j MARK --or-mark 0x00004000');
    expect(out).toContain('+ chain nat KUBE-MARK-MASQ: -j MARK --or-mark 0x00001000');
    expect(out).toContain('same meaning for');
  });

  test('another range of pods changes what is masqueraded', async () => {
    const config = configuration('nftables', { clusterCIDR: '10.0.0.0/24' });
    const { code, out } = await diff('nftables', '--to-config', config);
    expect(code).toBe(1);
    expect(out).toMatch(/- plan: forwarded to \S+\n.*\+ plan: forwarded to \S+, masqueraded/);
  });

  test('another mode: the meaning is compared, rules are not', async () => {
    const { families, to } = await report('iptables', '--to-proxy-mode', 'nftables');
    expect([to.mode, families[0]?.rules.isCompared]).toEqual(['nftables', false]);
    const texts = families[0]?.services.flatMap(({ meaning }) => meaning.map((each) => each.to));
    // As documented: a cluster IP refuses ports that its service does not have.
    expect(texts?.join('\n')).toContain('a cluster IP refuses ports that its service does not have');
  });
});

test.each([
  [['--to-proxy-mode', 'ebpf'], '--to-proxy-mode'],
  [['--to-config', '/nonexistent.conf'], 'nonexistent'],
  [['--bundle', 'x'], '--manifests and --bundle'],
])('%j is a mistake', async (args, message) => {
  expect(await diff('iptables', ...args)).toMatchObject({ code: 2, err: expect.stringContaining(message) });
});
