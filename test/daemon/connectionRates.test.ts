import { expect, test } from 'vitest';
import { ConnectionRates } from '../../src/daemon/api/connectionRates.ts';
import type { ConnectionReading } from '../../src/telemetry/metrics/connections.ts';
import { FakeClock } from '../time/fakeClock.ts';

function reading(servicePort: string, connections: number, isCountedElsewhere = false): ConnectionReading {
  const endpoint = '10.244.0.1:80';
  return {
    family: 'IPv4',
    servicePort,
    protocol: 'TCP',
    endpoint,
    element: `${servicePort} ${connections}`,
    connections,
    isCountedElsewhere,
  };
}

interface World {
  readonly clock: FakeClock;
  readonly rates: ConnectionRates;
  counted: readonly ConnectionReading[] | undefined;
  reads: number;
}

function world(): World {
  const clock = new FakeClock();
  const made: World = {
    clock,
    counted: [],
    reads: 0,
    rates: new ConnectionRates({
      clock,
      read: async () => {
        made.reads++;
        if (!made.counted) throw new Error('the kernel does not answer');
        return made.counted;
      },
    }),
  };
  return made;
}

test('the connections between two readings, by service; of one reading, none', async () => {
  const its = world();
  its.counted = [reading('shop/web:http', 100), reading('shop/web:https', 20), reading('shop/idle', 5)];
  await its.rates.refresh();
  expect(its.rates.of('shop/web')).toBeUndefined();
  expect(its.rates.takeChanged()).toEqual([]);
  await its.clock.advance(10_000);
  its.counted = [
    reading('shop/web:http', 130),
    reading('shop/web:http', 1000, true),
    reading('shop/web:https', 40),
    reading('shop/idle', 5),
    reading('shop/new', 10),
  ];
  await its.rates.refresh();
  expect([its.rates.of('shop/web'), its.rates.of('shop/idle'), its.rates.of('shop/new')]).toEqual([
    5,
    undefined,
    1,
  ]);
  expect(its.rates.takeChanged()).toEqual(['shop/web', 'shop/new']);
  expect(its.rates.takeChanged()).toEqual([]);
});

test('by endpoint: what it was sent since its rules were written, and a second', async () => {
  const its = world();
  its.counted = [reading('shop/web:http', 100), reading('shop/web:http', 20), reading('shop/idle', 5)];
  await its.rates.refresh();
  const web = (): unknown => its.rates.ofEndpoint('shop/web:http/TCP', '10.244.0.1:80');
  expect(web()).toEqual({ connections: 120 });
  await its.clock.advance(10_000);
  its.counted = [reading('shop/web:http', 150), reading('shop/web:http', 20), reading('shop/idle', 5)];
  await its.rates.refresh();
  expect(web()).toEqual({ connections: 170, rate: 5 });
  expect(its.rates.ofEndpoint('shop/idle/TCP', '10.244.0.1:80')).toEqual({ connections: 5 });
  expect(its.rates.ofEndpoint('shop/web:http/UDP', '10.244.0.1:80')).toBeUndefined();
  expect(its.rates.ofEndpoint('shop/web:http/TCP', '10.244.0.2:80')).toBeUndefined();
});

test('a count that fell was written again: no rate, and the line without one is a change', async () => {
  const its = world();
  its.counted = [reading('shop/web', 100)];
  await its.rates.refresh();
  await its.clock.advance(5000);
  its.counted = [reading('shop/web', 110)];
  await its.rates.refresh();
  expect(its.rates.of('shop/web')).toBe(2);
  its.rates.takeChanged();
  await its.clock.advance(5000);
  its.counted = [reading('shop/web', 3)];
  await its.rates.refresh();
  expect(its.rates.of('shop/web')).toBeUndefined();
  expect(its.rates.takeChanged()).toEqual(['shop/web']);
});

test('no more often than every five seconds; what is older than two minutes says nothing', async () => {
  const its = world();
  its.counted = [reading('shop/web', 1)];
  await its.rates.refresh();
  await its.rates.refresh();
  expect(its.reads).toBe(1);
  await its.clock.advance(5000);
  its.counted = [reading('shop/web', 6)];
  await its.rates.refresh();
  expect([its.reads, its.rates.of('shop/web')]).toEqual([2, 1]);
  await its.clock.advance(121_000);
  const reading3 = its.rates.refresh();
  expect(its.rates.of('shop/web')).toBeUndefined();
  await reading3;
  expect(its.rates.of('shop/web')).toBeUndefined();
});

test('a kernel that does not answer leaves no rates, and is asked again', async () => {
  const its = world();
  its.counted = undefined;
  await its.rates.refresh();
  await its.clock.advance(5000);
  its.counted = [reading('shop/web', 6)];
  await its.rates.refresh();
  expect([its.reads, its.rates.of('shop/web')]).toEqual([2, undefined]);
});
