/** While a table changes, in however many transactions, a packet goes where it went before or where it will go. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Packet } from '../../../../src/plan/decide.ts';
import { type WalkTable } from '../../../../src/modes/nftables/rules/walk.ts';
import { survivorOf } from '../../anySteps.ts';
import { anySteps, perform, type Step } from './anySteps.ts';
import type { FakeNftKernel } from './fakeKernel.ts';
import { Harness, type HarnessOptions } from './harness.ts';
import { outcomesIn, outcomesOf, PACKETS, printPacket } from './packets.ts';
import { numRuns } from '../../../support/randomCases.ts';

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

const isIp = (outcome: string): boolean => outcome.includes('.');

/** Whom anybody met at the same destination. */
function metAt(packet: string, all: ReturnType<typeof fates>): readonly string[] {
  const destination = packet.slice(packet.indexOf(' '));
  return [...all].flatMap(([other, outcomes]) =>
    other.endsWith(destination) ? [...outcomes].filter(isIp) : [],
  );
}

/** As a packet sees it that is on its way while a change is made: so many lookups before it, the others after. */
function between(before: WalkTable, after: WalkTable, lookups: number): WalkTable {
  let asked = 0;
  return {
    chains: before.chains,
    sets: before.sets,
    find: (set, key) => (asked++ < lookups ? before : after).find(set, key),
  };
}

const MOST_LOOKUPS = 30;

/** As it is, and as if every service were too large for one transaction. */
const CHUNKS: readonly HarnessOptions[] = [{}, { firstChunk: 4 }];
const runsWith = ({ firstChunk }: HarnessOptions): number =>
  Math.ceil(firstChunk === undefined ? numRuns : numRuns / 5);

/** Random steps seldom have it: an external IP becomes a cluster IP, and the reverse. */
const EXAMPLES = [
  'a/x 10.96.0.3 p:80 q:81 ext=10.96.0.1',
  'a/x 10.96.0.1 80 affinity=60',
  'a/x 10.96.0.3 p:80 q:81 ext=10.96.0.1',
].map((line): Step => ({ kind: 'sync', lines: [line] }));

/** Before each of the steps: the kernel, and how to take the step. */
async function* harnessAt(
  options: HarnessOptions,
  steps: readonly Step[],
): AsyncGenerator<{ readonly kernel: Harness['kernel']; readonly take: () => Promise<void> }> {
  let harness = new Harness(options);
  await harness.sync();
  for (const step of steps) {
    harness = survivorOf(harness, step);
    harness.wait(60_000); // so that what the last steps left unused goes now
    const at = harness;
    yield { kernel: at.kernel, take: () => perform(at, step) };
  }
}

test.each(CHUNKS)(
  'nobody falls between two lookups, with %o',
  { timeout: 300_000 + 4000 * numRuns },
  async (options) => {
    await fc.assert(
      fc.asyncProperty(ordinarySteps, async (steps) => {
        for await (const { kernel, take } of harnessAt(options, steps)) {
          const tables = [kernel.walkable];
          kernel.after = () => tables.push(kernel.walkable);
          await take();
          for (const [index, after] of tables.entries()) {
            const before = tables[index - 1];
            if (!before) continue;
            const isServed = (table: WalkTable, packet: Packet): boolean =>
              outcomesIn(table, packet).every(({ kind }) => kind === 'forward');
            // One expectation for all of them: thousands take seconds.
            const lost: string[] = [];
            for (const packet of PACKETS) {
              if (!isServed(before, packet) || !isServed(after, packet)) continue;
              for (let lookups = 0; lookups < MOST_LOOKUPS; lookups++)
                if (!isServed(between(before, after, lookups), packet))
                  lost.push(`${printPacket(packet)} is lost at ${lookups}`);
            }
            expect(lost).toEqual([]);
          }
        }
      }),
      { numRuns: Math.ceil(runsWith(options) / 4) },
    );
  },
);

test.each(CHUNKS)(
  'nobody is refused meanwhile, with %o',
  { timeout: 300_000 + 4000 * numRuns },
  async (options) => {
    await fc.assert(
      fc.asyncProperty(ordinarySteps, async (steps) => {
        for await (const { kernel, take } of harnessAt(options, steps)) {
          const before = fates(kernel);
          const meanwhile: ReturnType<typeof fates>[] = [];
          kernel.after = () => meanwhile.push(fates(kernel));
          await take();
          const now = fates(kernel);
          const astray: string[] = [];
          for (const seen of meanwhile)
            for (const [packet, outcomes] of seen) {
              const expected = new Set([...(before.get(packet) ?? []), ...(now.get(packet) ?? [])]);
              // Somebody who is let in from now on may still meet an endpoint that others met until now.
              const others = [...expected].some(isIp) ? metAt(packet, before) : [];
              const all = new Set([...expected, ...others]);
              for (const each of outcomes) if (!all.has(each)) astray.push(`${packet} -> ${each}`);
            }
          expect(astray).toEqual([]);
        }
      }),
      { numRuns: runsWith(options), examples: [[EXAMPLES]] },
    );
  },
);
