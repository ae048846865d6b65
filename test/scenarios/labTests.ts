/** Every scenario with real packets, through one cluster of network namespaces. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { LAYOUTS } from '../../src/modes/iptables/rules/layouts/index.ts';
import { FAMILIES, type Family } from '../../src/model/ip.ts';
import type { MemoryTables } from '../modes/iptables/rules/tables.ts';
import { explainedRows } from './explained.ts';
import { useLab } from '../lab/requireLab.ts';
import { COVERING, SCENARIOS } from './cases/index.ts';
import { type Counts, countsOf, expectPathsCounted, type RuleCount, type Walk } from './counters.ts';
import { expectedIn, printWalk } from './expectations.ts';
import { FakeIptables } from './fakeIptables.ts';
import { describeState, describeStateAfterOthers } from './kernelState.ts';
import { LabNode, type LabNodeOptions } from './labNode.ts';
import { PacketSender } from './labPackets.ts';
import { type Fate, printRow, type Row } from './packets.ts';
import { IptablesSide } from '../contract/memoryIptables.ts';
import { NO_COUNTERS } from '../contract/modes.ts';
import { NODE1, proxyOf, type Scenario } from './scenario.ts';
import { worldsOf } from './worlds.ts';

const FEW_ROWS = 10;

interface LabScenarioOptions extends Omit<LabNodeOptions, 'lockPath'> {
  /** All scenarios, and each packet is walked through the kernel's rules too, and explained. */
  readonly isAsked?: boolean;
}

export function scenariosInLab({ isAsked = false, ...options }: LabScenarioOptions): void {
  const lab = useLab({ sctp: true });
  const directory = mkdtempSync(join(tmpdir(), 'junction-scenarios-'));
  let node: LabNode | undefined;
  let sender: PacketSender | undefined;

  afterAll(() => rmSync(directory, { recursive: true }));

  test.for(worldsOf(isAsked ? SCENARIOS : COVERING))('$name', async (scenario, { annotate }) => {
    node ??= await LabNode.start(lab().host('node1'), { ...options, lockPath: join(directory, 'lock') });
    sender ??= new PacketSender(lab());
    await node.apply(scenario);
    const tables = await tablesOf(node);
    for (const family of FAMILIES) await expectFreshState(node, scenario, family, tables[family]);
    const { layout } = options;
    const started = node;
    for (const row of scenario.rows) {
      const reason = sender.whyNot(row);
      if (reason !== undefined) await annotate(`${row.text} was not sent: ${reason}`);
    }
    const rows = sender
      .sendable(scenario.rows)
      .map((row) => [row, expectedIn(layout, started.plan(row.family), row)] as const);
    const expected = rows.map(([row, fate]) => printRow(row, fate));
    if (!isAsked) {
      expect(await sender.send(rows)).toEqual(expected);
      return;
    }
    const before = countersIn(tables);
    const walks = await walksOf(node, rows);
    expect(walks.map(({ row, result }) => printWalk(row, result))).toEqual(expected);
    expect(await explainedRows('iptables', scenario, walks)).toEqual(expected);
    expect(await sender.send(rows)).toEqual(expected);
    expectPathsCounted(before, countersIn(await tablesOf(node)), walks);
    for (const family of FAMILIES) expect(await node.reader(family).compare(node.plan(family))).toEqual([]);
  });
}

async function walksOf(node: LabNode, rows: readonly (readonly [Row, Fate])[]): Promise<readonly Walk[]> {
  // Thousands of programs would be started for chains; foreignRules.test.ts reads them so.
  const options = rows.length < FEW_ROWS ? {} : { byChain: false };
  const readers = { IPv4: node.reader('IPv4', options), IPv6: node.reader('IPv6', options) };
  // At once: then they share what is read.
  return Promise.all(
    rows.map(async ([row, fate]) => ({
      row,
      result: await readers[row.family].walk(row.packet, NODE1),
      isSticky: fate.verdict === 'forward' && fate.sticky,
    })),
  );
}

type FamilyTables = Readonly<Record<Family, MemoryTables>>;

async function tablesOf(node: LabNode): Promise<FamilyTables> {
  return { IPv4: await node.tables('IPv4'), IPv6: await node.tables('IPv6') };
}

function countersIn(tables: FamilyTables): Counts {
  const counts = new Map<string, RuleCount>();
  for (const family of FAMILIES)
    for (const [key, count] of countsOf(family, tables[family])) counts.set(key, count);
  return counts;
}

/** After all the changes from world to world, the kernel holds what it would hold if this was the first. */
async function expectFreshState(
  node: LabNode,
  scenario: Scenario,
  family: Family,
  tables: MemoryTables,
): Promise<void> {
  const fresh = new FakeIptables();
  const side = new IptablesSide(family, node.layout, fresh, NO_COUNTERS);
  const proxy = proxyOf(family, scenario, await side.start());
  await proxy.sync();
  const layout = LAYOUTS[node.layout];
  const expected = describeState(fresh.tables, layout, 'anyOrder');
  expect(describeStateAfterOthers(tables, layout, expected)).toEqual(expected);
}
