/** When a family syncs, and what is said of it. */
import { describe, expect, test } from 'vitest';
import type { SyncReport } from '../../src/proxy/report.ts';
import { service } from '../plan/given.ts';
import { settle } from '../time/fakeClock.ts';
import { REPORT } from './fakes.ts';
import { FULL, Stage } from './syncStage.ts';

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
