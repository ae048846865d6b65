/** Every scenario against `decide`, and against what each mode writes, walked in memory. */
import { describe, expect, test } from 'vitest';
import { MECHANISMS, memorySide } from '../contract/memory.ts';
import { FAMILIES, type Family } from '../../src/model/ip.ts';
import { SCENARIOS } from './cases/index.ts';
import { decided, expectedIn } from './expectations.ts';
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

test('no two scenarios have the same name', () => {
  const names = SCENARIOS.map(({ name }) => name);
  expect(names).toEqual([...new Set(names)]);
});

test.each(CASES)('decide: $name ($family)', ({ scenario, family }) => {
  const proxy = proxyOf(family, scenario, NO_WRITER);
  proxy.replan();
  const rows = rowsOf(scenario, family);
  expect(rows.map((row) => decided(proxy.plan, row))).toEqual(rows.map((row) => printRow(row, row.fate)));
});

describe.each(MECHANISMS)('%s', (mechanism) => {
  test.each(CASES)('$name ($family)', async ({ scenario, family }) => {
    const side = memorySide(mechanism, family);
    const proxy = proxyOf(family, scenario, await side.start());
    const outcome = await proxy.sync();
    expect(outcome?.report.refused.size).toBe(0);
    const rows = rowsOf(scenario, family);
    expect(await side.packets(rows, proxy)).toEqual(
      rows.map((row) => printRow(row, expectedIn(mechanism, proxy.plan, row))),
    );
  });
});

const NO_WRITER = {
  sync: () => Promise.reject(new Error('nothing is written')),
  requestFull: (): void => {},
};
