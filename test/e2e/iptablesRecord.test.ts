/** A start from the record of what the process before it wrote, in the iptables mode, its nft variant. */
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Host } from '../../lab/host.ts';
import { whyNoLab } from '../../lab/privileges.ts';
import { useLab } from '../lab/requireLab.ts';
import { Daemon, eventually } from './daemon.ts';
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

describe('a start from the record', () => {
  const lab = useLab();
  let directory = '';
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'junction-record-'));
    await chmod(directory, 0o755);
  });
  afterAll(() => rm(directory, { recursive: true, force: true }));
  const daemon = useInLab(() =>
    Daemon.create(
      node(),
      '--proxy-mode=iptables',
      '--iptables-variant=nft',
      '--iptables-sync-period=60s',
      `--state-dir=${directory}`,
    ),
  );
  const node = (): Host => lab().host('node1');
  const file = (): string => join(directory, 'written.bin');
  const lastStart = (): string => daemon().log.slice(daemon().log.lastIndexOf('"Starting Junction"'));
  const iptables = (words: string): Promise<string> => node().run(['iptables-nft', ...words.split(' ')]);

  /** Without what differs from one moment to the next. */
  async function ourTables(): Promise<string> {
    const saves = [await node().run(['iptables-nft-save']), await node().run(['ip6tables-nft-save'])];
    const lines = saves
      .join('\n')
      .split('\n')
      .map((line) => line.replace(/ \[\d+:\d+\]$/, ''));
    return lines
      .filter((line) => !/^#|^:KUBE-SVC-JUNCTION/.test(line))
      .sort()
      .join('\n');
  }

  /** The record is complete, and its generation stays. */
  async function isRecorded(): Promise<void> {
    let last = '';
    await eventually('the record is complete', async () => {
      const bytes = await readFile(file()).catch(() => Buffer.alloc(0));
      const before = last;
      [last = ''] = /"generation":\d+\}$/.exec(bytes.subarray(-40).toString('latin1')) ?? [];
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
    await node().exec(['nft', 'flush', 'ruleset']);
    await daemon().write(manifests(services));
    await daemon().start();
    return ourTables();
  }

  /** In the end, and nothing else is written after that. */
  async function becomes(wanted: string): Promise<void> {
    let table = '';
    await eventually(
      () => `the table is\n${table}\nand not\n${wanted}\n${lastStart()}`,
      async () => (table = await ourTables()) === wanted,
    );
  }

  let fresh = '';
  beforeAll(async () => {
    if (whyNoLab() === undefined) fresh = await freshTable(ALL);
  });

  test('reads nothing back', async () => {
    await settled();
    await daemon().end('SIGKILL');
    await daemon().start();
    expect(lastStart()).toMatch(/from the record.* ipFamily="IPv4" servicePorts=52 differed=0/);
    await becomes(fresh);
  });

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
    ['the ruleset flushed', false, () => node().run(['nft', 'flush', 'ruleset'])],
    ['all rules of a table flushed', true, () => iptables('-t nat -F')],
    [
      'all rules and chains of a table deleted',
      false,
      async () => [await iptables('-t nat -F'), await iptables('-t nat -X')],
    ],
    ['a jump deleted', true, () => iptables('-t nat -D PREROUTING 1')],
    ['a shared chain flushed', true, () => iptables('-t nat -F KUBE-SERVICES')],
    ['a rule added', true, () => iptables('-t nat -I KUBE-SERVICES -d 192.0.2.7 -j ACCEPT')],
    ['the mark deleted', false, async () => iptables(`-t nat -X ${await markChain()}`)],
    ['a run without a record', false, () => runWithout()],
    ['a byte of the record changed', false, () => changeByte()],
  ];

  test.each(MEANWHILE)('ends right after %s', async (_, isUsed, act) => {
    await settled();
    await daemon().end('SIGKILL');
    await act();
    await daemon().start();
    const start = lastStart();
    expect(/from the record[^\n]* ipFamily="IPv4"/.test(start)).toBe(isUsed);
    await becomes(fresh);
    expect(await answerers(node(), WEB.ip)).toBe('pod-a pod-b pod-c');
  });

  async function markChain(): Promise<string> {
    const [name = 'none'] = /KUBE-SVC-JUNCTION\w+/.exec(await iptables('-t nat -S')) ?? [];
    return name;
  }

  /** As an older version does, which knows nothing of it. */
  async function runWithout(): Promise<void> {
    const other = await Daemon.create(node(), '--proxy-mode=iptables', '--iptables-variant=nft');
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
});
