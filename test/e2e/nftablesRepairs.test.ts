/** What others do to our tables in the nftables mode: it is noticed at once, and mended where it differs. */
import { describe, expect, test } from 'vitest';
import type { Host } from '../../lab/host.ts';
import { useLab } from '../lab/requireLab.ts';
import { Daemon, eventually } from './daemon.ts';
import { fetchFrom } from './support/fetch.ts';
import { answeredDuring } from './support/load.ts';
import { ourTables } from './support/nftTable.ts';
import { answerers, expectAnswers } from './support/traffic.ts';
import { useInLab } from './support/use.ts';
import { manifests, type ServiceWords } from './cluster.ts';

const WEB = '10.96.1.1';
const SERVICES: readonly ServiceWords[] = [
  {
    name: 'web',
    ip: WEB,
    ip6: 'fd00:96::1',
    nodePort: 30_080,
    extra: `  externalTrafficPolicy: Local
  sessionAffinity: ClientIP
  loadBalancerSourceRanges: [192.0.2.0/24]
status: {loadBalancer: {ingress: [{ip: 203.0.113.5}]}}`,
    pods: 'ac',
  },
  { name: 'plain', ip: '10.96.1.3', pods: 'abc' },
  { name: 'idle', ip: '10.96.1.2', pods: '' },
];

/** With the words of the log: how many elements were written, in how many transactions. */
const TAMPERINGS: readonly (readonly [what: string, script: string, objects: number, commits: number])[] = [
  ['an element deleted', 'delete element ip junction service-ips { 10.96.1.3 }', 1, 1],
  [
    'an endpoint replaced',
    `delete element ip junction any-3 { 10.96.1.3 . tcp . 80 . 1 }
add element ip junction any-3 { 10.96.1.3 . tcp . 80 . 1 : 10.244.2.12 . 9 }`,
    2,
    1,
  ],
  ['a range added', 'add element ip junction allowed { 203.0.113.5 . tcp . 80 . 10.0.0.0/8 }', 1, 1],
  ['a set flushed', 'flush set ip junction hairpin', 2, 1],
  ['a rule of a base chain added', 'insert rule ip junction prerouting accept', 0, 1],
  ['a map deleted with its rule', 'flush chain ip junction any\ndelete map ip junction any-3', 3, 3],
  ['a base chain deleted', 'flush chain ip junction prerouting\ndelete chain ip junction prerouting', 0, 1],
  ['the table put to sleep', 'add table ip junction { flags dormant; }', 0, 1],
  [
    'a set of another kind in place of ours',
    `flush chain ip junction node-ports
delete set ip junction ports-dropped
add set ip junction ports-dropped { type inet_proto . inet_service; flags timeout; }`,
    0,
    1,
  ],
];

describe('others at our tables', () => {
  const lab = useLab();
  let whole = '';
  const daemon = useInLab(async () => {
    const flags = ['--proxy-mode=nftables', '--iptables-sync-period=1h', '--v=2'];
    const made = await Daemon.create(node(), ...flags);
    await made.write(manifests(SERVICES));
    await made.start();
    whole = await ourTables(node());
    return made;
  });
  const node = (): Host => lab().host('node1');
  const nft = (script: string): Promise<string> => node().run(['nft', '-f', '-'], { stdin: script });
  const fullSyncs = (): number => daemon().log.match(/fullSync=true/g)?.length ?? 0;
  const untilWhole = (what: string): Promise<void> =>
    eventually(what, async () => (await ourTables(node())) === whole);

  test.each(TAMPERINGS)('%s', async (what, script, objects, commits) => {
    const from = daemon().log.length;
    await nft(script);
    await untilWhole(`an end of: ${what}`);
    const repaired =
      /"Another program changed our rules; repaired" ipFamily="IPv4" changedBy="nft \(pid \d+\)" objects="/;
    await daemon().applied();
    const said = daemon().log.slice(from);
    expect(said).toMatch(repaired);
    const [, ...written] = /"Synced rules" ipFamily="IPv4" .*commits=(\d+) objects=(\d+)/.exec(said) ?? [];
    expect(written.map(Number)).toEqual([commits, objects]);
    expect(said).not.toContain('IPv6');
    expect(await answerers(lab().host('pod-b'), '10.96.1.3')).toBe('pod-a pod-b pod-c');
  });

  test.each([
    ['an element of another protocol', 'add element ip junction refused { 10.96.1.3 . icmp . 80 }'],
    [
      'a range that is no network',
      'add element ip junction allowed { 203.0.113.5 . tcp . 80 . 1.2.3.4-1.2.3.9 }',
    ],
    [
      'a rule with a chain of its own',
      'add chain ip junction own\nadd rule ip junction own ip saddr 1.2.3.4 jump { counter; drop; }',
    ],
  ])('%s: nothing that we have words for, and it goes', async (what, script) => {
    await nft(script);
    await untilWhole(`an end of: ${what}`);
    const from = daemon().log.length;
    await daemon().apply(manifests([...SERVICES, { name: 'more', ip: '10.96.1.9', pods: 'a' }]));
    expect(await answerers(lab().host('pod-b'), '10.96.1.9')).toBe('pod-a');
    await daemon().apply(manifests(SERVICES));
    expect(await ourTables(node())).toBe(whole);
    expect(daemon().log.slice(from)).not.toMatch(/fullSync=true|Sync failed/);
  });

  test.each(['delete table ip junction', 'delete table ip6 junction', 'flush ruleset'])(
    '%s, under load',
    async (script) => {
      const client = lab().host('pod-b');
      const session = await client.openSession(WEB, 80);
      const seen = await answeredDuring(client, '10.96.1.3', async () => {
        await nft(script);
        await untilWhole('both tables again');
      });
      expect(seen.filter((name) => !name.startsWith('pod-'))).toEqual([]);
      await expectAnswers(client, '10.96.1.3', 'pod-a pod-b pod-c');
      await expectAnswers(lab().host('client'), '203.0.113.5', 'pod-a');
      await expectAnswers(lab().host('client'), 'fd00:100::2', 'pod-a', 30_080);
      expect((await session.send()).outcome).toBe('answer');
      await session.close();
    },
  );

  test('the metric names who it was', async () => {
    const { body } = await fetchFrom(node(), 'http://127.0.0.1:10249/metrics');
    expect(body).toMatch(/^junction_foreign_changes_total\{.*ip_family="IPv4".*program="nft".*\} [1-9]/m);
    expect(body).toMatch(/^junction_foreign_changes_total\{.*ip_family="IPv6".*program="nft".*\} 2$/m);
    expect(body.match(/^junction_foreign_changes_total\{.*program="(?!nft")/gm)).toBeNull();
  });

  test('other tables are not our business, and our own changes are nobody else’s', async () => {
    const [before, from] = [fullSyncs(), daemon().log.length];
    const others = Array.from({ length: 20 }, (_, index) => `add element ip other numbers { ${index} }`);
    await nft(`add table ip other
add set ip other numbers { type inet_service; }
add table inet junction
add chain inet junction input { type filter hook input priority 0; }
add table ip junction-of-others`);
    await nft(others.join('\n'));
    for (let change = 0; change < 3; change++)
      await daemon().apply(manifests([...SERVICES, { name: 'more', ip: `10.96.2.${change}`, pods: 'b' }]));
    await nft('delete table ip other\ndelete table inet junction\ndelete table ip junction-of-others');
    await daemon().apply(manifests(SERVICES));
    expect(await ourTables(node())).toBe(whole);
    expect(fullSyncs()).toBe(before);
    expect(daemon().log.slice(from)).not.toContain('Another program changed');
  });
});
