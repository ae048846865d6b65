/** The API server lets a load balancer's status name any address; none of these may become the node's, in any mode. */
import { expect, test } from 'vitest';
import { useFiles } from './files.ts';
import { junction } from './junction.ts';

const manifest = useFiles();
const OWN = [
  '127.0.0.1',
  '127.8.8.8',
  '0.0.0.0',
  '169.254.169.254',
  '224.0.0.7',
  '255.255.255.255',
  '::1',
  'fe80::7',
  'ff02::7',
];
const SHOP = manifest(
  'shop.yaml',
  `
kind: Service
metadata: { name: web, namespace: shop }
spec: { type: LoadBalancer, clusterIP: 10.96.0.1, clusterIPs: [10.96.0.1, 'fd00:96::1'], ipFamilies: [IPv4, IPv6], ports: [{ port: 6443 }] }
status: { loadBalancer: { ingress: [${[...OWN, '203.0.113.9', '2001:db8::9'].map((ip) => `{ ip: '${ip}' }`).join(', ')}] } }
---
kind: EndpointSlice
metadata: { name: web-1, namespace: shop, labels: { kubernetes.io/service-name: web } }
addressType: IPv4
ports: [{ name: '', port: 8080 }]
endpoints: [{ addresses: [10.244.0.3] }]
`,
);

test.each(['iptables', 'ipvs', 'nftables'])('mode %s', async (mode) => {
  const { out, err } = await junction('plan', '--manifests', SHOP, `--proxy-mode=${mode}`, '--output=json');
  const plan = JSON.parse(out) as {
    readonly families: readonly { readonly servicePorts: readonly object[] }[];
  };
  const ports = JSON.stringify(plan.families.map(({ servicePorts }) => servicePorts));
  expect(ports).toContain('203.0.113.9');
  for (const ip of OWN) expect(ports).not.toContain(`"${ip}"`);
  const { out: text } = await junction('plan', '--manifests', SHOP, `--proxy-mode=${mode}`);
  const lines = text.split('\n').filter((line) => line.includes('6443'));
  expect(lines.filter((line) => line.includes('203.0.113.9'))).not.toEqual([]);
  for (const ip of OWN) expect(lines.filter((line) => line.includes(` ${ip}`))).toEqual([]);
  expect(err.split('\n').filter((line) => line.includes('status.loadBalancer.ingress'))).toHaveLength(
    OWN.length,
  );
});
