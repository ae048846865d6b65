/** A representative packet as a question that somebody can ask again. */
import type { PacketExplanation } from '../../../src/explain/types.ts';
import { hostPort } from '../../../src/model/ip.ts';

export function packetQuestion({ packet, source }: PacketExplanation): {
  readonly from: string;
  readonly to: string;
} {
  const { destination, port, protocol, inInterface } = packet;
  const from =
    source.class === 'node'
      ? 'node'
      : `${packet.source}${inInterface === undefined ? '' : `%${inInterface}`}`;
  const suffix = protocol === 'TCP' ? '' : `/${protocol.toLowerCase()}`;
  return { from, to: `${hostPort(destination, port)}${suffix}` };
}
