/** While a table changes, in however many transactions, a packet goes where it went before or where it will go. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { walk } from '../../../src/backends/nftables/walk.ts';
import { ip } from '../../plan/given.ts';
import { anySteps, perform, type Step, survivorOf } from './anySteps.ts';
import { CLIENT } from './clients.ts';
import type { FakeNftKernel } from './fakeKernel.ts';
import { Harness } from './harness.ts';

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

const SOURCES = [
  { source: CLIENT.source, inInterface: 'eth0' },
  { source: ip('9.9.9.9'), inInterface: 'eth0' },
  { source: ip('10.244.0.1'), inInterface: 'cni0' },
  { source: ip('192.0.2.10'), inInterface: undefined },
];
const DESTINATIONS = ['10.96.0.1', '10.96.0.2', '1.1.1.1', '2.2.2.2', '192.0.2.10'].map(ip);
const PORTS = [
  ['TCP', 80],
  ['TCP', 81],
  ['UDP', 53],
  ['TCP', 30_080],
] as const;

/** By packet: everything that can become of it. */
function fates({ walkable }: FakeNftKernel): ReadonlyMap<string, ReadonlySet<string>> {
  const result = new Map<string, ReadonlySet<string>>();
  for (const { source, inInterface } of SOURCES)
    for (const destination of DESTINATIONS)
      for (const [protocol, port] of PORTS) {
        const packet = { source, inInterface, destination, protocol, port };
        const { outcomes } = walk(walkable, packet, { addresses: [ip('192.0.2.10')] }, { record: false });
        const texts = outcomes.map((outcome) => (outcome.kind === 'forward' ? outcome.to : outcome.kind));
        result.set(`${source} ${protocol} ${destination}:${port}`, new Set(texts));
      }
  return result;
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
