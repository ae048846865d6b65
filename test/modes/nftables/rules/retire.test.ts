/** Sizes of pools and time-outs that no service uses any more leave the table, some seconds later. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { walkNftables } from '../../../../src/modes/nftables/rules/walk.ts';
import { ip } from '../../../plan/given.ts';
import { survivorOf } from '../../anySteps.ts';
import { anySteps, perform } from './anySteps.ts';
import { CLIENT } from './clients.ts';
import { FakeNftKernel } from './fakeKernel.ts';
import { Harness } from './harness.ts';
import { numRuns } from '../../../support/randomCases.ts';

const LONG_MS = 60_000;

const slice = (size: number): string =>
  `a/x-1 of x 80 ${Array.from({ length: size }, (_, n) => `| 10.1.0.${n + 1} node-b`).join(' ')}`;

/** Names of all sets and chains, and how many rules each chain has. */
function partsOf({ kernel }: Harness): readonly string[] {
  const { sets, chains } = kernel.ruleset;
  return [
    ...sets.map(({ name }) => `set ${name}`),
    ...chains.map(({ name, rules }) => `chain ${name} ${rules.length}`),
  ].sort();
}

async function freshParts(harness: Harness): Promise<readonly string[]> {
  const { cluster, settings } = harness;
  const fresh = new Harness({ kernel: new FakeNftKernel(harness.kernel.family), cluster, settings });
  await fresh.sync();
  return partsOf(fresh);
}

/** Until nothing is left to be removed. */
async function settle(harness: Harness): Promise<void> {
  harness.wait(LONG_MS);
  await harness.sync();
}

test('a service that was scaled from 1 to 60 and back leaves nothing behind', async () => {
  const harness = new Harness();
  await harness.sync('a/x 10.96.0.1 80@30080', slice(1));
  const before = partsOf(harness);
  for (let size = 2; size <= 60; size++) await harness.sync(slice(size));
  const report = await harness.sync(slice(1));
  expect(report.retryAfterMs).toBeGreaterThan(0);
  expect(partsOf(harness).length).toBeGreaterThan(before.length);
  await settle(harness);
  expect(partsOf(harness)).toEqual(before);
  expect(harness.world).toEqual(await harness.fromScratch());
  expect((await harness.sync()).kind).toBe('nothing');
});

test('a size that comes back within a moment has not been away', async () => {
  const harness = new Harness();
  await harness.sync('a/x 10.96.0.1 80', slice(3));
  await harness.sync(slice(4));
  harness.wait(1000);
  await harness.sync();
  expect(harness.kernel.attempts).toBe(0);
  await harness.sync(slice(3));
  expect(harness.sent.flat().filter((line) => /^(?:set|rule|addChain)/.test(line))).toEqual([]);
  await settle(harness);
  expect(partsOf(harness)).toEqual(await freshParts(harness));
});

test('what is removed is asked for by nothing: the rules of other sizes stay', async () => {
  const harness = new Harness();
  await harness.sync('a/x 10.96.0.1 80', slice(3), 'a/y 10.96.0.2 80', 'a/y-1 of y 80 | 10.2.0.1 node-b');
  await harness.sync('- a/x', '- a/x-1');
  harness.wait(LONG_MS);
  const report = await harness.sync();
  expect(harness.sent).toEqual([['deleteRule', 'deleteSet any-3']]);
  expect(report).toMatchObject({
    kind: 'incremental',
    objects: 0,
    retryAfterMs: undefined,
    counts: { chains: 1 },
  });
});

test('a removal that the kernel refuses is made good by reading the table', async () => {
  const harness = new Harness();
  await harness.sync('a/x 10.96.0.1 80', slice(20));
  await harness.sync(slice(3));
  harness.wait(LONG_MS);
  harness.kernel.tamper({ kind: 'flushChain', chain: 'any' });
  expect((await harness.sync()).kind).toBe('full');
  expect(partsOf(harness)).toEqual(await freshParts(harness));
});

describe('many distinct time-outs', () => {
  const count = 1500;
  const lines = Array.from({ length: count }, (_, n) => [
    `a/s${n} 10.97.${n >> 8}.${n & 255} 80 affinity=${n + 1}`,
    `a/s${n}-1 of s${n} 80 | 10.1.0.1 node-b`,
  ]).flat();
  const PLAIN = ['b/plain 10.96.0.1 80', 'b/plain-1 of plain 80 | 10.1.0.1 node-b'];

  const lookups = ({ kernel }: Harness): readonly number[] =>
    walkNftables(kernel.walkable, CLIENT, { addresses: [ip('192.0.2.10')] }).outcomes.map(
      (each) => each.lookups,
    );

  test('cost a service without affinity what one costs, and leave with those who had them', async () => {
    const one = new Harness();
    await one.sync(...PLAIN, 'a/s0 10.97.0.0 80 affinity=1', 'a/s0-1 of s0 80 | 10.1.0.1 node-b');
    const harness = new Harness();
    await harness.sync(...PLAIN, ...lines);
    expect(lookups(harness)).toEqual(lookups(one));
    const sent = await harness.sync(
      ...Array.from({ length: count }, (_, n) => [`- a/s${n}`, `- a/s${n}-1`]).flat(),
    );
    expect(sent.kind).toBe('incremental');
    await settle(harness);
    expect(partsOf(harness)).toEqual(await freshParts(harness));
    expect(harness.kernel.taken.length).toBeGreaterThan(1); // in parts, so that no one of them is long
  });
});

test('two time-outs at one address: a node port, and a service whose address the node has', async () => {
  const harness = new Harness();
  await harness.sync('a/x 10.96.0.1 80@30080 affinity=60', slice(1));
  await harness.sync('b/y 10.96.0.2 30080 ext=192.0.2.10 affinity=90', 'b/y-1 of y 30080 | 10.2.0.1 node-b');
  expect(harness.world).toEqual(await harness.fromScratch());
  await harness.sync('- a/x');
  expect(harness.world).toEqual(await harness.fromScratch());
});

test('whatever happened: in the end the table is that of a fresh start, part by part', {
  timeout: 300_000 + 4000 * numRuns,
}, async () => {
  await fc.assert(
    fc.asyncProperty(anySteps, fc.infiniteStream(fc.nat(9)), async (steps, dice) => {
      let harness = new Harness();
      harness.kernel.fault = () => (dice.next().value === 0 ? 'ENOMEM' : undefined);
      for (const step of steps) {
        harness = survivorOf(harness, step);
        await perform(harness, step).catch(() => undefined);
        harness.wait(2000);
      }
      harness.kernel.fault = () => undefined;
      await harness.sync();
      await settle(harness);
      expect(partsOf(harness)).toEqual(await freshParts(harness));
    }),
    { numRuns },
  );
});
