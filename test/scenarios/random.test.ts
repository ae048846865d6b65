/** Random clusters: each mode does what `decide` says, and small steps lead where a fresh start leads. */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Plan } from '../../src/plan/types.ts';
import { readerOfDump } from '../../src/modes/openReader.ts';
import { MECHANISMS, memorySide, modeOf } from '../contract/memory.ts';
import { IptablesSide } from '../contract/memoryIptables.ts';
import type { MemorySide } from '../contract/memorySide.ts';
import { numRuns, seed } from '../support/randomCases.ts';
import { printWalk } from './expectations.ts';
import type { Subject } from './packets.ts';
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
import { NODE1 } from './scenario.ts';

function disagreements(plan: Plan, side: MemorySide): Promise<readonly string[]> {
  return disagreementsWith(plan, side.mechanism, (subjects) => side.packets(subjects, { plan }));
}

/** The same packets through a reader of the kernel's rules, out of a dump. */
async function walkedInDump(side: MemorySide, subjects: readonly Subject[]): Promise<readonly string[]> {
  const dump: unknown = JSON.parse(JSON.stringify(await (await side.reader()).dump()));
  const reader = readerOfDump(modeOf(side.mechanism), side.family, dump);
  const walked = [];
  for (const subject of subjects) walked.push(printWalk(subject, await reader.walk(subject.packet, NODE1)));
  return walked;
}

async function fromScratch(side: MemorySide, world: RandomWorld): Promise<readonly string[]> {
  const fresh = memorySide(side.mechanism, side.family);
  await startProxy(world, await fresh.start());
  return fresh.state;
}

/** In iptables mode of the other layout, on the same kernel. */
function before(side: MemorySide): MemorySide {
  if (!(side instanceof IptablesSide)) return side;
  return new IptablesSide(side.family, side.mechanism === 'current' ? 'classic' : 'current', side.iptables);
}

/** Settings that came before may have written it, and nothing but a clean-up removes it. */
const GUARD = /block incoming localnet connections/;

describe.each(MECHANISMS)(`%s, seed ${seed}`, (mechanism) => {
  const world = fc.record({ family, settings, cluster });
  const parameters = { seed, numRuns: modeOf(mechanism) === 'iptables' ? Math.ceil(numRuns / 2) : numRuns };

  test('it does what decide says', { timeout: TIMEOUT }, async () => {
    let runs = 0;
    await fc.assert(
      fc.asyncProperty(world, async (random) => {
        const side = memorySide(mechanism, random.family);
        const { plan } = await startProxy(random, await side.start());
        expect(await disagreements(plan, side)).toEqual([]);
        if (runs++ % 4 !== 0) return;
        expect(await disagreementsWith(plan, mechanism, (subjects) => walkedInDump(side, subjects))).toEqual(
          [],
        );
        expect(await (await side.reader()).compare(plan)).toEqual([]);
      }),
      parameters,
    );
  });

  test('change by change, the kernel ends up as from a fresh start', { timeout: TIMEOUT }, async () => {
    await fc.assert(
      fc.asyncProperty(world, changes, async (random, rounds) => {
        const side = memorySide(mechanism, random.family);
        let now = random.cluster;
        const proxy = await startProxy(random, await side.start());
        for (const round of rounds) {
          const zoneBefore = now.zone;
          for (const each of round) now = tellChange(proxy, now, each);
          const kind = await syncAll(proxy);
          // What is refused would end in a full sync too, and hide itself.
          const isFull = mechanism !== 'nftables' && now.zone !== zoneBefore;
          if (mechanism !== 'ipvs') expect(kind === 'full').toBe(isFull);
          // Of which the test above says what becomes of packets.
          expect(side.state).toEqual(await fromScratch(side, { ...random, cluster: now }));
        }
      }),
      parameters,
    );
  });

  test('a restart with other settings, and another layout, mends what is there', {
    timeout: TIMEOUT,
  }, async () => {
    await fc.assert(
      fc.asyncProperty(world, fc.record({ settings, cluster }), async (first, second) => {
        const side = memorySide(mechanism, first.family);
        await startProxy(first, await before(side).start());
        const { plan } = await startProxy({ ...first, ...second }, await side.start());
        const fresh = await fromScratch(side, { ...first, ...second });
        expect(side.state.filter((line) => !GUARD.test(line) || fresh.includes(line))).toEqual(fresh);
        expect(await disagreements(plan, side)).toEqual([]);
      }),
      parameters,
    );
  });
});
