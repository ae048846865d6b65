import { describe, expect, test } from 'vitest';
import type { Host } from '../../src/lab/host.ts';
import { useLab } from '../lab/requireLab.ts';
import { Daemon, eventually } from './daemon.ts';
import { ourRules } from './support/rules.ts';
import { useInLab } from './support/use.ts';
import { manifests } from './world.ts';

/** One service with a chain of every kind. */
const WORLD = manifests([
  {
    name: 'web',
    ip: '10.96.1.1',
    nodePort: 30080,
    extra: `  externalTrafficPolicy: Local
  loadBalancerSourceRanges: [192.0.2.0/24]
status: {loadBalancer: {ingress: [{ip: 203.0.113.5}]}}`,
    pods: 'ac',
  },
  { name: 'idle', ip: '10.96.1.2', pods: '' },
]);

/** Rules are read back in a hundredth of the time at most, so a machine that is slow at it is slow to notice. */
const PATIENCE_MS = 150_000;

describe.each(['nft', 'legacy'])('chains deleted by hand, iptables-%s', (variant) => {
  const lab = useLab();
  let whole = '';
  useInLab(async () => {
    const daemon = await Daemon.create(node(), `--iptables-variant=${variant}`);
    await daemon.write(WORLD);
    await daemon.start();
    whole = await rules();
    return daemon;
  });
  const node = (): Host => lab().host('node1');
  const rules = (): Promise<string> => ourRules(node(), `iptables-${variant}-save`);

  /** Takes out a chain and every rule that jumps to it, as one person with a shell would. */
  async function deleteChain(table: string, chain: string): Promise<void> {
    const text = await node().run([`iptables-${variant}-save`, '-t', table]);
    const jumps = text.split('\n').filter((line) => line.startsWith('-A') && line.endsWith(`-j ${chain}`));
    const input = [
      `*${table}`,
      ...jumps.map((line) => line.replace('-A', '-D')),
      `-F ${chain}`,
      `-X ${chain}`,
      'COMMIT',
      '',
    ];
    await node().run([`iptables-${variant}-restore`, '--noflush'], { stdin: input.join('\n') });
  }

  function chains(): readonly (readonly [table: string, chain: string])[] {
    const kinds = [
      ['filter', /KUBE-SERVICES/],
      ['filter', /KUBE-EXTERNAL-SERVICES/],
      ['filter', /KUBE-PROXY-FIREWALL/],
      ['filter', /KUBE-FORWARD/],
      ['nat', /KUBE-SERVICES/],
      ['nat', /KUBE-NODEPORTS/],
      ['nat', /KUBE-MARK-MASQ/],
      ['nat', /KUBE-POSTROUTING/],
      ['nat', /KUBE-SVC-\w+/],
      ['nat', /KUBE-SVL-\w+/],
      ['nat', /KUBE-EXT-\w+/],
      ['nat', /KUBE-FW-\w+/],
      ['nat', /KUBE-SEP-\w+/],
    ] as const;
    return kinds.map(([table, pattern]) => [table, pattern.exec(whole)?.[0] ?? '']);
  }

  test('one by one: each comes back', async () => {
    for (const [table, chain] of chains()) {
      await deleteChain(table, chain);
      expect(await rules(), `${table} ${chain} is gone`).not.toBe(whole);
      await eventually(`${table} ${chain} again`, async () => (await rules()) === whole, PATIENCE_MS);
    }
  }, 600_000);

  test('all at once: everything comes back', async () => {
    for (const table of ['nat', 'filter', 'mangle']) {
      await node().run([`iptables-${variant}`, '-t', table, '-F']);
      await node().run([`iptables-${variant}`, '-t', table, '-X']);
    }
    await eventually('everything again', async () => (await rules()) === whole, PATIENCE_MS);
    const outcome = await lab().host('client').request('tcp', '203.0.113.5', 80);
    expect(outcome).toMatchObject({ outcome: 'answer', reply: { host: 'pod-a' } });
  }, 600_000);
});
