/** Whatever changes, and whatever fails on the way: in the end the kernel has what the plan says. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { survivorOf } from '../../anySteps.ts';
import { Killed } from './fakeKernel.ts';
import { Harness } from './harness.ts';
import { anySteps, expectServed, expectSettled, FOREIGN_WORLD, perform, withForeigners } from './anySteps.ts';

test('without faults, after every sync', async () => {
  await fc.assert(
    fc.asyncProperty(anySteps, async (steps) => {
      let harness = new Harness();
      for (const step of steps) {
        harness = survivorOf(harness, step);
        await perform(harness, step);
        await expectServed(harness);
      }
      await expectSettled(harness);
    }),
  );
});

test('with connections that keep endpoints on their way out', async () => {
  await fc.assert(
    fc.asyncProperty(anySteps, fc.infiniteStream(fc.nat(2)), async (steps, dice) => {
      let harness = new Harness();
      for (const step of steps) {
        connect(harness, dice);
        harness = survivorOf(harness, step);
        await perform(harness, step);
        await expectServed(harness);
      }
      await expectSettled(harness);
    }),
  );
});

/** A virtual server whose entry in a set was refused is known to the process that made it, and to nobody after it. */
const inOneProcess = anySteps.map((steps) => steps.filter(({ kind }) => kind !== 'restart'));

test('with edits that the kernel refuses one time in ten', async () => {
  await fc.assert(
    fc.asyncProperty(inOneProcess, fc.infiniteStream(fc.nat(9)), async (steps, dice) => {
      const harness = new Harness();
      harness.kernel.fault = () => (dice.next().value === 0 ? 'ENOMEM' : undefined);
      for (const step of steps) {
        connect(harness, dice);
        await perform(harness, step).catch(() => undefined);
      }
      harness.kernel.fault = () => undefined;
      // Nothing has changed, but what was refused is known, and tried again.
      const report = await harness.sync();
      expect(report.refused.size).toBe(0);
      await expectSettled(harness);
    }),
  );
});

test('with a client that breaks at any edit or reading', async () => {
  await fc.assert(
    fc.asyncProperty(inOneProcess, fc.infiniteStream(fc.nat(40)), async (steps, dice) => {
      const harness = new Harness();
      for (const step of steps) {
        connect(harness, dice);
        let left = dice.next().value;
        harness.kernel.before = () => {
          if (left-- === 0) throw new Error('no answer');
        };
        await perform(harness, step).catch(() => undefined);
      }
      harness.kernel.before = () => {};
      await harness.sync();
      await expectServed(harness);
      await expectSettled(harness);
    }),
  );
});

/**
 * A process that starts after its node has lost an address, or after somebody emptied a set, cannot know that a virtual
 * server there was ours.
 */
const withItsTraces = anySteps.map((steps) =>
  steps.filter(({ kind }) => kind !== 'nodeIps' && kind !== 'tamper'),
);

test('killed at any edit, and started again without memory', async () => {
  await fc.assert(
    fc.asyncProperty(
      withItsTraces,
      fc.infiniteStream(fc.nat(40)),
      fc.infiniteStream(fc.nat(1)),
      async (steps, dice, connections) => {
        const kernel = withForeigners();
        let harness = new Harness({ kernel });
        for (const step of steps) {
          connect(harness, connections);
          harness = survivorOf(harness, step);
          let left = dice.next().value;
          kernel.before = () => {
            if (left-- === 0) throw new Killed();
          };
          await perform(harness, step).catch((error: unknown) => {
            if (!(error instanceof Killed)) throw error;
            harness = harness.restarted();
          });
        }
        harness = harness.restarted();
        await harness.sync();
        await expectServed(harness, FOREIGN_WORLD);
        await expectSettled(harness, FOREIGN_WORLD);
      },
    ),
  );
});

/** Some endpoints have connections. */
function connect({ kernel }: Harness, counts: Iterator<number>): void {
  for (const { destinations } of kernel.servers.values())
    for (const each of destinations.values()) each.connections = Number(counts.next().value);
}
