/** How often the kernel is compared with what was written. */
import { describe, expect, test } from 'vitest';
import type { SyncReport } from '../../src/proxy/report.ts';
import { settle } from '../time/fakeClock.ts';
import { REPORT } from './fakes.ts';
import { FULL, Stage } from './syncStage.ts';

describe('verify', () => {
  test('looks at everything', async () => {
    const stage = new Stage();
    stage.loop.verify();
    await settle();
    expect(stage.writer.fulls).toBe(1);
    expect(stage.syncs).toBe(1);
  });

  test('not again so soon when it takes long: one hundredth of the time at most', async () => {
    const stage = new Stage();
    stage.writer.report = async () => {
      await new Promise<void>((resolve) => {
        stage.clock.schedule(2000, resolve);
      });
      return FULL;
    };
    stage.loop.requestFull();
    await stage.clock.advance(2000);
    expect(stage.writer.fulls).toBe(1);
    await stage.clock.advance(199_000);
    stage.loop.verify();
    expect(stage.writer.fulls).toBe(1);
    await stage.clock.advance(1000);
    stage.loop.verify();
    expect(stage.writer.fulls).toBe(2);
  });

  test('not when nothing can have changed', async () => {
    const stage = new Stage();
    stage.generation = { id: 7 };
    stage.reports(FULL);
    stage.loop.verify();
    await settle();
    expect(stage.writer.fulls).toBe(1);
    await stage.clock.advance(60_000);
    stage.loop.verify();
    expect(stage.writer.fulls).toBe(1);
    stage.generation = { id: 8 };
    stage.loop.verify();
    expect(stage.writer.fulls).toBe(2);
  });

  test('again after we have written something ourselves', async () => {
    const stage = new Stage();
    stage.generation = { id: 7 };
    stage.reports(FULL, REPORT, FULL);
    stage.loop.verify();
    await stage.clock.advance(5000);
    stage.loop.request();
    await stage.clock.advance(5000);
    stage.loop.verify();
    expect(stage.writer.fulls).toBe(2);
  });

  test('always where nothing tells whether something changed', async () => {
    const stage = new Stage();
    stage.reports(FULL);
    stage.loop.verify();
    await stage.clock.advance(5000);
    stage.loop.verify();
    expect(stage.writer.fulls).toBe(2);
  });
});

describe('what a look costs', () => {
  /** Each sync takes as long as its entry says, in milliseconds. */
  function lasting(stage: Stage, ...times: readonly (readonly [number, SyncReport])[]): void {
    let next = 0;
    stage.writer.report = async () => {
      const [milliseconds, report] = times[Math.min(next++, times.length - 1)] ?? [0, FULL];
      await new Promise<void>((resolve) => {
        stage.clock.schedule(milliseconds, resolve);
      });
      return report;
    };
  }

  test('the first full write is no look: the next period looks', async () => {
    const stage = new Stage();
    lasting(stage, [10_000, { ...REPORT, kind: 'full' }], [50, FULL]);
    stage.loop.request();
    await stage.clock.advance(10_000);
    await stage.clock.advance(30_000);
    stage.loop.verify();
    await stage.clock.advance(1000);
    expect(stage.writer.fulls).toBe(1);
    expect(stage.syncs).toBe(2);
  });

  test('one slow look, behind a lock or without a core, does not blind the check', async () => {
    const stage = new Stage();
    lasting(stage, [100, FULL], [20_000, FULL], [100, FULL]);
    stage.loop.requestFull();
    await stage.clock.advance(30_000);
    stage.loop.verify();
    await stage.clock.advance(30_000);
    expect(stage.syncs).toBe(2);
    stage.loop.verify();
    await stage.clock.advance(1000);
    expect(stage.syncs).toBe(3);
  });

  test('looks that are always slow wait for ten periods at most', async () => {
    const stage = new Stage();
    lasting(stage, [20_000, FULL]);
    stage.loop.requestFull();
    await stage.clock.advance(20_000 + 299_000);
    stage.loop.verify();
    expect(stage.writer.fulls).toBe(1);
    await stage.clock.advance(1000);
    stage.loop.verify();
    expect(stage.writer.fulls).toBe(2);
  });

  test('fewer rules than we left are looked at ten times sooner', async () => {
    const stage = new Stage();
    stage.generation = { id: 'a', rules: 100 };
    const nothing: SyncReport = { ...REPORT, kind: 'nothing', commits: 0 };
    lasting(stage, [2000, FULL], [10, nothing], [2000, FULL]);
    stage.loop.requestFull();
    await stage.clock.advance(2000);
    stage.generation = { id: 'b', rules: 90 };
    await stage.clock.advance(19_000);
    stage.loop.verify();
    expect(stage.writer.fulls).toBe(1);
    await stage.clock.advance(11_000);
    stage.loop.verify();
    await stage.clock.advance(2000);
    expect(stage.writer.fulls).toBe(2);
  });

  test('until then the base-chain jumps are looked at, whatever a look at everything costs', async () => {
    const stage = new Stage();
    stage.generation = { id: 'a', rules: 100 };
    lasting(stage, [20_000, FULL], [10, { ...REPORT, kind: 'nothing', commits: 0 }]);
    stage.loop.requestFull();
    await stage.clock.advance(20_000);
    stage.generation = { id: 'b', rules: 101 };
    await stage.clock.advance(30_000);
    stage.loop.verify();
    await stage.clock.advance(1000);
    expect(stage.writer.fulls).toBe(1);
    expect(stage.jumpLooks).toBe(1);
    expect(stage.syncs).toBe(2);
    await stage.clock.advance(30_000);
    stage.loop.verify();
    expect(stage.jumpLooks).toBe(1);
  });
});
