/** The table of services as events change it: whatever happens meanwhile, it ends as what the proxy has. */
import fc from 'fast-check';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { readLine } from '../../page/src/views/services/line.ts';
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

function rowOf(service: string, ready: number): ServiceRow {
  return {
    service: objectKey('shop', service.slice('shop/'.length)),
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
  readonly services = new Map([1, 2, 3].map((number) => [`shop/s${number}`, number]));
  readonly asked: string[] = [];
  /** An answer takes so long, and is as of its beginning. */
  delayMs = 0;
  isGone = false;
  tell: (events: readonly WatchEvent[]) => void = () => undefined;
  readonly store = new ServiceStore({
    load: () => {
      this.asked.push('all');
      return this.#answer(
        this.#rows([...this.services.keys()].sort()).map((row) => readLine(serviceLine(row))),
      );
    },
    ask: (question) => {
      const names = new URLSearchParams(question.split('?')[1]).getAll('service');
      this.asked.push(names.join(' '));
      return this.#answer(this.#rows(names));
    },
    subscribe: (listener) => (this.tell = listener),
    mayPass: () => false,
    now: () => Date.now(),
  });

  #rows(names: readonly string[]): readonly ServiceRow[] {
    return names.flatMap((name) => {
      const ready = this.services.get(name);
      return ready === undefined ? [] : [rowOf(name, ready)];
    });
  }

  async #answer<T>(value: T): Promise<T> {
    const { isGone } = this;
    await new Promise((resolve) => setTimeout(resolve, this.delayMs));
    if (isGone) throw new Error('gone');
    return value;
  }

  /** `ready` null: it is deleted. */
  change(number: number, ready: number | null): void {
    const { service } = rowOf(`shop/s${number}`, 0);
    if (ready === null) this.services.delete(service);
    else this.services.set(service, ready);
    const told = { id: 1, family: 'IPv4', causes: [], effects: [], seenAt: 1, plannedAt: 1 } as const;
    this.tell([{ kind: 'change', service, ...told }]);
  }

  get shown(): readonly (readonly [string, number])[] {
    return this.store.current.lines.map(({ service, ready }) => [service, ready]);
  }
}

const step = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ number: fc.integer({ min: 1, max: 2 }), ready: fc.option(fc.nat(9)) }),
  },
  { weight: 1, arbitrary: fc.record({ changes: fc.constantFrom(50, 400) }) },
  { weight: 4, arbitrary: fc.record({ waitMs: fc.constantFrom(200, 1000) }) },
  { weight: 2, arbitrary: fc.record({ delayMs: fc.constantFrom(0, 5000) }) },
  { weight: 1, arbitrary: fc.record({ isGone: fc.boolean() }) },
  { weight: 2, arbitrary: fc.constant('gap' as const) },
);

/** An answer for one service comes after a newer table. */
const LATE = [
  { waitMs: 1000 },
  { delayMs: 5000 },
  { number: 1, ready: 2 },
  { waitMs: 200 },
  { delayMs: 0 },
  { number: 1, ready: 3 },
  'gap',
] as const;

test('it ends as what the proxy has, with few questions', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 40 }), async (steps) => {
      const proxy = new Proxy();
      const begun = Date.now();
      const close = proxy.store.open();
      for (const each of steps) {
        if (each === 'gap') proxy.tell([]);
        else if ('number' in each) proxy.change(each.number, each.ready);
        else if ('changes' in each)
          for (let number = 1; number <= each.changes; number++) proxy.change(number, 7);
        else if ('waitMs' in each) await vi.advanceTimersByTimeAsync(each.waitMs);
        else Object.assign(proxy, each);
      }
      proxy.isGone = false;
      proxy.delayMs = 0;
      await vi.advanceTimersByTimeAsync(10_000);
      // Another stream, after which everything is asked for.
      if (proxy.store.current.failure) proxy.tell([]);
      await vi.advanceTimersByTimeAsync(60_000);
      expect(proxy.shown).toEqual([...proxy.services].sort(([a], [b]) => (a < b ? -1 : 1)));
      expect(proxy.store.current.failure).toBeUndefined();
      expect(proxy.asked.length).toBeLessThan(5 + (Date.now() - begun) / 150);
      close();
    }),
    { examples: [[[...LATE]]] },
  );
});

test('after events, only what changed is asked for, together; after very many, all of it', async () => {
  const proxy = new Proxy();
  proxy.store.open();
  await vi.advanceTimersByTimeAsync(1000);
  proxy.change(1, 9);
  proxy.change(2, null);
  proxy.change(4, 3);
  await vi.advanceTimersByTimeAsync(1000);
  expect(proxy.asked).toEqual(['all', 'shop/s1 shop/s2 shop/s4']);
  for (let number = 1; number <= 400; number++) proxy.change(number, 1);
  await vi.advanceTimersByTimeAsync(2000);
  expect(proxy.asked.slice(2, 3)).toEqual(['all']);
});
