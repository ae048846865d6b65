import { describe, expect, test } from 'vitest';
import type { LookResult, SyncReport } from '../../src/proxy/report.ts';
import { SyncRunner, type Generation } from '../../src/proxy/syncRunner.ts';
import type { LookBeside } from '../../src/proxy/looks.ts';
import { TimeSlice } from '../../src/time/timeSlice.ts';
import { Proxier, type SyncOutcome } from '../../src/proxy/proxier.ts';
import { SETTINGS, service } from '../plan/given.ts';
import { FakeClock, settle } from '../time/fakeClock.ts';
import { FakeWriter, FakeLog, REPORT } from './fakes.ts';

class Stage {
  readonly clock = new FakeClock();
  readonly writer = new FakeWriter();
  readonly log = new FakeLog();
  readonly outcomes: SyncOutcome[] = [];
  /** That changed something of ours. */
  readonly programs: string[] = [];
  readonly proxy: Proxier;
  readonly loop: SyncRunner;
  generation: Generation | undefined;
  jumpLooks = 0;

  constructor({ synced = true, verify }: { readonly synced?: boolean; readonly verify?: LookBeside } = {}) {
    if (verify) this.writer.verify = verify;
    this.proxy = new Proxier({
      family: 'IPv4',
      settings: SETTINGS,
      writer: this.writer,
      // On a busy machine real time would be over in the middle of it.
      timeSlice: new TimeSlice(this.clock),
    });
    this.loop = new SyncRunner({
      proxier: this.proxy,
      log: this.log.log,
      clock: this.clock,
      minSyncPeriodMs: 1000,
      syncPeriodMs: 30_000,
      generation: () => this.generation,
      requestJumps: () => this.jumpLooks++,
      onForeignChange: (program) => this.programs.push(program),
      onSynced: (outcome) => this.outcomes.push(outcome),
    });
    this.loop.start();
    if (synced) this.proxy.onSynced();
  }

  get syncs(): number {
    return this.writer.syncs.length;
  }

  /** The writer reports these, one after another; a number is how long that sync takes. */
  reports(...list: readonly (SyncReport | Error)[]): void {
    let next = 0;
    this.writer.report = async () => {
      const report = list[Math.min(next++, list.length - 1)] ?? REPORT;
      if (report instanceof Error) throw report;
      return report;
    };
  }
}

const FULL: SyncReport = { ...REPORT, kind: 'full', commits: 0, objects: 0 };

describe('when it syncs', () => {
  test('not before the first full picture', async () => {
    const stage = new Stage({ synced: false });
    stage.loop.request();
    stage.loop.requestFull();
    await stage.clock.advance(10_000);
    expect(stage.syncs).toBe(0);
    stage.proxy.onSynced();
    stage.loop.request();
    await settle();
    expect(stage.syncs).toBe(1);
  });

  test('at once, then after a rest', async () => {
    const stage = new Stage();
    stage.loop.request();
    await settle();
    expect(stage.syncs).toBe(1);
    stage.loop.request();
    await stage.clock.advance(999);
    expect(stage.syncs).toBe(1);
    await stage.clock.advance(1);
    expect(stage.syncs).toBe(2);
  });

  test('every hour in any case', async () => {
    const stage = new Stage();
    await stage.clock.advance(3_600_000);
    expect(stage.syncs).toBe(1);
  });

  test('again after the sync period when it failed', async () => {
    const stage = new Stage();
    stage.reports(new Error('lock'), REPORT);
    stage.proxy.onService('a/b', service('a/b 10.96.0.1 80'));
    stage.loop.request();
    await stage.clock.advance(29_999);
    expect(stage.syncs).toBe(1);
    await stage.clock.advance(1);
    expect(stage.writer.syncs).toEqual([['a/b/TCP'], ['a/b/TCP']]);
    expect(stage.log.lines.join('')).toContain('"msg":"Sync failed"');
    expect(stage.log.lines.join('')).toContain('"err":"lock"');
  });
});

describe('a refused service', () => {
  const refused: SyncReport = { ...REPORT, refused: new Map([['a/b/TCP', new Error('line 7 failed')]]) };

  test('is tried again after the sync period, with a look at everything', async () => {
    const stage = new Stage();
    stage.reports(refused, REPORT);
    stage.loop.request();
    await settle();
    expect(stage.writer.fulls).toBe(1);
    await stage.clock.advance(30_000);
    expect(stage.syncs).toBe(2);
    await stage.clock.advance(60_000);
    expect(stage.syncs).toBe(2);
  });

  test('is told, and does not hide that the others are served', async () => {
    const stage = new Stage();
    stage.reports({ ...refused, refused: new Map([...refused.refused, ['c/d/TCP', new Error('x')]]) });
    stage.loop.request();
    await settle();
    expect(stage.outcomes).toHaveLength(1);
    expect(stage.log.lines.join('')).toContain('a/b/TCP (and 1 more): line 7 failed');
  });
});

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

describe('what is logged', () => {
  test('a sync that wrote something', async () => {
    const stage = new Stage();
    stage.loop.request();
    await settle();
    expect(stage.log.lines.join('')).toContain('"msg":"Synced rules","ipFamily":"IPv4","kind":"incremental"');
  });

  test('not one that had nothing to do', async () => {
    const stage = new Stage();
    stage.reports({ ...REPORT, kind: 'nothing', commits: 0 }, FULL);
    stage.loop.request();
    await stage.clock.advance(5000);
    stage.loop.request();
    await settle();
    expect(stage.syncs).toBe(2);
    expect(stage.log.lines.join('')).not.toContain('Synced rules');
  });
});

test('stop waits for the sync under way', async () => {
  const stage = new Stage();
  let ended = false;
  stage.writer.report = async () => {
    await new Promise<void>((resolve) => {
      stage.clock.schedule(100, resolve);
    });
    ended = true;
    return REPORT;
  };
  stage.loop.request();
  await settle();
  const stopped = stage.loop.stop();
  await stage.clock.advance(100);
  await stopped;
  expect(ended).toBe(true);
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
    await settle();
    expect([looks(), stage.syncs, stage.writer.fulls]).toEqual([1, 0, 0]);
  });

  test('asks for an ordinary sync when something seems to differ', async () => {
    const { verify } = results({ checked: 9, suspects: 2 });
    const stage = new Stage({ verify });
    stage.reports({ ...REPORT, repaired: ['set service-ips'] });
    stage.loop.suspect(nft);
    await settle();
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
    await settle();
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
    await settle();
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
    await settle();
    stage.loop.verify();
    await settle();
    expect(looks()).toBe(1);
    stage.generation = { id: 2 };
    stage.loop.verify();
    await settle();
    expect(looks()).toBe(2);
  });
});
