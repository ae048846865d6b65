/** Whatever happens to a node, in whatever order: in the end the kernel has what a first start would write. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { anyServiceLine, anySliceLine } from '../plan/anyCluster.ts';
import { ip } from '../plan/given.ts';
import { MECHANISMS, memorySide } from './memory.ts';
import { ContractNode, type Deed } from './node.ts';

/** For a longer search: JUNCTION_RUNS=3000; to repeat one: JUNCTION_SEED. */
const numRuns = Number(process.env['JUNCTION_RUNS'] ?? 50);
const seed = process.env['JUNCTION_SEED'];
const parameters = { numRuns, ...(seed !== undefined && { seed: Number(seed) }) };

type Step =
  | { readonly kind: 'serve'; readonly lines: readonly string[] }
  | { readonly kind: 'zone'; readonly zone: string }
  | { readonly kind: 'addresses'; readonly addresses: readonly string[] }
  | { readonly kind: 'restart' | 'rewrite' | 'lose' }
  | { readonly kind: 'refuse'; readonly text: string | undefined }
  | { readonly kind: 'kill'; readonly writes: number }
  | { readonly kind: 'tamper'; readonly deed: Deed };

const deletion = fc.constantFrom('a/x', 'a/y', 'b/z', 'a/x-1', 'a/y-1', 'b/z-1').map((path) => `- ${path}`);
const line = fc.oneof(
  { weight: 4, arbitrary: anyServiceLine },
  { weight: 4, arbitrary: anySliceLine },
  { weight: 2, arbitrary: deletion },
);
const anyStep: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({ kind: fc.constant('serve' as const), lines: fc.array(line, { maxLength: 4 }) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constantFrom('restart' as const, 'rewrite' as const, 'lose' as const),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('zone' as const), zone: fc.constantFrom('a', 'b') }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('addresses' as const),
      addresses: fc.constantFrom(['192.0.2.10', '192.0.2.11'], ['192.0.2.10'], ['1.1.1.1', '192.0.2.10'], []),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('refuse' as const),
      text: fc.constantFrom(undefined, '10.244.0.1', '10.96.0.2', '30080', 'deletions', 'everything'),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('kill' as const), writes: fc.nat(6) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('tamper' as const),
      deed: fc.constantFrom<Deed>(
        { kind: 'flush' },
        { kind: 'deleteHooks' },
        { kind: 'addOwnRules' },
        { kind: 'deleteService', clusterIP: ip('10.96.0.1') },
      ),
    }),
  },
);

async function take(node: ContractNode, step: Step): Promise<void> {
  switch (step.kind) {
    case 'serve':
      await node.serve(step.lines);
      return;
    case 'zone':
      await node.setZone(step.zone);
      return;
    case 'addresses':
      await node.setAddresses(step.addresses);
      return;
    case 'restart':
      await node.restart();
      return;
    case 'rewrite':
      await node.rewrite();
      return;
    case 'lose':
      return node.loseNextAnswer();
    case 'refuse':
      return node.refuse(step.text);
    case 'kill':
      return node.stopAfter(step.writes);
    case 'tamper':
      await node.perform(step.deed);
      await node.rewrite();
  }
}

/** IPVS finds servers of node ports by this node's addresses: those of one that is gone since a failed write stay. */
function isUnknowable(node: ContractNode, { kind }: Step): boolean {
  return node.mechanism === 'ipvs' && kind === 'addresses';
}

describe.each(MECHANISMS)('%s', (mechanism) => {
  const open = (): ContractNode => new ContractNode(memorySide(mechanism, 'IPv4'), 'IPv4');

  test('any steps end like a first start', { timeout: 60_000 + 300 * numRuns }, async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(anyStep, { minLength: 1, maxLength: 12 }), async (steps) => {
        const node = open();
        for (const step of steps) if (!isUnknowable(node, step)) await take(node, step);
        await node.refuse(undefined);
        expect(await node.restart()).toMatchObject({ refused: [] });
        await node.endConnections();
        expect(await node.differences()).toEqual([]);
        expect(await node.missingForeign()).toEqual([]);
        expect(await node.retry()).toMatchObject({ kind: 'nothing' });
      }),
      parameters,
    );
  });

  test('any changes end like a first start, without a rewrite', {
    timeout: 60_000 + 300 * numRuns,
  }, async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.array(line, { maxLength: 4 }), { maxLength: 8 }), async (changes) => {
        const node = open();
        for (const lines of changes) expect(await node.serve(lines)).toMatchObject({ refused: [] });
        if (changes.length === 0) await node.restart();
        await node.endConnections();
        expect(await node.differences()).toEqual([]);
      }),
      parameters,
    );
  });
});
