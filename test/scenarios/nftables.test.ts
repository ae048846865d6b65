/** Every scenario with real packets through the nftables mode, on this machine's own kernel. */
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { GuestNode } from '../guest/guestNode.ts';
import { buildGuestPrograms, type GuestPrograms } from '../guest/programs.ts';
import { useLab } from '../lab/requireLab.ts';
import { SCENARIOS } from './cases/index.ts';
import { PacketSender } from './labPackets.ts';
import { printRow } from './packets.ts';

const lab = useLab();
let programs: GuestPrograms | undefined;
let node: GuestNode | undefined;
let sender: PacketSender | undefined;

beforeAll(async () => {
  programs = await buildGuestPrograms();
});
afterAll(async () => {
  await node?.close();
  await programs?.remove();
});

test.each(SCENARIOS)('$name', async (scenario) => {
  if (!programs) throw new Error('the program for node1 was not built');
  node ??= await GuestNode.start(lab(), 'nftables', join(dirname(programs.main), 'node.js'));
  sender ??= new PacketSender(lab());
  const fates = await node.apply(scenario);
  const pairs = scenario.rows.flatMap((row, index) => {
    const fate = fates[index];
    const isSent = row.inLab && row.transport !== 'sctp' && fate !== undefined;
    return isSent ? [[row, fate] as const] : [];
  });
  expect(await sender.send(pairs)).toEqual(pairs.map(([row, fate]) => printRow(row, fate)));
});
