import { expect, test } from 'vitest';
import { RecentEvents } from '../../../src/daemon/api/recentEvents.ts';
import type { WatchEvent } from '../../../src/explain/types.ts';

function change(id: number, ...causes: readonly string[]): WatchEvent {
  const times = { seenAt: id, plannedAt: id, committedAt: id };
  return { kind: 'change', id, family: 'IPv4', service: 'shop/web', causes, effects: [], ...times };
}

function flows(deleted: number): WatchEvent {
  return { kind: 'conntrack', at: deleted, family: 'IPv4', deleted, ms: 1 };
}

test('all of them, oldest first', () => {
  const recent = new RecentEvents();
  const events = [change(1), flows(2), change(3), flows(4)];
  for (const event of events) recent.add(event);
  expect(recent.all()).toEqual(events);
});

test('of many, the last; and changes push out nothing but changes', () => {
  const recent = new RecentEvents({ most: 10 });
  recent.add(flows(1));
  for (let id = 1; id <= 1000; id++) recent.add(change(id));
  const ids = recent.all().map((event) => (event.kind === 'change' ? event.id : event.kind));
  expect(ids).toEqual(['conntrack', 991, 992, 993, 994, 995, 996, 997, 998, 999, 1000]);
});

test('of large ones, few', () => {
  const recent = new RecentEvents({ mostBytes: 10_000 });
  for (let id = 1; id <= 100; id++) recent.add(change(id, 'x'.repeat(1000), 'y'.repeat(1000)));
  expect(recent.all()).toHaveLength(4);
  expect(recent.all().at(-1)).toMatchObject({ id: 100 });
});

test('of one that is too large, none', () => {
  const recent = new RecentEvents({ mostBytes: 10_000 });
  recent.add(change(1, 'x'.repeat(20_000)));
  expect(recent.all()).toEqual([]);
  recent.add(change(2));
  expect(recent.all()).toEqual([change(2)]);
});
