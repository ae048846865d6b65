/**
 * A start from the record of what the process before it wrote, in the nftables mode: what changed while nobody ran is
 * written, nothing is read where nothing can have changed, and whatever happened meanwhile, the table ends as a fresh
 * start would have made it.
 */
import { chmod, mkdtemp, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { drawsFrom } from '../../bench/soak/randomServices.ts';
import type { Host } from '../../lab/host.ts';
import { whyNoLab } from '../../lab/privileges.ts';
import { useLab } from '../lab/requireLab.ts';
import { Daemon, eventually } from './daemon.ts';
import { ourTables } from './support/nftTable.ts';
import { answerers } from './support/traffic.ts';
import { useInLab } from './support/use.ts';
import { manifests, type ServiceWords } from './cluster.ts';

const WEB: ServiceWords = { name: 'web', ip: '10.96.0.1', ip6: 'fd00:96::1', nodePort: 30_080, pods: 'abc' };
const STICKY: ServiceWords = {
  name: 'sticky',
  ip: '10.96.0.2',
  extra: '  sessionAffinity: ClientIP',
  pods: 'ac',
};
const OTHERS: readonly ServiceWords[] = Array.from({ length: 50 }, (_, index) => ({
  name: `service-${index}`,
  ip: `10.98.0.${index}`,
  pods: ['a', 'bc', 'abcd'][index % 3] ?? '',
}));
const ALL = [WEB, STICKY, ...OTHERS];
/** One is gone, one is new, one has other endpoints. */
const LATER = [{ ...WEB, pods: 'bd' }, { name: 'new', ip: '10.96.0.9', pods: 'a' }, ...OTHERS.slice(1)];

/** Pool sizes and time-outs that nobody uses stay for five seconds. */
const PARTS_STAY_MS = 6000;

describe('a start from the record', () => {
  const lab = useLab();
  let directory = '';
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'junction-record-'));
    await chmod(directory, 0o755);
  });
  afterAll(() => rm(directory, { recursive: true, force: true }));
  const daemon = useInLab(() =>
    Daemon.create(node(), '--proxy-mode=nftables', '--iptables-sync-period=60s', `--state-dir=${directory}`),
  );
  const node = (): Host => lab().host('node1');
  const file = (): string => join(directory, 'written.bin');
  const lastStart = (): string => daemon().log.slice(daemon().log.lastIndexOf('"Starting Junction"'));
  const nft = (script: string): Promise<string> => node().run(['nft', script]);

  /** The record is complete, and its generation stays. */
  async function isRecorded(): Promise<void> {
    let last = '';
    await eventually('the record is complete', async () => {
      const bytes = await readFile(file()).catch(() => Buffer.alloc(0));
      const before = last;
      [last = ''] = /"generation":[1-9]\d*\}$/.exec(bytes.subarray(-40).toString('latin1')) ?? [];
      if (last !== '') await sleep(200);
      return last !== '' && last === before;
    });
  }

  /** Starts afresh, so that each test begins with a record that holds. */
  async function settled(services: readonly ServiceWords[] = ALL): Promise<void> {
    await daemon().end('SIGKILL');
    await rm(file(), { force: true });
    await daemon().write(manifests(services));
    await daemon().start();
    await isRecorded();
  }

  /** What a start without a record makes of an empty kernel. */
  async function freshTable(services: readonly ServiceWords[]): Promise<string> {
    await daemon().end('SIGKILL');
    await rm(file(), { force: true });
    for (const family of ['ip', 'ip6']) await node().exec(['nft', 'delete', 'table', family, 'junction']);
    await daemon().write(manifests(services));
    await daemon().start();
    return ourTables(node());
  }

  /** In the end, and nothing else is written after that. */
  async function becomes(wanted: string): Promise<void> {
    let table = '';
    await eventually(
      () => `the table is\n${table}\nand not\n${wanted}\n${lastStart()}`,
      async () => (table = await ourTables(node())) === wanted,
    );
  }

  let fresh = '';
  beforeAll(async () => {
    if (whyNoLab() === undefined) fresh = await freshTable(ALL);
  });

  test('is for nobody else', async () => {
    await settled();
    expect((await stat(file())).mode & 0o777).toBe(0o600);
  });

  test.each(['SIGTERM', 'SIGKILL'] as const)(
    'reads nothing where nothing has changed, after %s',
    async (signal) => {
      await settled();
      await daemon().end(signal);
      await daemon().start();
      expect(lastStart()).toMatch(
        /from the record.* ipFamily="IPv4" servicePorts=52 differed=0 .*nothing has changed/,
      );
      expect(lastStart()).not.toContain('there is no record');
      await isRecorded();
      await daemon().end(signal);
      await daemon().start();
      expect(lastStart()).toMatch(
        /from the record.* ipFamily="IPv6" servicePorts=1 differed=0 .*nothing has changed/,
      );
      await becomes(fresh);
    },
  );

  test('writes what changed while nobody ran', async () => {
    const wanted = await freshTable(LATER);
    await settled();
    await daemon().end('SIGKILL');
    await daemon().write(manifests(LATER));
    await daemon().start();
    expect(lastStart()).toMatch(/from the record.* ipFamily="IPv4" servicePorts=52 differed=4/);
    expect(await answerers(node(), WEB.ip)).toBe('pod-b pod-d');
    expect(await answerers(node(), '10.96.0.9')).toBe('pod-a');
    await becomes(wanted);
  });

  /** What others do while nobody runs, and whether the record is used all the same. */
  const MEANWHILE: readonly (readonly [what: string, isUsed: boolean, act: () => Promise<unknown>])[] = [
    ['the ruleset flushed', false, () => nft('flush ruleset')],
    ['the table deleted', false, () => nft('delete table ip junction')],
    ['all rules flushed', true, () => nft('flush table ip junction')],
    ['a chain flushed', true, () => nft('flush chain ip junction services')],
    ['an element deleted', true, () => nft('delete element ip junction service-ips { 10.96.0.1 }')],
    ['an element added', true, () => nft('add element ip junction refused { 10.96.0.77 . tcp . 80 }')],
    ['a set flushed', true, () => nft('flush map ip junction any-3')],
    ['the table put to sleep', false, () => nft('add table ip junction { flags dormant; }')],
    ['the mark deleted', false, async () => nft(`delete set ip junction ${await markSet()}`)],
    ['a table of another program', true, () => nft('add table ip other')],
    ['a run without a record', false, () => runWithout()],
    ['a byte of the record changed', false, () => changeByte()],
    ['the record cut off', false, async () => writeFile(file(), (await readFile(file())).subarray(0, -7))],
    ['the record empty', false, () => writeFile(file(), '')],
    ['a link in its place', false, () => linkInstead()],
    ['a directory that others may change', false, () => chmod(directory, 0o777)],
    ['a record that others may change', false, () => chmod(file(), 0o666)],
  ];

  test.each(MEANWHILE)('ends right after %s', async (_, isUsed, act) => {
    await settled();
    await daemon().end('SIGKILL');
    await act();
    await daemon().start();
    const start = lastStart();
    expect(/from the record[^\n]* ipFamily="IPv4"/.test(start)).toBe(isUsed);
    await chmod(directory, 0o755);
    await becomes(fresh);
    expect(await answerers(node(), WEB.ip)).toBe('pod-a pod-b pod-c');
  });

  test('holds again once everything was compared, while changes go on', async () => {
    await settled();
    await daemon().end('SIGKILL');
    await nft('add table ip another');
    await daemon().start();
    for (const pods of ['a', 'b', 'c', 'd', 'abc'])
      await daemon().write(manifests([{ ...WEB, pods }, ...OTHERS]));
    await isRecorded();
    await daemon().write(manifests([WEB, ...OTHERS]));
    await isRecorded();
    await daemon().end('SIGKILL');
    await daemon().start();
    expect(lastStart()).toMatch(/from the record.* ipFamily="IPv4" servicePorts=51 .*nothing has changed/);
    await nft('delete table ip another');
  });

  test('ends right wherever it is killed under changes', async () => {
    const draw = drawsFrom(20_261_116);
    const world = (): readonly ServiceWords[] => [
      WEB,
      ...OTHERS.map((each) => ({ ...each, pods: ['', 'a', 'bc', 'abd'][draw(4)] ?? '' })),
    ];
    await settled();
    for (let round = 0; round < 5; round++) {
      for (let change = 0; change < 3; change++) {
        await daemon().write(manifests(world()));
        await sleep(draw(150));
      }
      await daemon().end('SIGKILL');
      await daemon().write(manifests(world()));
      await daemon().start();
    }
    const last = world();
    await daemon().write(manifests(last));
    await daemon().end('SIGKILL');
    await daemon().start();
    await eventually('the table stays', async () => {
      const before = await ourTables(node());
      await sleep(PARTS_STAY_MS);
      return before === (await ourTables(node()));
    });
    const table = await ourTables(node());
    expect(table).toBe(await freshTable(last));
  });

  async function markSet(): Promise<string> {
    const [name = 'none'] = /record-\w+/.exec(await nft('list sets ip')) ?? [];
    return name;
  }

  /** As an older version does, which knows nothing of it. */
  async function runWithout(): Promise<void> {
    const other = await Daemon.create(node(), '--proxy-mode=nftables');
    await other.write(manifests(LATER));
    await other.start();
    await other.close();
  }

  async function changeByte(): Promise<void> {
    const bytes = await readFile(file());
    const at = bytes.indexOf('shop/web');
    bytes[at + 40] = (bytes[at + 40] ?? 0) ^ 1;
    await writeFile(file(), bytes);
  }

  async function linkInstead(): Promise<void> {
    const bytes = await readFile(file());
    await writeFile(join(directory, 'elsewhere'), bytes, { mode: 0o600 });
    await rm(file());
    await symlink(join(directory, 'elsewhere'), file());
  }
});
