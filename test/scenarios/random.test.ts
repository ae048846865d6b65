/** Random clusters: the rules of each layout do what `decide` says, and small steps lead where a fresh start leads. */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { LayoutName } from '../../src/backends/iptables/fragment.ts';
import { LAYOUT_NAMES, LAYOUTS } from '../../src/backends/iptables/layouts/index.ts';
import { FAMILIES, type Family } from '../../src/model/ip.ts';
import { objectKey } from '../../src/model/objects.ts';
import type { Plan } from '../../src/plan/types.ts';
import type { ViewSettings } from '../../src/plan/view.ts';
import { FamilyProxy } from '../../src/proxy/familyProxy.ts';
import { decided, insteadIn, walked } from './expectations.ts';
import { FakeIptables } from './fakeIptables.ts';
import { describeState } from './kernelState.ts';
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
import { rulesBackend } from './rulesNode.ts';

/** For a longer search: JUNCTION_SEED=7 JUNCTION_RUNS=3000. */
const seed = Number(process.env['JUNCTION_SEED'] ?? 20_250_601);
const numRuns = Number(process.env['JUNCTION_RUNS'] ?? 200);
const TIMEOUT = 60_000 + 200 * numRuns;
const layout = fc.constantFrom(...LAYOUT_NAMES);
const family = fc.constantFrom(...FAMILIES);

function tellSlot(proxy: FamilyProxy, before: Slot | undefined, after: Slot): void {
  proxy.onService(objectKey('default', after.name), after.service);
  for (const { namespace, name } of before?.slices ?? []) {
    if (!after.slices.some((slice) => slice.name === name)) proxy.onEndpointSlice(namespace, name, undefined);
  }
  for (const slice of after.slices) proxy.onEndpointSlice(slice.namespace, slice.name, slice);
}

interface Start {
  readonly family: Family;
  readonly layout: LayoutName;
  readonly settings: ViewSettings;
  readonly cluster: RandomCluster;
  readonly iptables: FakeIptables;
}

async function start(options: Start): Promise<FamilyProxy> {
  const backend = await rulesBackend(options.family, options.layout, options.iptables);
  const proxy = new FamilyProxy({ family: options.family, settings: options.settings, backend });
  for (const each of options.cluster.slots) tellSlot(proxy, undefined, each);
  proxy.onNode(nodeIn(options.cluster.zone));
  proxy.onSynced();
  await syncAll(proxy);
  return proxy;
}

async function syncAll(proxy: FamilyProxy): Promise<string> {
  const outcome = await proxy.sync();
  if (!outcome) throw new Error('nothing was written');
  expect([...outcome.report.refused]).toEqual([]);
  return outcome.report.kind;
}

async function fromScratch(options: Omit<Start, 'iptables'>): Promise<FakeIptables> {
  const iptables = new FakeIptables();
  await start({ ...options, iptables });
  return iptables;
}

/** Packets that the rules treat otherwise than `decide`: what they do, and what it says. */
function disagreements(plan: Plan, ofLayout: LayoutName, { tables }: FakeIptables): readonly string[] {
  return subjectsOf(plan).flatMap((subject) => {
    const instead = insteadIn(ofLayout, plan, subject);
    const expected = instead === undefined ? decided(plan, subject) : printRow(subject, instead);
    const actual = walked(tables, subject);
    return actual === expected ? [] : [`${actual}, not ${expected}`];
  });
}

describe(`seed ${seed}`, () => {
  test('the rules do what decide says', { timeout: TIMEOUT }, async () => {
    await fc.assert(
      fc.asyncProperty(family, layout, settings, cluster, async (ofFamily, ofLayout, view, objects) => {
        const iptables = new FakeIptables();
        const { plan } = await start({
          family: ofFamily,
          layout: ofLayout,
          settings: view,
          cluster: objects,
          iptables,
        });
        expect(disagreements(plan, ofLayout, iptables)).toEqual([]);
      }),
      { seed, numRuns },
    );
  });

  const change = fc.oneof(
    { weight: 9, arbitrary: fc.nat(SLOTS - 1).chain((number) => slot(number)) },
    { weight: 1, arbitrary: zone.map((name) => ({ zone: name })) },
  );

  test('change by change, the kernel ends up as from a fresh start', { timeout: TIMEOUT }, async () => {
    const changes = fc.array(fc.array(change, { minLength: 1, maxLength: 3 }), {
      minLength: 1,
      maxLength: 6,
    });
    await fc.assert(
      fc.asyncProperty(
        family,
        layout,
        settings,
        cluster,
        changes,
        async (ofFamily, ofLayout, view, objects, rounds) => {
          const iptables = new FakeIptables();
          const common = { family: ofFamily, layout: ofLayout, settings: view };
          let now = objects;
          const proxy = await start({ ...common, cluster: now, iptables });
          for (const round of rounds) {
            const zoneBefore = now.zone;
            for (const each of round) now = changed(proxy, now, each);
            const kind = await syncAll(proxy);
            // A refused restore would end in a full sync too, and hide itself.
            expect(kind === 'full').toBe(now.zone !== zoneBefore);
            const fresh = await fromScratch({ ...common, cluster: now });
            expect(describeState(iptables.tables, LAYOUTS[ofLayout])).toEqual(
              describeState(fresh.tables, LAYOUTS[ofLayout]),
            );
          }
        },
      ),
      { seed, numRuns },
    );
  });

  test('a restart with other settings and another layout mends what is there', {
    timeout: 60_000,
  }, async () => {
    const run = fc.record({ layout, settings, cluster });
    await fc.assert(
      fc.asyncProperty(family, run, run, async (ofFamily, first, second) => {
        const iptables = new FakeIptables();
        await start({ family: ofFamily, ...first, iptables });
        const { plan } = await start({ family: ofFamily, ...second, iptables });
        const fresh = await fromScratch({ family: ofFamily, ...second });
        const ofLayout = LAYOUTS[second.layout];
        expect(describeState(iptables.tables, ofLayout, 'anyOrder')).toEqual(
          describeState(fresh.tables, ofLayout, 'anyOrder'),
        );
        expect(disagreements(plan, second.layout, iptables)).toEqual([]);
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
