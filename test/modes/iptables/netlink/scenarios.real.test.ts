/**
 * Every scenario and random plans, both layouts, both families: each rule is encoded to the bytes that the kernel has of it
 * after `iptables-nft-restore`, and decoded from them to what `iptables-save` shows.
 */
import * as fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { FAMILIES, type Family } from '../../../../src/model/ip.ts';
import type { LayoutName } from '../../../../src/modes/iptables/rules/fragment.ts';
import type { KernelWriter } from '../../../../src/proxy/proxier.ts';
import { SCENARIOS } from '../../../scenarios/cases/index.ts';
import { FakeIptables } from '../../../scenarios/fakeIptables.ts';
import { cluster, settings } from '../../../scenarios/randomCluster.ts';
import { startProxy, TIMEOUT } from '../../../scenarios/randomRun.ts';
import { rulesWriter } from '../../../scenarios/rulesNode.ts';
import { proxyOf } from '../../../scenarios/scenario.ts';
import { type Namespace, openNamespace, requireNamespaces } from '../../../system/support/namespace.ts';
import { printTables } from '../rules/fakeKernel.ts';
import { LAYOUT_NAMES } from '../rules/layoutNames.ts';
import { compareInside, randomRules } from './support/compareInside.ts';
import type { RestoreCase } from './support/compareRules.ts';
import { together, withNames } from './support/together.ts';
import { seed } from '../../../support/randomCases.ts';

let namespace: Namespace;
beforeAll(async () => {
  namespace = await openNamespace();
});
afterAll(() => namespace.close());

interface Start {
  readonly family: Family;
  readonly layout: LayoutName;
}

/** What the proxier writes, as one restore for each table. */
async function restoreText(
  { family, layout }: Start,
  start: (writer: KernelWriter) => Promise<unknown>,
): Promise<string> {
  const iptables = new FakeIptables();
  await start(await rulesWriter(family, layout, iptables));
  return printTables(iptables.tables);
}

const STARTS = LAYOUT_NAMES.flatMap((layout) => FAMILIES.map((family) => ({ layout, family })));
const PLANS = 8;
const RULES = 600;

describe.each(STARTS)('layout $layout, $family', ({ layout, family }) => {
  beforeEach((context) => requireNamespaces(context));

  test('every scenario', { timeout: TIMEOUT }, async () => {
    const cases: RestoreCase[] = [];
    for (const scenario of SCENARIOS) {
      const text = await restoreText({ family, layout }, (writer) =>
        proxyOf(family, scenario, writer).sync(),
      );
      cases.push({ name: scenario.name, family, text });
    }
    const { rules, differences } = await compareInside(namespace, together(cases));
    expect(differences.map((each) => withNames(each, cases))).toEqual([]);
    expect(rules).toBeGreaterThan(SCENARIOS.length * 15);
  });

  test('random plans', { timeout: TIMEOUT }, async () => {
    const cases: RestoreCase[] = [];
    for (const [view, objects] of fc.sample(fc.tuple(settings, cluster), { numRuns: PLANS, seed })) {
      const start = { family, settings: view, cluster: objects };
      const text = await restoreText({ family, layout }, (writer) => startProxy(start, writer));
      cases.push({ name: `plan ${cases.length}`, family, text });
    }
    const { differences } = await compareInside(namespace, together(cases));
    expect(differences.map((each) => withNames(each, cases))).toEqual([]);
  });
});

test.each(FAMILIES)('random rules, with counters, %s', { timeout: TIMEOUT }, async (family) => {
  // ip6tables-nft-restore 1.8.9 drops the counters of rules.
  const rules = randomRules(family, { numRuns: RULES, seed, counters: family === 'IPv4' });
  expect(await compareInside(namespace, [rules])).toEqual({ differences: [], rules: 2 * RULES });
});
