/** Starts in the nftables mode: into an empty kernel, over a table that is there, and after every kind of end. */
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { drawsFrom, randomSlot } from '../../bench/soak/randomServices.ts';
import type { Host } from '../../lab/host.ts';
import { useLab } from '../lab/requireLab.ts';
import { Daemon, eventually } from './daemon.ts';
import { answeredDuring } from './support/load.ts';
import { ourTables } from './support/nftTable.ts';
import { answerers, SOON_MS } from './support/traffic.ts';
import { useInLab } from './support/use.ts';
import { manifests, type ServiceWords } from './cluster.ts';

const MANY = 1000;
const STABLE = { name: 'stable', ip: '10.96.0.1', nodePort: 30_080, pods: 'abc' };
/** Nobody else has a pool of its size. */
const LONE = { name: 'lone', ip: '10.96.0.2', pods: 'abcd' };
const OTHERS: readonly ServiceWords[] = Array.from({ length: MANY }, (_, index) => ({
  name: `service-${index}`,
  ip: `10.98.${index >> 8}.${index & 255}`,
  pods: 'ac',
}));

describe('a start with thousands of services', () => {
  const lab = useLab();
  const daemon = useInLab(() => Daemon.create(node(), '--proxy-mode=nftables', '--iptables-sync-period=60s'));
  const node = (): Host => lab().host('node1');
  const lastStart = (): string => daemon().log.slice(daemon().log.lastIndexOf('"Starting Junction"'));

  test('serves the first and the last', async () => {
    await daemon().write(manifests([STABLE, LONE, ...OTHERS]));
    await daemon().start();
    expect(await answerers(node(), STABLE.ip)).toBe('pod-a pod-b pod-c');
    expect(await answerers(node(), OTHERS.at(-1)?.ip ?? '')).toBe('pod-a pod-c');
  });

  test('writes everything anew, while connections go on and new ones are made', async () => {
    const session = await node().openSession(STABLE.ip, 80);
    const [changed, gone, ...rest] = OTHERS;
    await daemon().end('SIGKILL');
    await daemon().write(
      manifests(
        [STABLE, { ...LONE, pods: 'a' }, { name: 'new', ip: '10.96.0.3', pods: 'b' }, ...rest].concat(
          changed ? [{ ...changed, pods: 'bd' }] : [],
        ),
      ),
    );
    const seen = await Promise.all([
      answeredDuring(node(), STABLE.ip, () => daemon().start()),
      answeredDuring(node(), LONE.ip, async () => {
        await eventually('the new start', () => lastStart().includes('"Serving" ipFamily="IPv4"'));
      }),
    ]);
    expect(seen.flat().filter((word) => !word.startsWith('pod-'))).toEqual([]);
    expect((await session.send()).outcome).toBe('answer');
    await session.close();

    expect(await answerers(node(), LONE.ip)).toBe('pod-a');
    expect(await answerers(node(), gone?.ip ?? '', 80, SOON_MS)).toBe('timeout');
  });
});

describe('kill -9 at any moment', () => {
  const lab = useLab();
  const daemon = useInLab(() => Daemon.create(node(), '--proxy-mode=nftables'));
  const node = (): Host => lab().host('node1');

  test('leads to the same table in the end as a fresh start', async () => {
    const draw = drawsFrom(20_261_115);
    const world = (): string =>
      [
        manifests([STABLE]),
        ...Array.from({ length: 16 }, (_, slot) => randomSlot(slot, draw)).filter((text) => text !== ''),
      ].join('\n---\n');
    await daemon().write(world());
    await daemon().start();
    const session = await lab().host('client').openSession(STABLE.ip, 80);
    for (let round = 0; round < 3; round++) {
      await daemon().write(world());
      await sleep(draw(120));
      await daemon().end('SIGKILL');
      await daemon().write(world());
      await daemon().start();
    }
    await daemon().end('SIGKILL');
    await daemon().start();
    const table = await ourTables(node());
    expect((await session.send()).outcome).toBe('answer');
    await session.close();

    await daemon().end('SIGTERM');
    await node().run(['nft', 'flush', 'ruleset']);
    await daemon().start();
    expect(table).toBe(await ourTables(node()));
  });
});
