/** Random clusters: the nftables table does what `decide` says, and small steps lead where a fresh start leads. */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Family, isLoopback } from '../../src/model/ip.ts';
import { nftablesReaderOfDump } from '../../src/modes/nftables/inspect.ts';
import type { KnownFacts } from '../../src/modes/nftables/kernel/compare.ts';
import type { Plan } from '../../src/plan/types.ts';
import type { Proxier } from '../../src/proxy/proxier.ts';
import { FakeNftKernel } from '../modes/nftables/rules/fakeKernel.ts';
import { meaningOf } from '../modes/nftables/rules/cluster.ts';
import { readerOf } from '../modes/nftables/fakeSource.ts';
import { nftProxy, printWalk, walkableOf, walkedNft } from './nftablesWalk.ts';
import { cluster, settings } from './randomCluster.ts';
import { subjectsOf } from './randomPackets.ts';
import { NODE1, node1Addresses } from './scenario.ts';
import {
  changes,
  disagreementsWith,
  family,
  type RandomWorld,
  startProxy,
  syncAll,
  tellChange,
  TIMEOUT,
} from './randomRun.ts';
import { numRuns, seed } from '../support/randomCases.ts';

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

function factsOf(ofFamily: Family): Partial<KnownFacts> {
  return { nodeIps: node1Addresses(ofFamily).filter((ip) => !isLoopback(ip)), counters: true };
}

function disagreements(plan: Plan, kernel: FakeNftKernel): readonly string[] {
  const table = walkableOf(kernel);
  return disagreementsWith(plan, 'nftables', (subject) => walkedNft(table, subject));
}

/** The same packets through the reader of the kernel's rules, out of a dump. */
async function disagreementsOfReader(plan: Plan, kernel: FakeNftKernel): Promise<readonly string[]> {
  const dump: unknown = JSON.parse(JSON.stringify(await readerOf(kernel).dump()));
  const reader = nftablesReaderOfDump(kernel.family, dump);
  const walked = new Map<string, string>();
  for (const subject of subjectsOf(plan))
    walked.set(subject.text, printWalk(subject, await reader.walk(subject.packet, NODE1)));
  return disagreementsWith(plan, 'nftables', ({ text }) => walked.get(text) ?? '');
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

  test('a reader of the kernel finds what decide says, and no difference', { timeout: TIMEOUT }, async () => {
    await fc.assert(
      fc.asyncProperty(family, settings, cluster, async (ofFamily, view, objects) => {
        const kernel = new FakeNftKernel(ofFamily);
        const { plan } = await start({ family: ofFamily, settings: view, cluster: objects, kernel });
        expect(await disagreementsOfReader(plan, kernel)).toEqual([]);
        expect(await readerOf(kernel, factsOf(ofFamily)).compare(plan)).toEqual([]);
      }),
      { seed, numRuns: Math.ceil(numRuns / 4) },
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
          expect(await readerOf(kernel, factsOf(ofFamily)).compare(proxy.plan)).toEqual([]);
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
