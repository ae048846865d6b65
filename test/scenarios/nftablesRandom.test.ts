/** Random clusters: the nftables table does what `decide` says, and small steps lead where a fresh start leads. */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { FAMILIES, type Family } from '../../src/model/ip.ts';
import { objectKey } from '../../src/model/objects.ts';
import type { Plan } from '../../src/plan/types.ts';
import type { ViewSettings } from '../../src/plan/view.ts';
import { FamilyProxy } from '../../src/proxy/familyProxy.ts';
import { FakeNftKernel } from '../backends/nftables/fakeKernel.ts';
import { meaningOf } from '../backends/nftables/world.ts';
import { decided, insteadIn } from './expectations.ts';
import { nftProxy, walkableOf, walkedNft } from './nftablesWalk.ts';
import { printRow } from './packets.ts';
import {
  cluster,
  nodeIn,
  type RandomCluster,
  settings,
  type Slot,
  slot,
  SLOTS,
  zone,
} from './randomCluster.ts';
import { subjectsOf } from './randomPackets.ts';

/** For a longer search: JUNCTION_SEED=7 JUNCTION_RUNS=3000. */
const seed = Number(process.env['JUNCTION_SEED'] ?? 20_250_601);
const numRuns = Number(process.env['JUNCTION_RUNS'] ?? 200);
const TIMEOUT = 60_000 + 200 * numRuns;
const family = fc.constantFrom(...FAMILIES);

interface Start {
  readonly family: Family;
  readonly settings: ViewSettings;
  readonly cluster: RandomCluster;
  readonly kernel: FakeNftKernel;
}

async function start(options: Start): Promise<FamilyProxy> {
  const backend = nftProxy(options.family, options.kernel);
  const proxy = new FamilyProxy({ family: options.family, settings: options.settings, backend });
  for (const each of options.cluster.slots) tellSlot(proxy, undefined, each);
  proxy.onNode(nodeIn(options.cluster.zone));
  proxy.onSynced();
  await syncAll(proxy);
  return proxy;
}

function tellSlot(proxy: FamilyProxy, before: Slot | undefined, after: Slot): void {
  proxy.onService(objectKey('default', after.name), after.service);
  for (const { namespace, name } of before?.slices ?? []) {
    if (!after.slices.some((slice) => slice.name === name)) proxy.onEndpointSlice(namespace, name, undefined);
  }
  for (const slice of after.slices) proxy.onEndpointSlice(slice.namespace, slice.name, slice);
}

async function syncAll(proxy: FamilyProxy): Promise<string> {
  const outcome = await proxy.sync();
  if (!outcome) throw new Error('nothing was written');
  expect([...outcome.report.refused]).toEqual([]);
  return outcome.report.kind;
}

async function fromScratch(options: Omit<Start, 'kernel'>): Promise<FakeNftKernel> {
  const kernel = new FakeNftKernel(options.family);
  await start({ ...options, kernel });
  return kernel;
}

/** Packets that the table treats otherwise than `decide`: what it does, and what that says. */
function disagreements(plan: Plan, kernel: FakeNftKernel): readonly string[] {
  const table = walkableOf(kernel);
  return subjectsOf(plan).flatMap((subject) => {
    const instead = insteadIn('nftables', plan, subject);
    const expected = instead === undefined ? decided(plan, subject) : printRow(subject, instead);
    const actual = walkedNft(table, subject);
    return actual === expected ? [] : [`${actual}, not ${expected}`];
  });
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

  const change = fc.oneof(
    { weight: 9, arbitrary: fc.nat(SLOTS - 1).chain((number) => slot(number)) },
    { weight: 1, arbitrary: zone.map((name) => ({ zone: name })) },
  );
  const changes = fc.array(fc.array(change, { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 6 });

  test('change by change, the kernel ends up as from a fresh start', { timeout: TIMEOUT }, async () => {
    await fc.assert(
      fc.asyncProperty(family, settings, cluster, changes, async (ofFamily, view, objects, rounds) => {
        const kernel = new FakeNftKernel(ofFamily);
        const common = { family: ofFamily, settings: view };
        let now = objects;
        const proxy = await start({ ...common, cluster: now, kernel });
        for (const round of rounds) {
          const zoneBefore = now.zone;
          for (const each of round) now = changed(proxy, now, each);
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

function changed(
  proxy: FamilyProxy,
  now: RandomCluster,
  change: Slot | { readonly zone: string | undefined },
): RandomCluster {
  if (!('name' in change)) {
    proxy.onNode(nodeIn(change.zone));
    return { ...now, zone: change.zone };
  }
  tellSlot(
    proxy,
    now.slots.find(({ name }) => name === change.name),
    change,
  );
  return { ...now, slots: now.slots.map((each) => (each.name === change.name ? change : each)) };
}
