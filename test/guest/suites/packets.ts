/** The contract, scenarios and questions with real packets, one after another on the same node. */
import { casesFor } from '../../contract/parse.ts';
import { RealNode } from '../../contract/real.ts';
import { runCase } from '../../contract/run.ts';
import { SCENARIOS } from '../../scenarios/cases/index.ts';
import { SCTP } from '../../scenarios/cases/sctp.ts';
import { printRow } from '../../scenarios/packets.ts';
import type { Scenario } from '../../scenarios/scenario.ts';
import { worldsOf } from '../../scenarios/worlds.ts';
import type { GuestMode } from '../node/proxiers.ts';
import { type GuestSuite, type GuestTest, Mismatch } from '../suite.ts';
import { askedScenario, IPVS_QUESTIONS } from './ipvsQuestions.ts';

type Tests = GuestSuite['tests'];

function scenarios(
  scenarios: readonly Scenario[],
  testOf: (scenario: Scenario) => GuestTest,
  mode: GuestMode,
): Tests {
  return Object.fromEntries(
    worldsOf(scenarios).map((world) => [`scenarios through ${mode}: ${world.name}`, testOf(world)]),
  );
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
const CONTRACT: Tests = Object.fromEntries(
  casesFor('ipvs', 'guest').map((each): [string, GuestTest] => [
    `contract: ${each.title}`,
    async (context) => {
      const node = await context.node('ipvs');
      const lab = await context.lab();
      await node.contract('open', each.family);
      const parts = { mode: 'ipvs', node, lab, sender: await context.sender() } as const;
      await runCase(new RealNode(parts), each);
    },
  ]),
);

/** Of the mode that sent the first packets. */
const NO_RULES = 'for table in nat filter; do for flag in -F -X; do $0 -t $table $flag; done; done';

export const PACKETS: GuestSuite = {
  name: 'packets through one node',
  tests: {
    // The machine's own kernel sends the packets of all scenarios but those of SCTP: see test/scenarios.
    ...scenarios(SCTP, (world) => scenarioTest(world, 'iptables-legacy'), 'iptables-legacy'),
    'its rules go, and another mode comes': async (context) => {
      const node1 = (await context.lab()).host('node1');
      for (const family of ['iptables-legacy', 'ip6tables-legacy'])
        await node1.run(['sh', '-ec', NO_RULES, family]);
    },
    ...CONTRACT,
    ...scenarios(SCENARIOS, askedScenario, 'ipvs'),
    ...IPVS_QUESTIONS,
  },
};
