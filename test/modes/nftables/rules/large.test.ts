/** One large Service in nftables mode: affinity entries and a start cost what there is, not its square. */
import { expect, test } from 'vitest';
import type { Element } from '../../../../src/modes/nftables/rules/table.ts';
import type { Ip } from '../../../../src/model/ip.ts';
import { ip } from '../../../plan/given.ts';
import { growthOf, LINEAR } from '../../../support/operations.ts';
import { Harness } from './harness.ts';

const address = (net: string, index: number): Ip => ip(`${net}.${index >> 8}.${index & 255}`);
const addresses = (net: string, count: number): readonly Ip[] =>
  Array.from({ length: count }, (_, index) => address(net, index));

interface Shape {
  readonly externalIPs?: number;
  readonly affinity?: boolean;
}

function service({ externalIPs = 0, affinity = false }: Shape): string {
  return [
    'x/large 10.96.0.1 80@30080',
    externalIPs > 0 ? `ext=${addresses('172.20', externalIPs).join(',')}` : '',
    affinity ? 'affinity=60' : '',
  ].join(' ');
}

function endpoints(count: number, from = 0): string {
  const all = addresses('10.1', count).slice(from);
  return `x/large-1 of large 8080 ${all.map((each) => `| ${each} node-b`).join(' ')}`;
}

/** Elements in a transaction: the kernel in memory copies a set for each. */
const firstChunk = 1_000_000;

async function written(size: number, ...lines: readonly string[]): Promise<Harness> {
  const harness = new Harness({
    firstChunk,
    settings: { nodeIps: addresses('192.168', size), counters: false },
  });
  await harness.sync(...lines);
  return harness;
}

function learn(harness: Harness, clients: number, externalIPs: number): void {
  const set = harness.kernel.table?.sets.get('affinity-tcp')?.set;
  if (!set) throw new Error('no affinity map');
  const elements = Array.from(
    { length: clients },
    (_, index): Element => ({
      set: set.name,
      key: {
        address: address('203.0', index),
        secondAddress: address('172.20', index % externalIPs),
        port: 80,
      },
      endpoint: { ip: address('10.1', index % 10), port: 8080 },
    }),
  );
  harness.kernel.tamper({ kind: 'addElements', set, elements });
}

test('affinity: an endpoint leaves, with many frontends, clients and addresses of the node', async () => {
  const growth = await growthOf(async (size) => {
    const harness = await written(size, service({ externalIPs: size, affinity: true }), endpoints(10));
    learn(harness, size, size);
    return async () => {
      await harness.sync(endpoints(10, 1));
      expect(harness.kernel.allClients).toHaveLength(size * 0.9);
    };
  });
  expect(growth).toBeLessThan(LINEAR);
});

test('affinity: endpoints leave, with many endpoints', async () => {
  const growth = await growthOf(async (size) => {
    const harness = await written(size, service({ externalIPs: 5, affinity: true }), endpoints(size));
    learn(harness, size, 5);
    return async () => {
      await harness.sync(endpoints(size, 5));
      expect(harness.kernel.allClients).toHaveLength(size / 2);
    };
  });
  expect(growth).toBeLessThan(LINEAR);
});

const STARTS: readonly (readonly [
  string,
  (size: number) => readonly string[],
  (size: number) => readonly string[],
])[] = [
  ['external IPs', (size) => [service({ externalIPs: size }), endpoints(3)], () => []],
  [
    'external IPs that are gone',
    (size) => [service({ externalIPs: size }), endpoints(3)],
    () => [service({}), endpoints(3)],
  ],
  ['endpoints that are others', (size) => [service({}), endpoints(size)], (size) => [endpoints(size + 7, 7)]],
];

test.each(STARTS)('a start with %s', async (_, before, after) => {
  const growth = await growthOf(async (size) => {
    const harness = await written(size, ...before(size));
    harness.cluster.tell(...after(size));
    const next = harness.restarted();
    return async () => {
      expect((await next.sync()).refused.size).toBe(0);
    };
  });
  expect(growth).toBeLessThan(LINEAR);
});
