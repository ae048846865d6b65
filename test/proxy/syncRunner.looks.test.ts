/** What becomes of a suspicion, and of what a look at the kernel finds. */
import { describe, expect, test } from 'vitest';
import type { LookBeside } from '../../src/proxy/looks.ts';
import type { LookResult, SyncReport } from '../../src/proxy/report.ts';
import { settle } from '../time/fakeClock.ts';
import { REPORT } from './fakes.ts';
import { FULL, Stage } from './syncStage.ts';

describe('a suspicion', () => {
  const foundFlush: SyncReport = { ...REPORT, kind: 'full', repaired: ['chain nat KUBE-SERVICES'] };
  const nft = { processName: 'nft', processId: 7 };

  test('is looked into at once, and whoever did it is named if something was wrong', async () => {
    const stage = new Stage();
    stage.reports(foundFlush);
    stage.loop.suspect(nft);
    await settle();
    expect(stage.writer.fulls).toBe(1);
    expect(stage.programs).toEqual(['nft']);
    expect(stage.log.lines.join('')).toContain(
      '"msg":"Another program changed our rules; repaired","ipFamily":"IPv4","changedBy":"nft (pid 7)"',
    );
  });

  test('nothing is said when nothing was wrong', async () => {
    const stage = new Stage();
    stage.reports(FULL);
    stage.loop.suspect(nft);
    await settle();
    expect(stage.programs).toEqual([]);
  });

  test('soon after a costly look: the jumps are looked at, and everything if one is missing', async () => {
    const stage = new Stage();
    const missing: SyncReport = { ...REPORT, repaired: ['chain nat PREROUTING'] };
    const reports = [FULL, missing, foundFlush];
    stage.writer.report = async () => {
      await new Promise<void>((resolve) => {
        stage.clock.schedule(5000, resolve);
      });
      return reports.shift() ?? FULL;
    };
    stage.loop.requestFull();
    await stage.clock.advance(5000);
    stage.loop.suspect(nft);
    await stage.clock.advance(5000);
    expect(stage.jumpLooks).toBe(1);
    expect(stage.writer.fulls).toBe(2);
    await stage.clock.advance(5000);
    expect(stage.syncs).toBe(3);
    expect(stage.programs).toEqual(['nft', 'nft']);
  });

  test('again and again: a tenth of the time at most is spent on looks at everything', async () => {
    const stage = new Stage();
    let looks = 0;
    stage.writer.report = async () => {
      if (looks === stage.writer.fulls) return { ...REPORT, kind: 'nothing', commits: 0 };
      looks = stage.writer.fulls;
      await new Promise<void>((resolve) => {
        stage.clock.schedule(1000, resolve);
      });
      return FULL;
    };
    for (let second = 0; second < 60; second++) {
      stage.loop.suspect(nft);
      await stage.clock.advance(1000);
    }
    expect(looks).toBeGreaterThan(3);
    expect(looks).toBeLessThan(8);
  });
});

describe('what a look found and repaired', () => {
  test('is logged and counted, once', async () => {
    const stage = new Stage();
    stage.reports({ ...FULL, objects: 2, repaired: ['virtual server TCP 10.96.0.1:80'] }, FULL);
    stage.loop.requestFull();
    await settle();
    const lines = stage.log.lines.filter((line) =>
      line.includes('Another program changed our rules; repaired'),
    );
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain('"objects":"virtual server TCP 10.96.0.1:80"');
    expect(stage.programs).toEqual(['unknown']);
    expect(stage.log.lines.join('')).toContain('"msg":"Synced rules","ipFamily":"IPv4","kind":"full"');
  });

  test('is not counted again where a notification told of it', async () => {
    const stage = new Stage();
    stage.reports({ ...FULL, repaired: ['link kube-ipvs0'] });
    stage.loop.foreignChanges.noticed({ objects: ['link kube-ipvs0'] });
    await settle();
    expect(stage.programs).toEqual(['unknown']);
  });
});

describe('a look beside the syncs', () => {
  const nft = { processName: 'nft', processId: 7 };
  const results = (...list: readonly (LookResult | Error)[]): { verify: LookBeside; looks: () => number } => {
    let looks = 0;
    return {
      verify: async () => {
        const result = list[Math.min(looks++, list.length - 1)];
        if (!result || result instanceof Error) throw result ?? new Error('none');
        return result;
      },
      looks: () => looks,
    };
  };

  test('asks for no sync while everything is as it was written', async () => {
    const { verify, looks } = results({ checked: 9, suspects: 0 });
    const stage = new Stage({ verify });
    stage.loop.verify();
    await stage.clock.advance(0);
    expect([looks(), stage.syncs, stage.writer.fulls]).toEqual([1, 0, 0]);
  });

  test('asks for an ordinary sync when something seems to differ', async () => {
    const { verify } = results({ checked: 9, suspects: 2 });
    const stage = new Stage({ verify });
    stage.reports({ ...REPORT, repaired: ['set service-ips'] });
    stage.loop.suspect(nft);
    await stage.clock.advance(0);
    expect([stage.syncs, stage.writer.fulls]).toEqual([1, 0]);
    expect(stage.programs).toEqual(['nft']);
    await stage.clock.advance(60_000);
    expect(stage.syncs).toBe(1);
  });

  test('one that fails becomes a full sync', async () => {
    const { verify } = results(new Error('netlink: its thread has ended'));
    const stage = new Stage({ verify });
    stage.reports(FULL);
    stage.loop.look('a test');
    await stage.clock.advance(0);
    expect([stage.syncs, stage.writer.fulls]).toEqual([1, 1]);
  });

  test('syncs go on meanwhile, and what is asked for meanwhile is one more look', async () => {
    let looks = 0;
    const stage: Stage = new Stage({
      verify: async () => {
        looks++;
        await new Promise<void>((resolve) => {
          stage.clock.schedule(5000, resolve);
        });
        return { checked: 1, suspects: 0 };
      },
    });
    stage.loop.look('one');
    stage.loop.look('two');
    stage.loop.look('three');
    await stage.clock.advance(1000);
    stage.loop.request();
    await stage.clock.advance(0);
    expect([looks, stage.syncs]).toEqual([1, 1]);
    await stage.clock.advance(4000);
    expect(looks).toBe(2);
    await stage.clock.advance(60_000);
    expect(looks).toBe(2);
  });

  test('the generation that was verified is that from before the look', async () => {
    const { verify, looks } = results({ checked: 1, suspects: 0 });
    const stage = new Stage({ verify });
    stage.generation = { id: 1 };
    stage.loop.verify();
    await stage.clock.advance(0);
    stage.loop.verify();
    await stage.clock.advance(0);
    expect(looks()).toBe(1);
    stage.generation = { id: 2 };
    stage.loop.verify();
    await stage.clock.advance(0);
    expect(looks()).toBe(2);
  });
});
