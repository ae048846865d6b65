/** The reader over the stand-in for the kernel: what it reads, what it says of packets, and of differences. */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { iptablesReaderOfDump } from '../../../src/modes/iptables/inspect.ts';
import type { LayoutName } from '../../../src/modes/iptables/rules/fragment.ts';
import { FAMILIES, type Family } from '../../../src/model/ip.ts';
import type { Proxier } from '../../../src/proxy/proxier.ts';
import { SCENARIOS } from '../../scenarios/cases/index.ts';
import { decided, expectedIn, insteadIn, printWalk, walked } from '../../scenarios/expectations.ts';
import { FakeIptables } from '../../scenarios/fakeIptables.ts';
import { printRow } from '../../scenarios/packets.ts';
import { cluster, settings } from '../../scenarios/randomCluster.ts';
import { subjectsOf } from '../../scenarios/randomPackets.ts';
import { family as anyFamily, numRuns, seed, startProxy, TIMEOUT } from '../../scenarios/randomRun.ts';
import { rulesWriter } from '../../scenarios/rulesNode.ts';
import { NODE1, proxyOf, type Scenario } from '../../scenarios/scenario.ts';
import { fakeReader } from './fakeReader.ts';
import { LAYOUT_NAMES } from './rules/layoutNames.ts';

async function written(
  family: Family,
  layout: LayoutName,
  scenario: Scenario,
): Promise<{ readonly iptables: FakeIptables; readonly proxy: Proxier }> {
  const iptables = new FakeIptables();
  const proxy = proxyOf(family, scenario, await rulesWriter(family, layout, iptables));
  await proxy.sync();
  return { iptables, proxy };
}

const CASES = SCENARIOS.flatMap((scenario) =>
  FAMILIES.filter((family) => scenario.rows.some((row) => row.family === family)).map((family) => ({
    name: scenario.name,
    scenario,
    family,
  })),
);

describe.each(LAYOUT_NAMES)(
  'layout %s: chains read one by one, or from a dump, say what the rules do',
  (layout) => {
    test.each(CASES)('$name ($family)', async ({ scenario, family }) => {
      const { iptables, proxy } = await written(family, layout, scenario);
      const reader = await fakeReader(family, layout, iptables);
      const dumped = iptablesReaderOfDump(family, JSON.parse(JSON.stringify(await reader.dump())));
      const rows = scenario.rows.filter((row) => row.family === family);
      for (const row of rows) {
        const expected = printRow(row, expectedIn(layout, proxy.plan, row));
        expect(printWalk(row, await reader.walk(row.packet, NODE1))).toBe(expected);
        expect(await dumped.walk(row.packet, NODE1)).toEqual(await reader.walk(row.packet, NODE1));
      }
      expect(await reader.compare(proxy.plan)).toEqual([]);
      expect(await dumped.compare(proxy.plan)).toEqual([]);
    });
  },
);

test(`random clusters, seed ${seed}: reader = walker = decide`, { timeout: TIMEOUT }, async () => {
  const layout = fc.constantFrom(...LAYOUT_NAMES);
  await fc.assert(
    fc.asyncProperty(anyFamily, layout, settings, cluster, async (family, ofLayout, view, objects) => {
      const iptables = new FakeIptables();
      const writer = await rulesWriter(family, ofLayout, iptables);
      const { plan } = await startProxy({ family, settings: view, cluster: objects }, writer);
      const reader = await fakeReader(family, ofLayout, iptables);
      for (const subject of subjectsOf(plan)) {
        const instead = insteadIn(ofLayout, plan, subject);
        const read = printWalk(subject, await reader.walk(subject.packet, NODE1));
        expect(read).toBe(walked(iptables.tables, subject));
        expect(read).toBe(instead === undefined ? decided(plan, subject) : printRow(subject, instead));
      }
      expect(await reader.compare(plan)).toEqual([]);
    }),
    { seed, numRuns: Math.ceil(numRuns / 4) },
  );
});
