import { expect, test } from 'vitest';
import { WatchFeed } from '../../../src/daemon/api/feed.ts';
import type { WatchEvent } from '../../../src/explain/types.ts';
import { FakeClock } from '../../time/fakeClock.ts';

const clock = new FakeClock();

function event(deleted: number): WatchEvent {
  return { kind: 'conntrack', at: 0, family: 'IPv4', deleted, ms: 1 };
}

function make() {
  const feed = new WatchFeed({ clock, wallTime: () => 7 });
  const stop = new AbortController();
  return { feed, stop, lines: feed.subscribe(stop.signal) };
}

test('every client gets each event, from when it came', async () => {
  const { feed, lines } = make();
  feed.emit(event(1));
  const first = lines.next();
  feed.emit(event(2));
  feed.emit(event(3));
  expect((await first).value).toBe(`${JSON.stringify(event(2))}\n${JSON.stringify(event(3))}\n`);
});

test('those that there were are kept, watched or not', () => {
  const feed = new WatchFeed({ clock, wallTime: () => 7 });
  feed.emit(event(1));
  feed.emit(event(2));
  expect(feed.recent()).toEqual([event(1), event(2)]);
});

test('a client that reads too slowly learns how many events it lost', async () => {
  const { feed, lines } = make();
  const first = lines.next();
  feed.emit(event(0));
  await first;
  for (let count = 1; count <= 1500; count++) feed.emit(event(count));
  let text = '';
  let reads = 0;
  for (; !text.includes('"lost"'); reads++) {
    const { value } = await lines.next();
    expect(String(value).length).toBeLessThan(17_000);
    text += String(value);
    feed.emit(event(0));
  }
  const got = text.trim().split('\n');
  expect(got).toHaveLength(1001);
  expect(JSON.parse(got.at(-1) ?? '')).toEqual({ kind: 'lost', at: 7, events: 500 + reads - 1 });
});

test('and so does one whose events are large, whatever their number', async () => {
  const { feed, lines } = make();
  const first = lines.next();
  feed.emit(event(0));
  await first;
  const error = 'x'.repeat(300_000);
  const large: WatchEvent = { kind: 'refused', at: 0, family: 'IPv4', servicePort: 'a', error };
  for (let count = 0; count < 10; count++) feed.emit(large);
  expect(String((await lines.next()).value).length).toBeLessThan(1_100_000);
});

test('a close ends every stream, after the last events', async () => {
  const { feed, lines } = make();
  const other = feed.subscribe(new AbortController().signal);
  const [first, waiting] = [lines.next(), other.next()];
  feed.emit(event(1));
  await Promise.all([first, waiting]);
  const idle = other.next();
  feed.emit(event(2));
  feed.close();
  expect((await lines.next()).value).toBe(`${JSON.stringify(event(2))}\n`);
  expect((await lines.next()).done).toBe(true);
  await idle;
  expect((await other.next()).done).toBe(true);
  expect((await feed.subscribe(new AbortController().signal).next()).done).toBe(true);
  expect(feed.clients).toBe(0);
});

test('an empty line says that nothing happened', async () => {
  const { lines } = make();
  const next = lines.next();
  await clock.advance(15_000);
  expect((await next).value).toBe('\n');
});

test('a client that has gone takes nothing any more', async () => {
  const { feed, lines, stop } = make();
  const next = lines.next();
  expect(feed.clients).toBe(1);
  stop.abort();
  expect((await next).done).toBe(true);
  expect(feed.clients).toBe(0);
});
