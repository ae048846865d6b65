/** Whatever changes, and whatever fails on the way: in the end the kernel has what the plan says. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { SyncReport } from '../../../../src/proxy/report.ts';
import type { LayoutName } from '../../../../src/modes/iptables/rules/fragment.ts';
import { VIEW } from '../../../plan/given.ts';
import { type SyncStep, syncStep, type ZoneStep, zoneStep } from '../../anySteps.ts';
import { type Fault, lockHeld, refusal } from './fakeKernel.ts';
import { Harness } from './harness.ts';

type Step =
  | SyncStep
  | { readonly kind: 'full' }
  | { readonly kind: 'restart'; readonly layout: LayoutName }
  | ZoneStep;

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 8, arbitrary: syncStep() },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('full' as const) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('restart' as const),
      layout: fc.constantFrom<LayoutName>('current', 'classic'),
    }),
  },
  { weight: 1, arbitrary: zoneStep },
);

const layouts = fc.constantFrom<LayoutName>('current', 'classic');

test('without faults, after every sync', async () => {
  await fc.assert(
    fc.asyncProperty(layouts, fc.array(step, { maxLength: 10 }), async (layout, steps) => {
      let harness = new Harness({ layout });
      for (const each of steps) {
        if (each.kind === 'restart') harness = harness.restarted({ layout: each.layout });
        if (each.kind === 'zone') harness.cluster.setView({ ...VIEW, zone: each.zone });
        const report =
          each.kind === 'full'
            ? await harness.syncFull()
            : await harness.sync(...(each.kind === 'sync' ? each.lines : []));
        expect(report.refused.size).toBe(0);
        expect(harness.kernel.attempts.length).toBe(harness.kernel.restores.length);
        expect(harness.meaning).toEqual(await harness.fromScratch());
      }
    }),
  );
}, 600_000);

test('with restores that fail one time in ten', async () => {
  await fc.assert(
    fc.asyncProperty(
      layouts,
      fc.array(step, { minLength: 3, maxLength: 12 }),
      fc.infiniteStream(fc.nat(19)),
      async (layout, steps, dice) => {
        let wasRefused = false;
        const fault: Fault = () => {
          const thrown = dice.next().value;
          if (thrown === 1) wasRefused = true;
          return thrown === 0 ? lockHeld() : thrown === 1 ? refusal() : undefined;
        };
        let harness = new Harness({ layout });
        harness.kernel.fault = fault;
        let mustRepeat = false;
        for (const each of steps) {
          if (each.kind === 'restart') harness = harness.restarted({ layout: each.layout });
          if (each.kind === 'zone') harness.cluster.setView({ ...VIEW, zone: each.zone });
          try {
            const lines = each.kind === 'sync' ? each.lines : [];
            const report: SyncReport =
              each.kind === 'full' || mustRepeat
                ? await syncFull(harness, lines)
                : await harness.sync(...lines);
            mustRepeat = report.refused.size > 0;
          } catch {
            mustRepeat = false; // the writer itself remembers to look at everything
          }
        }
        harness.kernel.fault = () => undefined;
        // A chain that could not be deleted, because others used it perhaps, waits for the next look at everything.
        if (wasRefused) await harness.syncFull();
        else await harness.sync();
        expect(harness.meaning).toEqual(await harness.fromScratch());
      },
    ),
  );
}, 600_000);

async function syncFull(harness: Harness, lines: readonly string[]): ReturnType<Harness['sync']> {
  harness.cluster.tell(...lines);
  return harness.syncFull();
}
