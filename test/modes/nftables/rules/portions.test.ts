/** A large service's change: how many transactions, how large, and that the work on it can be interrupted. */
import { expect, test } from 'vitest';
import { diffElements, withoutGaps } from '../../../../src/modes/nftables/rules/diff.ts';
import { LARGEST_DIRECT_POOL } from '../../../../src/modes/nftables/rules/names.ts';
import type { Element } from '../../../../src/modes/nftables/rules/table.ts';
import { ip } from '../../../plan/given.ts';
import { Harness } from './harness.ts';

const CHUNK = 100;

function endpoints(count: number, first = 0): string {
  return Array.from(
    { length: count },
    (_, index) => `| 10.244.${(first + index) >> 8}.${(first + index) & 255}`,
  ).join(' ');
}

function sizes(harness: Harness): readonly number[] {
  return harness.kernel.taken.map((transaction) =>
    transaction.reduce(
      (sum, operation) => sum + ('elements' in operation ? operation.elements.length : 0),
      0,
    ),
  );
}

test('a pool of another size comes and goes in portions, and packets are led there by one of them', async () => {
  const harness = new Harness({ firstChunk: CHUNK });
  harness.tick = 15; // neither quick nor slow
  await harness.sync('a/x 10.96.0.1 80', `a/x-1 of x 80 ${endpoints(600)}`);
  await harness.sync(`a/x-1 of x 80 ${endpoints(601)}`);
  expect(Math.max(...sizes(harness))).toBeLessThanOrEqual(CHUNK);
  expect(sizes(harness).reduce((sum, size) => sum + size, 0)).toBe(600 + 601 + 2);
  const switches = harness.sent.filter((lines) => lines.some((line) => line.includes('any-large {')));
  expect(switches).toHaveLength(1);
  expect(harness.world).toEqual(await harness.fromScratch());
});

test('many frontends come in portions, each of them whole', async () => {
  const harness = new Harness({ firstChunk: CHUNK });
  harness.tick = 15; // neither quick nor slow
  await harness.sync();
  const ips = Array.from({ length: 300 }, (_, index) => `1.1.${index >> 8}.${index & 255}`);
  await harness.sync(`a/x 10.96.0.1 80 ext=${ips.join(',')}`, `a/x-1 of x 80 ${endpoints(2)}`);
  expect(Math.max(...sizes(harness))).toBeLessThan(CHUNK + 4);
  const split = ips.filter(
    (address) =>
      harness.sent.filter((lines) => lines.some((line) => line.includes(`{ ${address} . `))).length > 1,
  );
  expect(split).toEqual([]);
  expect(harness.world).toEqual(await harness.fromScratch());
});

test('the work on one large service port can be interrupted', () => {
  const pool = (set: string, size: number): readonly Element[] =>
    Array.from({ length: size }, (_, index) => ({
      set,
      key: { address: ip('10.96.0.1'), protocol: 'TCP', port: 80, index },
      endpoint: { ip: ip('10.244.0.1'), port: 80 },
    }));
  const [before, after] = [pool('any-20000', 20_000), pool('any-20001', 20_001)];
  expect(LARGEST_DIRECT_POOL).toBeLessThan(20_000);
  expect([...diffElements(before, after)].length).toBeGreaterThan(50);
  expect([...withoutGaps([{ owner: 'a/x', removes: before, adds: after }])].length).toBeGreaterThan(50);
});
