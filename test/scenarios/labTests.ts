/** Every scenario with real packets, through one cluster of network namespaces. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { useLab } from '../lab/requireLab.ts';
import { SCENARIOS } from './cases/index.ts';
import { expectedIn } from './expectations.ts';
import { LabNode, type LabNodeOptions } from './labNode.ts';
import { PacketSender } from './labPackets.ts';
import { printRow } from './packets.ts';

export function scenariosInLab(options: Omit<LabNodeOptions, 'lockPath'>): void {
  const lab = useLab();
  const directory = mkdtempSync(join(tmpdir(), 'junction-scenarios-'));
  let node: LabNode | undefined;
  let sender: PacketSender | undefined;

  afterAll(() => rmSync(directory, { recursive: true }));

  test.each(SCENARIOS)('$name', { timeout: 30_000 }, async (scenario) => {
    node ??= await LabNode.start(lab().host('node1'), { ...options, lockPath: join(directory, 'lock') });
    sender ??= new PacketSender(lab());
    await node.apply(scenario);
    const { layout } = options;
    const started = node;
    const rows = scenario.rows
      .filter(({ inLab }) => inLab)
      .map((row) => [row, expectedIn(layout, started.plan(row.family), row)] as const);
    expect(await sender.send(rows)).toEqual(rows.map(([row, fate]) => printRow(row, fate)));
  });
}
