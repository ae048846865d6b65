/**
 * A start from the record of what the process before it wrote, in the nftables mode: what changed while nobody ran is
 * written, nothing is read where nothing can have changed, and whatever happened meanwhile, the table ends as a fresh
 * start would have made it.
 */
import { chmod, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { drawsFrom } from '../../bench/soak/randomServices.ts';
import type { Host } from '../../lab/host.ts';
import { useLab } from '../lab/requireLab.ts';
import type { ServiceWords } from './cluster.ts';
import { eventually } from './daemon.ts';
import { ourTables } from './support/nftTable.ts';
import {
  FROM_RECORD,
  LATER,
  type Meanwhile,
  OTHERS,
  RecordedDaemon,
  type RecordedMode,
  WEB,
} from './support/recorded.ts';
import { answerers } from './support/traffic.ts';
import { useInLab } from './support/use.ts';

const NFTABLES: RecordedMode = {
  flags: ['--proxy-mode=nftables'],
  complete: /"generation":[1-9]\d*\}$/,
  ourTables,
  deleteTables: async (node) => {
    for (const family of ['ip', 'ip6']) await node.exec(['nft', 'delete', 'table', family, 'junction']);
  },
};

/** Pool sizes and time-outs that nobody uses stay for five seconds. */
const PARTS_STAY_MS = 6000;

describe('a start from the record', () => {
  const lab = useLab();
  const recorded = useInLab(() => RecordedDaemon.create(node(), NFTABLES));
  const node = (): Host => lab().host('node1');
  const nft = (script: string): Promise<string> => node().run(['nft', script]);

  test('is for nobody else', async () => {
    await recorded().settled();
    expect((await stat(recorded().file)).mode & 0o777).toBe(0o600);
  });

  test.each(['SIGTERM', 'SIGKILL'] as const)(
    'reads nothing where nothing has changed, after %s',
    async (signal) => {
      await recorded().settled();
      await recorded().end(signal);
      await recorded().start();
      expect(recorded().lastStart).toMatch(
        /from the record.* ipFamily="IPv4" servicePorts=52 differed=0 .*nothing has changed/,
      );
      expect(recorded().lastStart).not.toContain('there is no record');
      await recorded().isRecorded();
      await recorded().end(signal);
      await recorded().start();
      expect(recorded().lastStart).toMatch(
        /from the record.* ipFamily="IPv6" servicePorts=1 differed=0 .*nothing has changed/,
      );
      await recorded().becomes(recorded().fresh);
    },
  );

  test('writes what changed while nobody ran', async () => {
    const wanted = await recorded().freshTables(LATER);
    await recorded().killSettled();
    await recorded().write(LATER);
    await recorded().start();
    expect(recorded().lastStart).toMatch(/from the record.* ipFamily="IPv4" servicePorts=52 differed=4/);
    expect(await answerers(node(), WEB.ip)).toBe('pod-b pod-d');
    expect(await answerers(node(), '10.96.0.9')).toBe('pod-a');
    await recorded().becomes(wanted);
  });

  const MEANWHILE: readonly Meanwhile[] = [
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
    ['a run without a record', false, () => recorded().runWithout()],
    ['a byte of the record changed', false, () => recorded().changeByte()],
    [
      'the record cut off',
      false,
      async () => writeFile(recorded().file, (await readFile(recorded().file)).subarray(0, -7)),
    ],
    ['the record empty', false, () => writeFile(recorded().file, '')],
    ['a link in its place', false, () => linkInstead()],
    ['a directory that others may change', false, () => chmod(recorded().directory, 0o777)],
    ['a record that others may change', false, () => chmod(recorded().file, 0o666)],
  ];

  test.each(MEANWHILE)('ends right after %s', async (_, isUsed, act) => {
    await recorded().killSettled();
    await act();
    await recorded().start();
    expect(FROM_RECORD.test(recorded().lastStart)).toBe(isUsed);
    await chmod(recorded().directory, 0o755);
    await recorded().becomes(recorded().fresh);
    expect(await answerers(node(), WEB.ip)).toBe('pod-a pod-b pod-c');
  });

  test('holds again once everything was compared, while changes go on', async () => {
    await recorded().killSettled();
    await nft('add table ip another');
    await recorded().start();
    for (const pods of ['a', 'b', 'c', 'd', 'abc']) await recorded().write([{ ...WEB, pods }, ...OTHERS]);
    await recorded().isRecorded();
    await recorded().write([WEB, ...OTHERS]);
    await recorded().isRecorded();
    await recorded().end('SIGKILL');
    await recorded().start();
    expect(recorded().lastStart).toMatch(
      /from the record.* ipFamily="IPv4" servicePorts=51 .*nothing has changed/,
    );
    await nft('delete table ip another');
  });

  test('ends right wherever it is killed under changes', async () => {
    const draw = drawsFrom(20_261_116);
    const world = (): readonly ServiceWords[] => [
      WEB,
      ...OTHERS.map((each) => ({ ...each, pods: ['', 'a', 'bc', 'abd'][draw(4)] ?? '' })),
    ];
    await recorded().settled();
    for (let round = 0; round < 5; round++) {
      for (let change = 0; change < 3; change++) {
        await recorded().write(world());
        await sleep(draw(150));
      }
      await recorded().end('SIGKILL');
      await recorded().write(world());
      await recorded().start();
    }
    const last = world();
    await recorded().write(last);
    await recorded().end('SIGKILL');
    await recorded().start();
    await eventually('the table stays', async () => {
      const before = await ourTables(node());
      await sleep(PARTS_STAY_MS);
      return before === (await ourTables(node()));
    });
    const table = await ourTables(node());
    expect(table).toBe(await recorded().freshTables(last));
  });

  async function markSet(): Promise<string> {
    const [name = 'none'] = /record-\w+/.exec(await nft('list sets ip')) ?? [];
    return name;
  }

  async function linkInstead(): Promise<void> {
    const bytes = await readFile(recorded().file);
    await writeFile(join(recorded().directory, 'elsewhere'), bytes, { mode: 0o600 });
    await rm(recorded().file);
    await symlink(join(recorded().directory, 'elsewhere'), recorded().file);
  }
});
