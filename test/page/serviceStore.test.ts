/** The table of services as events change it. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { readLine, type ServiceLine } from '../../page/src/views/services/line.ts';
import { ServiceStore } from '../../page/src/views/services/serviceStore.ts';
import { serviceLine } from '../../src/explain/serviceTable.ts';
import type { ServiceRow, WatchEvent } from '../../src/explain/types.ts';
import { objectKey } from '../../src/model/objects.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

function rowOf(name: string, ready: number): ServiceRow {
  return {
    service: objectKey('shop', name),
    type: 'ClusterIP',
    clusterIPs: [],
    externalIPs: [],
    loadBalancerIPs: [],
    ports: ['80/TCP'],
    endpoints: { ready, local: 0, all: 9 },
    externalTrafficPolicy: 'Cluster',
    internalTrafficPolicy: 'Cluster',
    state: 'ok',
  };
}

/** A proxy with services that have so many ready endpoints. */
class Proxy {
  readonly services = new Map<string, number>();
  readonly asked: string[] = [];
  /** An answer takes so long, and is as of its beginning. */
  delayMs = 0;
  isGone = false;
  listener: (events: readonly WatchEvent[]) => void = () => undefined;
  readonly store = new ServiceStore({
    load: async () => {
      this.asked.push('all');
      const lines = [...this.services]
        .sort()
        .map(([name, ready]) => readLine(serviceLine(rowOf(name, ready))));
      return this.#answer(lines);
    },
    ask: async (question) => {
      const names = new URLSearchParams(question.split('?')[1]).getAll('service');
      this.asked.push(names.join(' '));
      return this.#answer(
        names.flatMap((service) => {
          const name = service.slice('shop/'.length);
          const ready = this.services.get(name);
          return ready === undefined ? [] : [rowOf(name, ready)];
        }),
      );
    },
    subscribe: (listener) => (this.listener = listener),
    mayPass: () => false,
    now: () => Date.now(),
  });

  async #answer<T>(value: T): Promise<T> {
    const { isGone } = this;
    if (this.delayMs > 0) await new Promise((resolve) => setTimeout(resolve, this.delayMs));
    if (isGone) throw new Error('gone');
    return value;
  }

  change(name: string, ready: number | undefined): void {
    if (ready === undefined) this.services.delete(name);
    else this.services.set(name, ready);
    this.listener([changeOf(name)]);
  }

  get shown(): Readonly<Record<string, number>> {
    return Object.fromEntries(
      this.store.current.lines.map(({ service, ready }: ServiceLine) => [
        service.slice('shop/'.length),
        ready,
      ]),
    );
  }
}

function changeOf(name: string): WatchEvent {
  const service = objectKey('shop', name);
  return { kind: 'change', id: 1, family: 'IPv4', service, causes: [], effects: [], seenAt: 1, plannedAt: 1 };
}

async function opened(): Promise<Proxy> {
  const proxy = new Proxy();
  for (const name of ['api', 'cart', 'web']) proxy.services.set(name, 1);
  proxy.store.open();
  await vi.advanceTimersByTimeAsync(1);
  return proxy;
}

describe('the table of services', () => {
  test('after events, only what changed is asked for, together', async () => {
    const proxy = await opened();
    proxy.change('web', 2);
    proxy.change('cart', undefined);
    proxy.change('new', 3);
    await vi.advanceTimersByTimeAsync(200);
    expect(proxy.asked).toEqual(['all', 'shop/web shop/cart shop/new']);
    expect(proxy.shown).toEqual({ api: 1, new: 3, web: 2 });
  });

  test('after very many events, all of it', async () => {
    const proxy = await opened();
    await vi.advanceTimersByTimeAsync(1000);
    for (let index = 0; index < 400; index++) proxy.change(`s${index}`, 1);
    await vi.advanceTimersByTimeAsync(2000);
    // And of those that came after it was asked for, their own lines.
    expect([proxy.asked.slice(0, 2), proxy.asked.length]).toEqual([['all', 'all'], 3]);
    expect(Object.keys(proxy.shown)).toHaveLength(403);
  });

  test('what changes while it is loaded is asked for afterwards', async () => {
    const proxy = new Proxy();
    proxy.services.set('web', 1);
    proxy.delayMs = 1000;
    proxy.store.open();
    await vi.advanceTimersByTimeAsync(500);
    proxy.change('web', 2);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(proxy.shown['web']).toBe(2);
    expect(proxy.asked).toEqual(['all', 'shop/web']);
  });

  test('a late answer about one service does not replace a newer table', async () => {
    const proxy = await opened();
    await vi.advanceTimersByTimeAsync(1000);
    proxy.delayMs = 5000;
    proxy.change('web', 2);
    await vi.advanceTimersByTimeAsync(200);
    proxy.delayMs = 0;
    proxy.services.set('web', 3);
    proxy.listener([]);
    await vi.advanceTimersByTimeAsync(30_000);
    expect(proxy.asked).toEqual(['all', 'shop/web', 'all']);
    expect(proxy.shown['web']).toBe(3);
  });

  test('services that cannot be asked for are asked for with all others', async () => {
    const proxy = await opened();
    await vi.advanceTimersByTimeAsync(1000);
    proxy.isGone = true;
    proxy.change('web', 2);
    await vi.advanceTimersByTimeAsync(200);
    expect(proxy.store.current.failure?.message).toContain('gone');
    expect(proxy.shown['web']).toBe(1);
    proxy.isGone = false;
    proxy.listener([]);
    await vi.advanceTimersByTimeAsync(1000);
    expect([proxy.shown['web'], proxy.store.current.failure]).toEqual([2, undefined]);
  });
});
