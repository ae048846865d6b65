/** While a table changes, in however many transactions, a packet goes where it went before or where it will go. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { survivorOf } from '../anySteps.ts';
import { anySteps, perform, type Step } from './anySteps.ts';
import type { FakeNftKernel } from './fakeKernel.ts';
import { Harness } from './harness.ts';
import { outcomesOf, PACKETS, printPacket } from './packets.ts';

/** For a longer search: JUNCTION_RUNS=3000. */
const numRuns = Number(process.env['JUNCTION_RUNS'] ?? 100);

/** What somebody else breaks is broken, and a set of another kind begins empty. */
const ORDINARY: ReadonlySet<Step['kind']> = new Set([
  'sync',
  'full',
  'restart',
  'zone',
  'nodePorts',
  'nodeIps',
]);
const ordinarySteps = anySteps.map((steps) => steps.filter(({ kind }) => ORDINARY.has(kind)));

/** By packet: everything that can become of it. */
function fates(kernel: FakeNftKernel): ReadonlyMap<string, ReadonlySet<string>> {
  return new Map(
    PACKETS.map((packet) => {
      const texts = outcomesOf(kernel, packet).map((outcome) =>
        outcome.kind === 'forward' ? outcome.to : outcome.kind,
      );
      return [printPacket(packet), new Set(texts)];
    }),
  );
}

test('nobody is refused meanwhile', { timeout: 60_000 + 400 * numRuns }, async () => {
  await fc.assert(
    fc.asyncProperty(ordinarySteps, async (steps) => {
      let harness = new Harness();
      await harness.sync();
      for (const step of steps) {
        harness = survivorOf(harness, step);
        const { kernel } = harness;
        const before = fates(kernel);
        const meanwhile: ReturnType<typeof fates>[] = [];
        kernel.after = () => meanwhile.push(fates(kernel));
        await perform(harness, step);
        const now = fates(kernel);
        for (const seen of meanwhile)
          for (const [packet, outcomes] of seen) {
            const expected = new Set([...(before.get(packet) ?? []), ...(now.get(packet) ?? [])]);
            expect(
              [...outcomes].filter((each) => !expected.has(each)).map((each) => `${packet} -> ${each}`),
            ).toEqual([]);
          }
      }
    }),
    { numRuns },
  );
});
