import { describe, expect, test } from 'vitest';
import { HealthState } from '../../../src/telemetry/http/health.ts';
import { printTime } from '../../../src/telemetry/http/timestamp.ts';
import type { Family } from '../../../src/model/ip.ts';
import { FakeMoments } from './support.ts';

/**
 * A story in words: `4 updated`, `6 queued`, `+60` seconds pass. Answers what is healthy: `4`, `6`, both, or `none`;
 * `-4` is an unhealthy family.
 */
function tell(story: string): string {
  const moments = new FakeMoments();
  const state = new HealthState({ syncPeriodMs: 30_000, now: moments.now });
  for (const part of story.split(', ').filter(Boolean)) {
    const [head = '', what = ''] = part.split(' ');
    const family: Family = head === '4' ? 'IPv4' : 'IPv6';
    if (head.startsWith('+')) moments.advance(Number(head.slice(1)));
    else if (what === 'queued') state.queued(family);
    else state.updated(family);
  }
  const health = state.check();
  expect(state.isHealthy()).toBe(health.healthy);
  expect(health.healthy).toBe(health.families.every(({ healthy }) => healthy));
  return health.families.map(({ family, healthy }) => `${healthy ? '' : '-'}${family.at(-1)}`).join(' ');
}

describe('who is healthy', () => {
  test.each([
    ['', '', 'nobody has reported'],
    ['4 updated', '4', 'a family that has begun'],
    ['4 updated, +86400', '4', 'nothing to do, all day'],
    ['4 updated, 4 queued, +59.999999999', '4', 'a change waits, not yet too long'],
    ['4 updated, 4 queued, +60', '-4', 'twice the sync period is too long'],
    ['4 updated, 4 queued, +40, 4 queued, +20', '-4', 'the oldest change counts'],
    ['4 updated, 4 queued, +60, 4 updated', '4', 'it was late, and made it'],
    ['4 updated, 4 queued, +40, 4 updated, 4 queued, +59', '4', 'each wait by itself'],
    ['4 queued, +3600', '', 'a family that never reported is left out'],
    ['4 queued, +3600, 4 updated', '4', 'what waited before the first report is done'],
    ['4 updated, 6 queued, +3600', '4', 'even if the other has'],
    ['4 updated, 6 updated, 6 queued, +60', '4 -6', 'one family is late'],
    ['4 updated, 6 updated, 6 queued, +60, 4 queued, 4 updated', '4 -6', 'the other does not help'],
    ['4 updated, 6 updated, 6 queued, +60, 4 updated, 6 updated', '4 6', 'until the late one is done'],
    ['4 updated, 6 updated, 4 queued, 6 queued, +60', '-4 -6', 'both are late'],
  ])('%s: %s (%s)', (story, expected) => expect(tell(story)).toBe(expected));

  test('the steady clock decides: a clock that is set makes nobody late', () => {
    let wallNs = 0n;
    const state = new HealthState({ syncPeriodMs: 30_000, now: () => ({ wallNs, steadyNs: 0n }) });
    state.updated('IPv4');
    state.queued('IPv4');
    wallNs = 10n ** 15n;
    expect(state.isHealthy()).toBe(true);
  });
});

test('the newest update of all families is remembered', () => {
  const moments = new FakeMoments();
  const state = new HealthState({ syncPeriodMs: 30_000, now: moments.now });
  expect(state.check().lastUpdated).toBeUndefined();
  moments.advance(1);
  state.updated('IPv6');
  moments.advance(1);
  state.updated('IPv4');
  moments.advance(1);
  state.queued('IPv4');
  moments.advance(60);
  const { lastUpdated, families } = state.check();
  expect(lastUpdated && printTime(lastUpdated, 0)).toBe('2026-11-15T03:35:32Z');
  expect(families.map((each) => printTime(each.lastUpdated, 0))).toEqual([
    '2026-11-15T03:35:32Z',
    '2026-11-15T03:35:31Z',
  ]);
});

describe('a family that is left out', () => {
  const make = () => {
    const moments = new FakeMoments();
    const state = new HealthState({ syncPeriodMs: 30_000, now: moments.now });
    state.updated('IPv4');
    return { state, moments };
  };

  test('because the machine does not have it: that is told, and is no fault', () => {
    const { state, moments } = make();
    state.leftOut('IPv6', { reason: 'no nat table', isAnswered: true });
    const since = moments.now();
    moments.advance(60);
    state.leftOut('IPv6', { reason: 'still none', isAnswered: true });
    expect(state.check()).toMatchObject({
      healthy: true,
      leftOut: [{ family: 'IPv6', reason: 'still none', since }],
    });
  });

  test('until it is served', () => {
    const { state } = make();
    state.leftOut('IPv6', { reason: 'the lock is held', isAnswered: false });
    expect(state.check()).toMatchObject({ healthy: true, leftOut: [{ isAnswered: false }] });
    state.updated('IPv6');
    expect(state.check()).toMatchObject({ healthy: true, leftOut: [] });
  });
});
