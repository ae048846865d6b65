/** One large Service in IPVS mode: a start costs what there is, not its square. */
import { expect, test } from 'vitest';
import { growthOf, LINEAR } from '../../../support/operations.ts';
import { Harness } from './harness.ts';

const addresses = (net: string, count: number): readonly string[] =>
  Array.from({ length: count }, (_, index) => `${net}.${index >> 8}.${index & 255}`);

function service(externalIPs: number): string {
  const extra = externalIPs > 0 ? ` ext=${addresses('172.20', externalIPs).join(',')}` : '';
  return `x/large 10.96.0.1 80@30080${extra}`;
}

function endpoints(count: number, from = 0): string {
  const all = addresses('10.1', count).slice(from);
  return `x/large-1 of large 8080 ${all.map((each) => `| ${each} node-b`).join(' ')}`;
}

const STARTS: readonly (readonly [
  string,
  (size: number) => readonly string[],
  (size: number) => readonly string[],
])[] = [
  ['external IPs', (size) => [service(size), endpoints(3)], () => []],
  ['external IPs that are gone', (size) => [service(size), endpoints(3)], () => [service(0)]],
  ['endpoints that are others', (size) => [service(0), endpoints(size)], (size) => [endpoints(size + 7, 7)]],
];

test.each(STARTS)('a start with %s', async (_, before, after) => {
  const growth = await growthOf(async (size) => {
    const harness = new Harness();
    await harness.sync(...before(size));
    harness.cluster.tell(...after(size));
    const next = harness.restarted();
    return () => next.sync();
  });
  expect(growth).toBeLessThan(LINEAR);
});
