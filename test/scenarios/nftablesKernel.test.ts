/** Every scenario through the reader of the kernel's rules, over a table in memory. */
import { expect, test } from 'vitest';
import { FAMILIES, type Family } from '../../src/model/ip.ts';
import { readerOf } from '../modes/nftables/fakeSource.ts';
import { FakeNftKernel } from '../modes/nftables/rules/fakeKernel.ts';
import { SCENARIOS } from './cases/index.ts';
import { expectedIn } from './expectations.ts';
import { nftProxy, printWalk } from './nftablesWalk.ts';
import { printRow, type Row } from './packets.ts';
import { NODE1, proxyOf, type Scenario } from './scenario.ts';

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
  await proxy.sync();
  const reader = readerOf(kernel);
  const rows = rowsOf(scenario, family);
  const walked = [];
  for (const row of rows) walked.push(printWalk(row, await reader.walk(row.packet, NODE1)));
  expect(walked).toEqual(rows.map((row) => printRow(row, expectedIn('nftables', proxy.plan, row))));
});
