/** Every packet that could matter to the clusters that tests make up, and what can become of it. */
import { type WalkOutcome } from '../../../../src/modes/walk.ts';
import { type Packet } from '../../../../src/plan/decide.ts';
import { type LearnedEntry, walkNftables } from '../../../../src/modes/nftables/rules/walk.ts';
import { type WalkTable } from '../../../../src/modes/nftables/rules/walk.ts';
import { ip } from '../../../plan/given.ts';
import { CLIENT } from './clients.ts';
import type { FakeNftKernel } from './fakeKernel.ts';

const HOST = { addresses: [ip('192.0.2.10')] };
const SOURCES = [
  { source: CLIENT.source, inInterface: 'eth0' },
  { source: ip('9.9.9.9'), inInterface: 'eth0' },
  { source: ip('10.244.0.1'), inInterface: 'cni0' },
  { source: ip('192.0.2.10'), inInterface: undefined },
];
const DESTINATIONS = ['10.96.0.1', '10.96.0.2', '1.1.1.1', '2.2.2.2', '192.0.2.10'].map(ip);
const PORTS = [
  ['TCP', 80],
  ['TCP', 81],
  ['UDP', 53],
  ['TCP', 30_080],
] as const;

export const PACKETS: readonly Packet[] = SOURCES.flatMap(({ source, inInterface }) =>
  DESTINATIONS.flatMap((destination) =>
    PORTS.map(([protocol, port]) => ({ source, inInterface, destination, protocol, port })),
  ),
);

export function outcomesOf(
  { walkable }: FakeNftKernel,
  packet: Packet,
): readonly WalkOutcome<LearnedEntry>[] {
  return outcomesIn(walkable, packet);
}

export function outcomesIn(table: WalkTable, packet: Packet): readonly WalkOutcome<LearnedEntry>[] {
  return walkNftables(table, packet, HOST, { record: false }).outcomes;
}

export function printPacket({ source, protocol, destination, port }: Packet): string {
  return `${source} ${protocol} ${destination}:${port}`;
}
