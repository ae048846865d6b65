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

  test.each(['current', 'classic'])(
    'the script, in the layout %s, beside rules of others',
    async (layout) => {
      await addForeign();
      const script = await text(plannerFor('iptables', SHOP), '-o', 'script', `--iptables-layout=${layout}`);
      expect(await pipe(script, ['sh'], env)).toEqual(WELL);
      const first = await saved();
      expect(await pipe(script, ['sh'], env)).toEqual(WELL);
      expect(await saved()).toBe(first);
      for (const rule of [
        '-A INPUT -s 192.0.2.1/32 -j DROP',
        '-A KUBE-FIREWALL -s 192.0.2.2/32 -j DROP',
        '-A PREROUTING -d 192.0.2.3/32 -j ACCEPT',
      ])
        expect(first.split('\n').filter((line) => line === rule)).toHaveLength(1);
      expect(first.match(/^-A PREROUTING .*-j KUBE-SERVICES$/gm)).toHaveLength(2);
      expect(first).toContain('--to-destination 10.244.1.1:8080');
      expect(first).toContain('--to-destination [fd00:244::1]:8080');
    },
  );

  test('the script, where a jump is missing: all in their order again', async () => {
    const script = await text(plannerFor('iptables', SHOP), '-o', 'script', '--family=ipv4');
    await pipe(script, ['sh'], env);
    const first = await saved();
    await namespace.runner([`iptables-${variant}`, '-D', 'FORWARD', '2']);
    expect(await saved()).not.toBe(first);
    expect(await pipe(script, ['sh'], env)).toEqual(WELL);
    expect(await saved()).toBe(first);
  });

  test('the script, over the rules of an older plan', async () => {
    await pipe(await text(plannerFor('iptables', OLDER), '-o', 'script', '--family=ipv4'), ['sh'], env);
    expect(await saved()).toContain('--dport 30081 ');
    const script = await text(plannerFor('iptables', SHOP), '-o', 'script', '--family=ipv4');
    expect(await pipe(script, ['sh'], env)).toEqual(WELL);
    expect(await saved()).not.toContain('--dport 30081 ');
  });

  test('a script that is cut off does nothing', async () => {
    const script = await text(plannerFor('iptables', SHOP), '-o', 'script', '--family=ipv4');
    const before = await saved();
    for (const part of [0.5, 0.9, 0.99])
      await pipe(script.slice(0, Math.floor(script.length * part)), ['sh'], env);
    expect(await saved()).toBe(before);
  });

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

  test.each([
    ['the text', [], ['nft', '-f', '-']],
    ['the script', ['-o', 'script'], ['sh']],
  ] as const)('%s, for both families, also over an older table', async (_, flags, argv) => {
    await pipe('add table ip other\nadd chain ip other mine\n', ['nft', '-f', '-']);
    expect(await pipe(await text(plannerFor('nftables', OLDER), ...flags), argv)).toEqual(WELL);
    expect(await ruleset()).toContain('10.244.1.9 . 8080');
    const rules = await text(plannerFor('nftables', SHOP), ...flags);
    expect(await pipe(rules, argv)).toEqual(WELL);
    const first = await ruleset();
    expect(await pipe(rules, argv)).toEqual(WELL);
    expect(await ruleset()).toBe(first);
    expect(first).not.toContain('10.244.1.9 . 8080');
    expect(first.match(/^table .*$/gm)).toEqual([
      'table ip other {',
      'table ip junction {',
      'table ip6 junction {',
    ]);
    expect(first).toContain('comment "shop/web:http" : 10.244.1.1 . 8080');
  });
});
