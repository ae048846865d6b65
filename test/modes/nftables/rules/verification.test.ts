/** The table, compared beside syncs: what nobody notified of is found and repaired, and nothing else is. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { NFT_SETS } from '../../../../src/modes/nftables/rules/names.ts';
import { ip } from '../../../plan/given.ts';
import { survivorOf } from '../../anySteps.ts';
import { anySteps, perform, tamper, TAMPERINGS } from './anySteps.ts';
import { Harness } from './harness.ts';
import { numRuns } from '../../../support/randomCases.ts';

const WORLD = [
  'a/x 10.96.0.1 80@30080 affinity=60 lb=1.1.1.1 ranges=9.9.0.0/16',
  'a/x-1 of x 80 | 10.244.1.1 | 10.244.1.2 | 10.244.1.3',
  'a/y 10.96.0.2 80/udp 443',
  'a/y-1 of y 80 443 | 10.244.1.1 | 10.244.1.4',
];

async function started(): Promise<Harness> {
  const harness = new Harness({ settings: { serviceCidrs: [] } });
  await harness.sync(...WORLD);
  await harness.sync();
  return harness;
}

const timeout = 60_000 + 200 * numRuns;

describe('a table as it was written', () => {
  test('has no suspects, and its sets are not read', async () => {
    const harness = await started();
    harness.kernel.forget();
    const { checked, suspects } = await harness.verify();
    expect(suspects).toBe(0);
    expect(checked).toBeGreaterThan(harness.kernel.elements.length);
    expect(harness.kernel.read).toEqual([]);
    expect(await harness.sync()).toMatchObject({ kind: 'nothing', repaired: [] });
  });

  test('whatever happened to it before', { timeout }, async () => {
    await fc.assert(
      fc.asyncProperty(anySteps, fc.boolean(), async (steps, hasSizes) => {
        let harness = new Harness();
        harness.kernel.hasSizes = hasSizes;
        for (const step of steps) {
          harness = survivorOf(harness, step);
          await perform(harness, step);
          expect((await harness.verify()).suspects).toBe(0);
        }
      }),
      { numRuns },
    );
  });

  test('while it is being changed: nothing is reported that was nobody else', { timeout }, async () => {
    await fc.assert(
      fc.asyncProperty(anySteps, fc.infiniteStream(fc.nat(3)), async (steps, dice) => {
        let harness = await started();
        const wait = async (): Promise<void> => {
          for (let turns = dice.next().value ?? 0; turns > 0; turns--) await Promise.resolve();
        };
        for (const step of steps.filter(({ kind }) => kind !== 'tamper' && kind !== 'noticed')) {
          harness = survivorOf(harness, step);
          harness.kernel.delay = wait;
          const looking = harness.verify();
          await perform(harness, step);
          await looking;
          expect((await harness.sync()).repaired).toEqual([]);
          expect(harness.world).toEqual(await harness.fromScratch());
        }
      }),
      { numRuns },
    );
  });
});

describe('what another program changed, and nobody was notified of', () => {
  test.each(TAMPERINGS)('%s: the next sync repairs it', async (what) => {
    for (let which = 0; which < 60; which++) {
      const harness = await started();
      const before = harness.world;
      const comments = harness.kernel.elements.map(({ comment }) => comment).sort();
      tamper(harness.kernel, what, which);
      const isChanged =
        JSON.stringify(before) !== JSON.stringify(harness.world) ||
        JSON.stringify(comments) !==
          JSON.stringify(harness.kernel.elements.map(({ comment }) => comment).sort());
      const { suspects } = await harness.verify();
      if (isChanged) expect(suspects).toBeGreaterThan(0);
      const { kind, repaired } = await harness.sync();
      if (isChanged) expect(repaired.length).toBeGreaterThan(0);
      expect(kind).not.toBe('full');
      expect(harness.world).toEqual(before);
      expect(harness.kernel.elements.map(({ comment }) => comment).sort()).toEqual(comments);
      expect((await harness.verify()).suspects).toBe(0);
    }
  });

  test('several at a time, while changes go on', { timeout }, async () => {
    const tampering = fc.record({ what: fc.constantFrom(...TAMPERINGS), which: fc.nat(50) });
    await fc.assert(
      fc.asyncProperty(
        fc.array(tampering, { minLength: 1, maxLength: 4 }),
        anySteps,
        fc.boolean(),
        async (tamperings, steps, hasSizes) => {
          const harness = await started();
          harness.kernel.hasSizes = hasSizes;
          const changes = steps.filter(({ kind }) => kind === 'sync');
          for (const { what, which } of tamperings) {
            tamper(harness.kernel, what, which);
            const looking = harness.verify();
            for (const step of changes.splice(0, 2)) await perform(harness, step);
            await looking;
          }
          await harness.verify();
          await harness.sync();
          expect(harness.world).toEqual(await harness.fromScratch());
        },
      ),
      { numRuns },
    );
  });

  test('an element more and one less: the size of the set is the same', async () => {
    const harness = await started();
    const set = harness.kernel.table?.sets.get(NFT_SETS.serviceIPs)?.set;
    if (!set) throw new Error('no set');
    const before = harness.world;
    harness.kernel.tamper(
      { kind: 'deleteElements', set, elements: [{ set: set.name, key: { address: ip('10.96.0.2') } }] },
      { kind: 'addElements', set, elements: [{ set: set.name, key: { address: ip('8.8.8.8') } }] },
    );
    expect((await harness.verify()).suspects).toBe(2);
    expect(harness.kernel.read).toEqual([set.name]);
    expect(await harness.sync()).toMatchObject({ repaired: [`set ${set.name}`], commits: 1 });
    expect(harness.world).toEqual(before);
  });

  test('more than can be looked at one by one: the set is read', async () => {
    const harness = await started();
    const set = harness.kernel.table?.sets.get(NFT_SETS.serviceIPs)?.set;
    if (!set) throw new Error('no set');
    const before = harness.world;
    const elements = Array.from({ length: 3000 }, (_, index) => ({
      set: set.name,
      key: { address: ip(`10.1.${index >> 8}.${index & 255}`) },
    }));
    harness.kernel.tamper({ kind: 'addElements', set, elements });
    expect((await harness.verify()).suspects).toBe(1);
    await harness.sync();
    expect(harness.world).toEqual(before);
  });
});
