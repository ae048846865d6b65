/** What `junction plan` prints, applied to a real kernel as its help says, and then again. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Argv } from '../../src/system/processes.ts';
import { type Namespace, openNamespace, requireNamespaces } from '../system/support/namespace.ts';
import { useFiles } from './files.ts';
import { type Planner, plannerFor, WEB_ENDPOINTS } from './plan.ts';

const file = useFiles();
const WEB = `
kind: Service
metadata: { name: web, namespace: shop }
spec:
  type: NodePort
  clusterIP: 10.96.0.1
  clusterIPs: [10.96.0.1, "fd00:96::1"]
  ipFamilies: [IPv4, IPv6]
  sessionAffinity: ClientIP
  ports: [{ name: http, port: 80, nodePort: 30080 }]
${WEB_ENDPOINTS}`;
const DNS = `---
kind: Service
metadata: { name: dns, namespace: shop }
spec: { clusterIP: 10.96.0.2, ports: [{ name: dns, port: 53, protocol: UDP }] }
`;
const SHOP = file('shop.yaml', WEB + DNS);
const OLDER = file('older.yaml', WEB.replace('30080', '30081').replaceAll('10.244.1.1', '10.244.1.9'));

let namespace: Namespace;
beforeEach(async (context) => {
  requireNamespaces(context);
  namespace = await openNamespace();
});
afterEach(() => namespace.close());

interface Ran {
  readonly code: number | null;
  readonly stderr: string;
}
const WELL: Ran = { code: 0, stderr: '' };

async function pipe(text: string, argv: Argv, env: Record<string, string> = {}): Promise<Ran> {
  const { code, stderr } = await namespace.runner(argv, { stdin: text, env });
  return { code, stderr };
}

async function text(planner: Planner, ...flags: readonly string[]): Promise<string> {
  const { code, out } = await planner(...flags);
  expect(code).toBe(0);
  return out;
}

describe.each(['nft', 'legacy'])('iptables mode, %s variant', (variant) => {
  const env = { IPTABLES: `iptables-${variant}`, IP6TABLES: `ip6tables-${variant}` };
  const programs = Object.values(env);

  /** What is saved, without the time and the counters. */
  async function saved(): Promise<string> {
    const texts: string[] = [];
    for (const program of programs)
      texts.push((await namespace.runner([`${program}-save`])).stdout.replaceAll(/^#.*\n|\[[\d:]*\]/gm, ''));
    return texts.join('');
  }

  async function addForeign(): Promise<void> {
    const foreign =
      '*filter\n:KUBE-FIREWALL - [0:0]\n-A INPUT -s 192.0.2.1 -j DROP\n-A KUBE-FIREWALL -s 192.0.2.2 -j DROP\nCOMMIT\n*nat\n-A PREROUTING -d 192.0.2.3 -j ACCEPT\nCOMMIT\n';
    expect(await pipe(foreign, [`iptables-${variant}-restore`, '--noflush'])).toEqual(WELL);
  }

  test('the text, by the command in its first line', async () => {
    await addForeign();
    for (const [family, program] of [
      ['ipv4', 'iptables'],
      ['ipv6', 'ip6tables'],
    ]) {
      const rules = await text(plannerFor('iptables', SHOP), `--family=${family}`);
      expect(rules.split('\n')[0]).toMatch(new RegExp(`for: ${program}-restore --noflush$`));
      const argv = [`${program}-${variant}-restore`, '--noflush'] as const;
      expect(await pipe(rules, argv)).toEqual(WELL);
      const first = await saved();
      expect(await pipe(rules, argv)).toEqual(WELL);
      expect(await saved()).toBe(first);
    }
    expect(await saved()).toContain('-A KUBE-FIREWALL -s 192.0.2.2/32 -j DROP');
  });

  test('the text of both families is for no single program, and none takes a part of it', async () => {
    const before = await saved();
    const rules = await text(plannerFor('iptables', SHOP));
    for (const program of programs) {
      const { code, stderr } = await pipe(rules, [`${program}-restore`, '--noflush']);
      expect(code).not.toBe(0);
      expect(stderr).toContain('line 1');
    }
    expect(await saved()).toBe(before);
  });
});

describe('nftables mode', () => {
  async function ruleset(): Promise<string> {
    return (await namespace.runner(['nft', 'list', 'ruleset'])).stdout;
  }

  test('the text, for both families, also over an older table', async () => {
    const argv = ['nft', '-f', '-'] as const;
    await pipe('add table ip other\nadd chain ip other mine\n', argv);
    expect(await pipe(await text(plannerFor('nftables', OLDER)), argv)).toEqual(WELL);
    expect(await ruleset()).toContain('10.244.1.9 . 8080');
    const rules = await text(plannerFor('nftables', SHOP));
    expect(await pipe(rules, argv)).toEqual(WELL);
    const first = await ruleset();
    expect(await pipe(rules, argv)).toEqual(WELL);
    expect(await ruleset()).toBe(first);
    expect(first).not.toContain('10.244.1.9 . 8080');
    expect(first.match(/^table .*$/gm)).toEqual([
      'table ip other {',
      'table ip junction-a {',
      'table ip6 junction-a {',
    ]);
    expect(first).toContain('comment "shop/web:http" : 10.244.1.1 . 8080');
  });
});
