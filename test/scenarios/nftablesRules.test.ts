/** Every scenario against the nftables table, walked in memory. */
import { expect, test } from 'vitest';
import { FAMILIES, type Family } from '../../src/model/ip.ts';
import { FakeNftKernel } from '../modes/nftables/rules/fakeKernel.ts';
import { SCENARIOS } from './cases/index.ts';
import { expectedIn } from './expectations.ts';
import { nftProxy, walkableOf, walkedNft } from './nftablesWalk.ts';
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
  const kernel = new FakeNftKernel(family);
  const proxy = proxyOf(family, scenario, nftProxy(family, kernel));
  const outcome = await proxy.sync();
  expect(outcome?.report.refused.size).toBe(0);
  const rows = rowsOf(scenario, family);
  const table = walkableOf(kernel);
  expect(rows.map((row) => walkedNft(table, row))).toEqual(
    rows.map((row) => printRow(row, expectedIn('nftables', proxy.plan, row))),
  );
});
