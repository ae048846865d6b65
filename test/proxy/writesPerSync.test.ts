/** A sync writes some of what waits, so that others come in between. */
import { describe, expect, test } from 'vitest';
import { slice } from '../plan/given.ts';
import { FakeWriter } from './fakes.ts';
import { make, tell, WEB, WEB_1 } from './given.ts';

test('thousands of addresses that go at once do not hold up the endpoints of others', async () => {
  const { writer, proxy } = make();
  proxy.onSynced();
  const external = Array.from({ length: 60 }, (_, index) => `192.0.2.${index}`).join(',');
  const names = Array.from({ length: 400 }, (_, index) => `shop/s${index}`);
  tell(proxy, ...names.map((name, index) => `${name} 10.97.${index >> 8}.${index & 255} 80 ext=${external}`));
  tell(proxy, WEB, WEB_1);
  await proxy.sync();
  tell(proxy, ...names.map((name) => `- ${name}`), 'shop/web-1 of web 80 | 10.244.0.9');
  expect((await proxy.sync())?.isPartial).toBe(true);
  expect(writer.syncs[1]).toContain('shop/web/TCP');
});

describe('a writer that wants some at a time', () => {
  const LARGE = [
    'shop/large 10.96.0.9 a:1 b:2 c:3 d:4',
    'shop/large-1 of large a:1 b:2 c:3 d:4 | 10.244.0.9',
  ];

  async function served(): Promise<ReturnType<typeof make>> {
    const made = make();
    made.writer.writesPerSync = 3;
    made.proxy.onSynced();
    tell(made.proxy, WEB, WEB_1, 'shop/db 10.96.0.2 5432', 'shop/db-1 of db 5432 | 10.244.0.2');
    await made.proxy.sync();
    return made;
  }

  test('gets all of them at the start', async () => {
    const { writer } = await served();
    expect(writer.syncs).toEqual([['shop/db/TCP', 'shop/web/TCP']]);
  });

  test('gets the rest in the next syncs, with what is new before it', async () => {
    const { writer, proxy } = await served();
    tell(proxy, ...LARGE);
    const first = await proxy.sync();
    tell(proxy, 'shop/web-1 of web 80 | 10.244.0.7');
    const second = await proxy.sync('next');
    const third = await proxy.sync('next');
    expect(writer.syncs.slice(1)).toEqual([
      ['shop/large:a/TCP', 'shop/large:b/TCP'],
      ['shop/large:c/TCP', 'shop/web/TCP'],
      ['shop/large:d/TCP'],
    ]);
    expect([first?.isPartial, second?.isPartial, third?.isPartial]).toEqual([true, true, undefined]);
    expect([first, second].map((outcome) => outcome?.changes.map(({ id }) => id))).toEqual([
      ['shop/large:a/TCP', 'shop/large:b/TCP'],
      ['shop/web/TCP', 'shop/large:c/TCP'],
    ]);
  });

  test('gets services that are dialled already before new ones, and who loses an address last', async () => {
    const { writer, proxy } = await served();
    writer.writesPerSync = 2;
    tell(
      proxy,
      'shop/db 10.96.0.2 6432', // one frontend for another
      ...LARGE,
      'shop/web-1 of web 80 | 10.244.0.8',
      '- shop/db',
    );
    const order: string[] = [];
    for (let outcome = await proxy.sync(); outcome; ) {
      order.push(...outcome.changes.map(({ id }) => id));
      outcome = outcome.isPartial ? await proxy.sync('next') : undefined;
    }
    expect(order[0]).toBe('shop/web/TCP');
    expect(order.at(-1)).toBe('shop/db/TCP');
    expect(order).toHaveLength(6);
  });

  test('gets everything at once where that is not more than it wants', async () => {
    const { writer, proxy } = await served();
    writer.writesPerSync = 100;
    tell(proxy, 'shop/web-1 of web 80 | 10.244.0.7', 'shop/new 10.96.0.3 80', '- shop/db');
    const outcome = await proxy.sync();
    expect(outcome?.isPartial).toBeUndefined();
    expect(writer.syncs.slice(1)).toEqual([['shop/db/TCP', 'shop/new/TCP', 'shop/web/TCP']]);
  });

  test('gets the endpoints of a small service before the rest of those of a large one', async () => {
    const { writer, proxy } = await served();
    writer.writesPerSync = undefined;
    tell(proxy, LARGE[0] ?? '');
    await proxy.sync();
    writer.writesPerSync = 8;
    const many = Array.from({ length: 6 }, (_, index) => `10.244.1.${index}`).join(' | ');
    tell(proxy, `shop/large-1 of large a:1 b:2 c:3 d:4 | ${many}`);
    await proxy.sync();
    tell(proxy, 'shop/web-1 of web 80 | 10.244.0.7');
    await proxy.sync('next');
    // Not every time, so that the rest has its turn.
    tell(proxy, 'shop/web-1 of web 80 | 10.244.0.8');
    await proxy.sync('next');
    expect(writer.syncs.slice(2)).toEqual([
      ['shop/large:a/TCP', 'shop/large:b/TCP'],
      ['shop/web/TCP'],
      ['shop/large:c/TCP', 'shop/large:d/TCP', 'shop/web/TCP'],
    ]);
  });

  test('says when changes were asked for once all of them are written', async () => {
    const { proxy } = await served();
    const [large = '', endpoints = ''] = LARGE;
    tell(proxy, large);
    proxy.onEndpointSlice('shop/large-1', { ...slice(endpoints), triggerTime: 1_800_000_000_000 });
    const first = await proxy.sync();
    const second = await proxy.sync('next');
    expect([first?.triggers, second?.triggers]).toEqual([[], [1_800_000_000_000]]);
  });

  test('that failed gets them again', async () => {
    const { writer, proxy } = await served();
    tell(proxy, ...LARGE);
    writer.report = () => Promise.reject(new Error('lock'));
    await expect(proxy.sync()).rejects.toThrow('lock');
    writer.report = new FakeWriter().report;
    const again = await proxy.sync();
    expect(again?.isPartial).toBe(true);
    await proxy.sync('next');
    expect(new Set(writer.syncs.flat()).size).toBe(6);
  });
});
