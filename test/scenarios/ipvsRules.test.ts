/** Every scenario against the sets, virtual servers and rules of the IPVS mode, walked in memory. */
import { expect, test } from 'vitest';
import { FAMILIES, type Family } from '../../src/model/ip.ts';
import { SCENARIOS } from './cases/index.ts';
import { expectedIn } from './expectations.ts';
import { FakeIpvsNode, walkedIpvs } from './ipvsWalk.ts';
import { printRow, type Row } from './packets.ts';
import { proxyOf, type Scenario } from './scenario.ts';

const rowsOf = ({ rows }: Scenario, family: Family): readonly Row[] =>
  rows.filter((row) => row.family === family);

const CASES = SCENARIOS.flatMap((scenario) =>
  FAMILIES.filter((family) => rowsOf(scenario, family).length > 0).map((family) => ({
    name: scenario.name,
    scenario,
    family,
  })),
);

test.each(CASES)('$name ($family)', async ({ scenario, family }) => {
  const node = new FakeIpvsNode(family);
  const proxy = proxyOf(family, scenario, await node.proxier());
  const outcome = await proxy.sync();
  expect(outcome?.report.refused.size).toBe(0);
  const { plan } = proxy;
  const rows = rowsOf(scenario, family);
  expect(rows.map((row) => walkedIpvs(node.snapshot, plan, row))).toEqual(
    rows.map((row) => printRow(row, expectedIn('ipvs', plan, row))),
  );
});
