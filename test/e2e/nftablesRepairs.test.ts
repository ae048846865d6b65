/** What others do to our tables in the nftables mode: it is noticed at once, and mended where it differs. */
import { describe, expect, test } from 'vitest';
import type { Host } from '../../lab/host.ts';
import { useLab } from '../lab/requireLab.ts';
import { Daemon, eventually } from './daemon.ts';
import { fetchFrom } from './support/fetch.ts';
import { PROGRAM } from './support/program.ts';
import { answeredDuring } from './support/load.ts';
import { named, ourTables } from './support/nftTable.ts';
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

const TAMPERINGS: readonly (readonly [what: string, script: string])[] = [
  ['an element deleted', 'delete element ip junction service-ips { 10.96.1.3 }'],
  ['a range added', 'add element ip junction allowed { 203.0.113.5 . tcp . 80 . 10.0.0.0/8 }'],
  [
    'a set of another kind in place of ours',
    `flush chain ip junction node-ports
delete set ip junction ports-dropped
add set ip junction ports-dropped { type inet_proto . inet_service; flags timeout; }`,
  ],
  ['a base chain deleted', 'flush chain ip junction prerouting\ndelete chain ip junction prerouting'],
];

describe('others at a table that they can change', () => {
  const lab = useLab();
  let whole = '';
  const daemon = useInLab(async () => {
    const flags = [
      '--proxy-mode=nftables',
      '--nftables-protection=backstop',
      '--iptables-sync-period=1h',
      '--v=2',
    ];
    const made = await Daemon.create(node(), ...flags);
    await made.write(manifests(SERVICES));
    await made.start();
    whole = await ourTables(node());
    return made;
  });
  const node = (): Host => lab().host('node1');
  const nft = async (script: string): Promise<string> =>
    node().run(['nft', '-f', '-'], { stdin: await named(node(), script) });
  const fullSyncs = (): number => daemon().log.match(/fullSync=true/g)?.length ?? 0;
  const untilWhole = (what: string): Promise<void> =>
    eventually(what, async () => (await ourTables(node())) === whole);

  // At first: each rebuild waits longer than the one before.
  test.each(['flush ruleset', 'delete table ip6 junction'])('%s, under load', async (script) => {
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
  });

  test.each(TAMPERINGS)('%s: the table is built again, at most so often', async (what, script) => {
    const from = daemon().log.length;
    await nft(script);
    await untilWhole(`an end of: ${what}`);
    await daemon().applied();
    const said = daemon().log.slice(from);
    expect(said).toMatch(
      /"Another program changed our rules; repaired" ipFamily="IPv4" changedBy="nft \(pid \d+\)" objects="/,
    );
    expect(said).not.toContain('repaired" ipFamily="IPv6"');
    expect(await answerers(lab().host('pod-b'), '10.96.1.3')).toBe('pod-a pod-b pod-c');
  });

  test('the log says that it is rebuilt less often', () => {
    expect(daemon().log).toMatch(
      /"Other programs keep changing our table; it is rebuilt less often" .*rebuildAfter="\d+s"/,
    );
  });

  test('the metric names who it was', async () => {
    const { body } = await fetchFrom(node(), 'http://127.0.0.1:10249/metrics');
    expect(body).toMatch(/^junction_foreign_changes_total\{.*ip_family="IPv4".*program="nft".*\} [1-9]/m);
    expect(body).toMatch(/^junction_foreign_changes_total\{.*ip_family="IPv6".*program="nft".*\} [1-9]/m);
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

describe('others at a table that the kernel protects', () => {
  const lab = useLab();
  const node = (): Host => lab().host('node1');
  const daemon = useInLab(async () => {
    const made = await Daemon.create(node(), '--proxy-mode=nftables');
    await made.write(manifests(SERVICES));
    await made.start();
    return made;
  });
  const nft = async (script: string) =>
    node().exec(['nft', '-f', '-'], { stdin: await named(node(), script) });

  test('nothing that they try changes anything', async () => {
    const whole = await ourTables(node());
    expect(whole).toContain('10.96.1.3');
    expect(await nft('flush ruleset')).toMatchObject({ exitCode: 0 });
    for (const script of [
      'delete table ip junction',
      'add rule ip junction services drop',
      'delete element ip junction service-ips { 10.96.1.3 }',
      'flush chain ip6 junction prerouting',
    ])
      expect(await nft(script)).toMatchObject({
        exitCode: 1,
        stderr: expect.stringContaining('Operation not permitted'),
      });
    expect(await ourTables(node())).toBe(whole);
    expect(daemon().log).not.toContain('Another program changed');
  });

  test('a clean-up beside it removes nothing, and says why', async () => {
    const whole = await ourTables(node());
    const cleanup = ['cleanup', '--mode=nftables', '--force'];
    const { exitCode, stdout } = await node().exec([PROGRAM, ...cleanup]);
    expect([exitCode, stdout]).toEqual([1, expect.stringContaining('A Junction is running here')]);
    expect(await ourTables(node())).toBe(whole);
  });

  test('it outlives the process, and the next one takes its place without a gap', async () => {
    const whole = await ourTables(node());
    const session = await lab().host('pod-b').openSession(WEB, 80);
    const seen = await answeredDuring(lab().host('pod-b'), '10.96.1.3', async () => {
      for (let times = 0; times < 3; times++) {
        await daemon().end('SIGKILL');
        expect(await ourTables(node())).toBe(whole);
        await daemon().start();
        await daemon().applied();
      }
    });
    expect(seen.filter((name) => !name.startsWith('pod-'))).toEqual([]);
    expect((await session.send()).outcome).toBe('answer');
    await session.close();
    expect(await ourTables(node())).toBe(whole);
    expect((await node().run(['nft', 'list', 'tables'])).match(/junction/g)).toHaveLength(2);
  });
});
