import { describe, expect, test } from 'vitest';
import type { Host } from '../../lab/host.ts';
import { useLab } from '../lab/requireLab.ts';
import { Daemon, eventually } from './daemon.ts';
import { fetchFrom } from './support/fetch.ts';
import { flushAll, ourRules } from './support/rules.ts';
import { useInLab } from './support/use.ts';
import { manifests } from './cluster.ts';

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

/** The kernel notifies of changes in the nft variant. In the legacy variant a canary shows a flush, once in each period. */
const SYNC_PERIODS = { nft: '1h', legacy: '500ms' };

describe.each(['nft', 'legacy'] as const)('rules changed by other programs, iptables-%s', (variant) => {
  const lab = useLab();
  let whole = '';
  const daemon = useInLab(async () => {
    const flags = [
      `--iptables-variant=${variant}`,
      `--iptables-sync-period=${SYNC_PERIODS[variant]}`,
      '--v=2',
    ];
    const made = await Daemon.create(node(), ...flags);
    await made.write(WORLD);
    await made.start();
    whole = await rules();
    return made;
  });
  const node = (): Host => lab().host('node1');
  const rules = (): Promise<string> => ourRules(node(), `iptables-${variant}-save`);

  const said = (from: number): string => daemon().log.slice(from);
  async function expectWhole(what: string): Promise<void> {
    await eventually(what, async () => (await rules()) === whole);
    expect(await rules()).toBe(whole);
  }
  const iptables = (...args: readonly string[]): Promise<string> =>
    node().run([`iptables-${variant}`, '-w', '60', ...args]);
  /** The line that every repair has, with the program where the kernel tells it. */
  const repairedLine = (program: string, objects: string): RegExp => {
    const changedBy = variant === 'nft' ? `${program} \\(pid \\d+\\)` : 'unknown';
    return new RegExp(
      `"Another program changed our rules; repaired" ipFamily="IPv4" changedBy="${changedBy}" objects="${objects}`,
    );
  };

  // In the legacy variant these wait for the full sync of each hour.
  describe.each(variant === 'nft' ? [variant] : [])('notified by the kernel, %s', () => {
    test('one jump deleted: it comes back, and nothing else is written', async () => {
      const from = daemon().log.length;
      const jump = /^-A (PREROUTING .* -j KUBE-SERVICES)$/m.exec(whole)?.[1];
      if (jump === undefined) throw new Error('no jump');
      await node().run([`iptables-${variant}-restore`, '--noflush'], { stdin: `*nat\n-D ${jump}\nCOMMIT\n` });
      await expectWhole('the jump again');
      await daemon().applied();
      expect(said(from)).toMatch(repairedLine('iptables-nft-re', 'chain nat PREROUTING'));
      expect(said(from)).toMatch(/"Synced rules" ipFamily="IPv4" .* commits=1 objects=1 chains=0/);
      expect(said(from)).not.toContain('fullSync=true');
    });

    test('rules of others in the same tables: nothing is looked at', async () => {
      const from = daemon().log.length;
      await iptables('-t', 'nat', '-N', 'CNI-HOSTPORT');
      await iptables('-t', 'nat', '-I', 'PREROUTING', '-j', 'CNI-HOSTPORT');
      await iptables('-t', 'nat', '-D', 'PREROUTING', '-j', 'CNI-HOSTPORT');
      await iptables('-t', 'nat', '-X', 'CNI-HOSTPORT');
      await iptables('-t', 'nat', '-F', 'KUBE-MARK-MASQ');
      await expectWhole('our own chain again');
      await daemon().applied();
      expect(said(from).match(/Syncing iptables rules/g)).toHaveLength(1);
    });

    test('a foreign rule in one of our chains goes', async () => {
      const from = daemon().log.length;
      await iptables('-t', 'nat', '-I', 'KUBE-SERVICES', '-s', '192.0.2.77', '-j', 'RETURN');
      await expectWhole('our chain without it');
      await daemon().applied();
      expect(said(from)).toMatch(repairedLine('iptables-nft', 'chain nat KUBE-SERVICES'));
    });

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
        ['filter', /KUBE-PROXY-FIREWALL/],
        ['nat', /KUBE-SERVICES/],
        ['nat', /KUBE-POSTROUTING/],
        ['nat', /KUBE-SVC-\w+/],
        ['nat', /KUBE-SEP-\w+/],
      ] as const;
      return kinds.map(([table, pattern]) => [table, pattern.exec(whole)?.[0] ?? '']);
    }

    test('one by one: each comes back', async () => {
      for (const [table, chain] of chains()) {
        const from = daemon().log.length;
        await deleteChain(table, chain);
        await eventually(`${table} ${chain} missed`, () => said(from).includes('; repaired'));
        await expectWhole(`${table} ${chain} again`);
      }
    }, 600_000);
  });

  test('all at once: everything comes back', async () => {
    await flushAll(node(), `-${variant}`);
    await expectWhole('everything again');
    const outcome = await lab().host('client').request('tcp', '203.0.113.5', 80);
    expect(outcome).toMatchObject({ outcome: 'answer', reply: { host: 'pod-a' } });
  }, 600_000);

  test('the metric names the program where the kernel tells it', async () => {
    const { body } = await fetchFrom(node(), 'http://127.0.0.1:10249/metrics');
    const program = variant === 'nft' ? 'iptables-nft' : 'unknown';
    expect(body).toMatch(
      new RegExp(
        `^junction_foreign_changes_total\\{.*ip_family="IPv4".*program="${program}".*\\} [1-9]`,
        'm',
      ),
    );
  });

  test('nft flush ruleset: in the nft variant everything comes back, in both families', async () => {
    const from = daemon().log.length;
    await node().run(['nft', 'flush', 'ruleset']);
    await expectWhole('everything again');
    if (variant === 'legacy') return; // it has nothing in nf_tables to be flushed
    await daemon().applied();
    for (const family of ['IPv4', 'IPv6'])
      expect(said(from)).toMatch(
        new RegExp(`; repaired" ipFamily="${family}" changedBy="nft \\(pid \\d+\\)" objects="table`),
      );
  });
});
