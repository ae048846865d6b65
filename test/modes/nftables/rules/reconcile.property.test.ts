/** Whatever changes, and whatever fails on the way: in the end the kernel has what the plan says. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { survivorOf } from '../../anySteps.ts';
import { anySteps, perform } from './anySteps.ts';
import { Killed } from './fakeKernel.ts';
import { Harness } from './harness.ts';
import { numRuns } from '../../../support/randomCases.ts';

async function expectServed(harness: Harness): Promise<void> {
  expect(harness.world).toEqual(await harness.fromScratch());
}

const timeout = 60_000 + 200 * numRuns;

test('without faults, after every sync', { timeout }, async () => {
  await fc.assert(
    fc.asyncProperty(anySteps, async (steps) => {
      let harness = new Harness();
      for (const step of steps) {
        harness = survivorOf(harness, step);
        await perform(harness, step);
        await expectServed(harness);
      }
    }),
    { numRuns },
  );
});

test('with transactions that the kernel refuses one time in five', { timeout }, async () => {
  await fc.assert(
    fc.asyncProperty(anySteps, fc.infiniteStream(fc.nat(4)), async (steps, dice) => {
      let harness = new Harness();
      harness.kernel.fault = () => (dice.next().value === 0 ? 'ENOMEM' : undefined);
      for (const step of steps) {
        harness = survivorOf(harness, step);
        await perform(harness, step).catch(() => undefined);
      }
      harness.kernel.fault = () => undefined;
      // Nothing has changed, but what was refused is known, and tried again.
      expect((await harness.sync()).refused.size).toBe(0);
      await expectServed(harness);
    }),
    { numRuns },
  );
});

test('with a client that breaks at any commit or reading', { timeout }, async () => {
  await fc.assert(
    fc.asyncProperty(anySteps, fc.infiniteStream(fc.nat(8)), async (steps, dice) => {
      let harness = new Harness();
      for (const step of steps) {
        harness = survivorOf(harness, step);
        let left = dice.next().value;
        harness.kernel.before = () => {
          if (left-- === 0) throw new Error('no answer');
        };
        await perform(harness, step).catch(() => undefined);
      }
      harness.kernel.before = () => {};
      await harness.sync();
      await expectServed(harness);
    }),
    { numRuns },
  );
});

test('killed before or after any commit, and started again without memory', { timeout }, async () => {
  await fc.assert(
    fc.asyncProperty(anySteps, fc.infiniteStream(fc.nat(12)), async (steps, dice) => {
      let harness = new Harness();
      for (const step of steps) {
        harness = survivorOf(harness, step);
        let left = dice.next().value;
        const maybeKilled = (): void => {
          if (left-- === 0) throw new Killed();
        };
        harness.kernel.before = maybeKilled;
        harness.kernel.after = maybeKilled;
        await perform(harness, step).catch((error: unknown) => {
          if (!(error instanceof Killed)) throw error;
          harness = harness.restarted();
        });
      }
      harness = harness.restarted();
      await harness.sync();
      await expectServed(harness);
    }),
    { numRuns },
  );
});
