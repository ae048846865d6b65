/** What is tried again, and when. */
import { describe, expect, test } from 'vitest';
import { NftProxier } from '../../../src/modes/nftables/proxier.ts';
import { FakeNftKernel } from './rules/fakeKernel.ts';
import { Cluster } from '../../plan/cluster.ts';
import { FakeClock } from '../../time/fakeClock.ts';

class Stage {
  readonly kernel: FakeNftKernel;
  readonly cluster: Cluster;
  readonly clock = new FakeClock();
  /** After how many milliseconds each sync asked for another. */
  readonly asked: (number | undefined)[] = [];
  readonly proxy: NftProxier;

  constructor({ kernel = new FakeNftKernel(), cluster = new Cluster() }: Partial<Stage> = {}) {
    this.kernel = kernel;
    this.cluster = cluster;
    this.proxy = new NftProxier({
      client: kernel,
      clock: this.clock,
      masqueradeBit: 14,
      counters: false,
      nodeIps: () => [],
    });
  }

  async sync(...lines: readonly string[]): Promise<boolean> {
    this.cluster.tell(...lines);
    const report = await this.proxy.sync(this.cluster.planner, this.cluster.takeDirty());
    this.asked.push(report.retryAfterMs);
    return report.counts['cleanup.failures'] === undefined;
  }
}

test('a backstop that was deleted with its socket is made again, without a change', async () => {
  const [kernel, backstop, cluster] = [new FakeNftKernel(), new FakeNftKernel(), new Cluster()];
  const facts = { masqueradeBit: 14, counters: false, nodeIps: () => [] };
  const proxy = new NftProxier({ client: kernel, backstop, clock: new FakeClock(), ...facts });
  cluster.tell('a/x 10.96.0.1 80', 'a/x-1 of x 80 | 10.1.0.1');
  await proxy.sync(cluster.planner, cluster.takeDirty());
  expect(backstop.table).toBeDefined();
  backstop.table = undefined;
  await proxy.sync(cluster.planner, []);
  expect(backstop.table).toBeUndefined();
  proxy.requestBackstop();
  await proxy.sync(cluster.planner, []);
  expect(backstop.table).toBeDefined();
});

describe('a set of another time that will not go', () => {
  const refusing = (kernel: FakeNftKernel): void => {
    kernel.fault = (transaction) =>
      transaction.some(({ kind }) => kind === 'deleteSet') ? 'EBUSY' : undefined;
  };

  async function unclean(): Promise<Stage> {
    const before = new Stage();
    await before.sync('a/x 10.96.0.1 80', 'a/x-1 of x 80 | 10.1.0.1 | 10.1.0.2');
    const stage = new Stage(before);
    refusing(stage.kernel);
    expect(await stage.sync('a/x-1 of x 80 | 10.1.0.1')).toBe(false);
    expect(stage.asked).toEqual([1000]);
    return stage;
  }

  test('is tried again, whatever was changed meanwhile', async () => {
    const stage = await unclean();
    stage.kernel.fault = () => undefined;
    expect(await stage.sync('a/y 10.96.0.2 80', 'a/y-1 of y 80 | 10.1.0.3')).toBe(true);
    expect(stage.kernel.table?.sets.has('any-2')).toBe(true);
    await stage.clock.advance(1000);
    expect(await stage.sync()).toBe(true);
    expect(stage.kernel.table?.sets.has('any-2')).toBe(false);
  });

  test('less and less often', async () => {
    const stage = await unclean();
    for (let tries = 0; tries < 7; tries++) {
      await stage.clock.advance(stage.asked.at(-1) ?? 0);
      expect(await stage.sync()).toBe(false);
    }
    expect(stage.asked).toEqual([1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000]);
  });

  test('and ordinary changes stay what they are', async () => {
    const stage = await unclean();
    stage.kernel.forget();
    await stage.sync('a/y 10.96.0.2 80', 'a/y-1 of y 80 | 10.1.0.3');
    expect([stage.kernel.inspections, stage.kernel.attempts]).toEqual([0, 1]);
  });
});
