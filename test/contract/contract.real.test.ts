/** What every mode must do, on this machine's own kernel, with real packets. IPVS: test/guest. */
import { afterAll, describe, expect, test } from 'vitest';
import { GuestNode } from '../guest/guestNode.ts';
import { useLab } from '../lab/requireLab.ts';
import { PacketSender } from '../scenarios/labPackets.ts';
import { testProgram } from '../support/programs.ts';
import { casesFor, casesWithOthers } from './parse.ts';
import { RealNode } from './real.ts';
import { runCase } from './run.ts';

const CASES = {
  nftables: casesFor('nftables', 'real'),
  'nftables-unprotected': casesWithOthers('nftables', 'real'),
  'iptables-nft': casesFor('iptables', 'real'),
} as const;

describe.each(['nftables', 'nftables-unprotected', 'iptables-nft'] as const)('%s', (mode) => {
  const lab = useLab();
  let node: GuestNode | undefined;
  afterAll(() => node?.close());

  test.each(CASES[mode])('$title', async (each) => {
    node ??= await GuestNode.start(lab(), mode, testProgram('node'));
    await node.contract('open', each.family);
    const parts = { mode, node, lab: lab(), sender: new PacketSender(lab()) };
    await expect(runCase(new RealNode(parts), each)).resolves.toBeUndefined();
  });
});
