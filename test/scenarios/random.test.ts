/** Random clusters: the rules of each layout do what `decide` says, and small steps lead where a fresh start leads. */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { LayoutName } from '../../src/modes/iptables/rules/fragment.ts';
import { LAYOUTS } from '../../src/modes/iptables/rules/layouts/index.ts';
import { LAYOUT_NAMES } from '../modes/iptables/rules/layoutNames.ts';
import type { Plan } from '../../src/plan/types.ts';
import type { Proxier } from '../../src/proxy/proxier.ts';
import { walked } from './expectations.ts';
import { FakeIptables } from './fakeIptables.ts';
import { describeState, describeStateAfterOthers } from './kernelState.ts';
import { cluster, settings } from './randomCluster.ts';
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
import { rulesWriter } from './rulesNode.ts';
import { numRuns, seed } from '../support/randomCases.ts';

const layout = fc.constantFrom(...LAYOUT_NAMES);

interface Start extends RandomWorld {
  readonly layout: LayoutName;
  readonly iptables: FakeIptables;
}

async function start(options: Start): Promise<Proxier> {
  return startProxy(options, await rulesWriter(options.family, options.layout, options.iptables));
}

async function fromScratch(options: Omit<Start, 'iptables'>): Promise<FakeIptables> {
  const iptables = new FakeIptables();
  await start({ ...options, iptables });
  return iptables;
}

function disagreements(plan: Plan, ofLayout: LayoutName, { tables }: FakeIptables): readonly string[] {
  return disagreementsWith(plan, ofLayout, (subject) => walked(tables, subject));
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

  test('change by change, the kernel ends up as from a fresh start', { timeout: TIMEOUT }, async () => {
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
            for (const each of round) now = tellChange(proxy, now, each);
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
    timeout: TIMEOUT,
  }, async () => {
    const run = fc.record({ layout, settings, cluster });
    await fc.assert(
      fc.asyncProperty(family, run, run, async (ofFamily, first, second) => {
        const iptables = new FakeIptables();
        await start({ family: ofFamily, ...first, iptables });
        const { plan } = await start({ family: ofFamily, ...second, iptables });
        const fresh = await fromScratch({ family: ofFamily, ...second });
        const ofLayout = LAYOUTS[second.layout];
        const expected = describeState(fresh.tables, ofLayout, 'anyOrder');
        expect(describeStateAfterOthers(iptables.tables, ofLayout, expected)).toEqual(expected);
        expect(disagreements(plan, second.layout, iptables)).toEqual([]);
      }),
      { seed, numRuns },
    );
  });
});
