/** Random clusters: the nftables table does what `decide` says, and small steps lead where a fresh start leads. */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Plan } from '../../src/plan/types.ts';
import type { Proxier } from '../../src/proxy/proxier.ts';
import { FakeNftKernel } from '../modes/nftables/rules/fakeKernel.ts';
import { meaningOf } from '../modes/nftables/rules/cluster.ts';
import { nftProxy, walkableOf, walkedNft } from './nftablesWalk.ts';
import { cluster, settings } from './randomCluster.ts';
import {
  changes,
  disagreementsWith,
  family,
  numRuns,
  type RandomWorld,
  seed,
  startProxy,
  syncAll,
  tellChange,
  TIMEOUT,
} from './randomRun.ts';

interface Start extends RandomWorld {
  readonly kernel: FakeNftKernel;
}

function start(options: Start): Promise<Proxier> {
  return startProxy(options, nftProxy(options.family, options.kernel));
}

async function fromScratch(world: RandomWorld): Promise<FakeNftKernel> {
  const kernel = new FakeNftKernel(world.family);
  await start({ ...world, kernel });
  return kernel;
}

function disagreements(plan: Plan, kernel: FakeNftKernel): readonly string[] {
  const table = walkableOf(kernel);
  return disagreementsWith(plan, 'nftables', (subject) => walkedNft(table, subject));
}

describe(`seed ${seed}`, () => {
  test('the table does what decide says, within its bound of lookups', { timeout: TIMEOUT }, async () => {
    await fc.assert(
      fc.asyncProperty(family, settings, cluster, async (ofFamily, view, objects) => {
        const kernel = new FakeNftKernel(ofFamily);
        const { plan } = await start({ family: ofFamily, settings: view, cluster: objects, kernel });
        expect(disagreements(plan, kernel)).toEqual([]);
      }),
      { seed, numRuns },
    );
  });

  test('change by change, the kernel ends up as from a fresh start', { timeout: TIMEOUT }, async () => {
    await fc.assert(
      fc.asyncProperty(family, settings, cluster, changes, async (ofFamily, view, objects, rounds) => {
        const kernel = new FakeNftKernel(ofFamily);
        const common = { family: ofFamily, settings: view };
        let now = objects;
        const proxy = await start({ ...common, cluster: now, kernel });
        for (const round of rounds) {
          const zoneBefore = now.zone;
          for (const each of round) now = tellChange(proxy, now, each);
          const kind = await syncAll(proxy);
          // A refused transaction would end in a full sync too, and hide itself.
          expect(kind === 'full').toBe(now.zone !== zoneBefore);
          expect(meaningOf(kernel)).toEqual(meaningOf(await fromScratch({ ...common, cluster: now })));
        }
        expect(disagreements(proxy.plan, kernel)).toEqual([]);
      }),
      { seed, numRuns },
    );
  });

  test('a restart with other settings mends what is there', { timeout: TIMEOUT }, async () => {
    const run = fc.record({ settings, cluster });
    await fc.assert(
      fc.asyncProperty(family, run, run, async (ofFamily, first, second) => {
        const kernel = new FakeNftKernel(ofFamily);
        await start({ family: ofFamily, ...first, kernel });
        const { plan } = await start({ family: ofFamily, ...second, kernel });
        expect(meaningOf(kernel)).toEqual(meaningOf(await fromScratch({ family: ofFamily, ...second })));
        expect(disagreements(plan, kernel)).toEqual([]);
      }),
      { seed, numRuns },
    );
  });
});
