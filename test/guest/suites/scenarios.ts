/** Scenarios with real packets, one after another on the same node. */
import { casesFor } from '../../contract/parse.ts';
import { RealNode, type RealMode } from '../../contract/real.ts';
import { runCase } from '../../contract/run.ts';
import { SCENARIOS } from '../../scenarios/cases/index.ts';
import { printRow } from '../../scenarios/packets.ts';
import type { Scenario } from '../../scenarios/scenario.ts';
import { worldsOf } from '../../scenarios/worlds.ts';
import type { GuestMode } from '../node/proxiers.ts';
import { type GuestSuite, type GuestTest, Mismatch } from '../suite.ts';
import { askedScenario } from './ipvsQuestions.ts';

export function scenarioSuite(mode: GuestMode, scenarios: readonly Scenario[] = SCENARIOS): GuestSuite {
  const testOf = (scenario: Scenario): GuestTest =>
    mode === 'ipvs' ? askedScenario(scenario) : scenarioTest(scenario, mode);
  const tests = worldsOf(scenarios).map((world) => [world.name, testOf(world)] as const);
  return { name: `scenarios through ${mode}`, tests: Object.fromEntries(tests) };
}

function scenarioTest(scenario: Scenario, mode: GuestMode): GuestTest {
  return async (context) => {
    const node = await context.node(mode);
    const sender = await context.sender();
    const fates = await node.apply(scenario);
    const pairs = scenario.rows.flatMap((row, index) => {
      const fate = fates[index];
      return row.inLab && fate !== undefined ? [[row, fate] as const] : [];
    });
    const seen = await sender.send(pairs);
    const wrong = pairs.flatMap(([row, fate], index) => {
      const expected = printRow(row, fate);
      return seen[index] === expected ? [] : [`expected  ${expected}\nseen      ${seen[index]}`];
    });
    if (wrong.length > 0) throw new Mismatch(wrong.join('\n'));
  };
}

/** What every mode must do, as test/contract has it. */
export function contractSuite(mode: RealMode): GuestSuite {
  const tests = casesFor(mode.split('-')[0] ?? '', 'real').map((each): [string, GuestTest] => [
    each.title,
    async (context) => {
      const node = await context.node(mode);
      const lab = await context.lab();
      await node.contract('open', each.family);
      const parts = { mode, node, lab, sender: await context.sender() };
      await runCase(new RealNode(parts), each);
    },
  ]);
  return { name: `contract through ${mode}`, tests: Object.fromEntries(tests) };
}
