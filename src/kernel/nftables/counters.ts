/** How many connections each endpoint got, as the elements of our maps have counted them. */
import { TABLE } from '../../backends/nftables/names.ts';
import type { Ruleset } from '../../backends/nftables/rule.ts';
import { type Family, hostPort } from '../../model/ip.ts';
import type { Protocol } from '../../model/objects.ts';
import { Breath } from '../../sync/breath.ts';
import { systemClock } from '../../sync/systemClock.ts';
import type { NetlinkChannel } from '../netlink/channel.ts';
import { decodeElements, getElements } from '../netlink/nftables/elements.ts';
import { endpointOf, keyOf } from './sets.ts';

export interface ConnectionCount {
  /** `namespace/name:port` */
  readonly servicePort: string;
  readonly protocol: Protocol;
  /** `10.0.0.1:80` */
  readonly endpoint: string;
  readonly connections: number;
}

/** A service port has an endpoint once for each of its frontends, and more often in pools of many: all are added up. */
export async function readConnections(
  channel: NetlinkChannel,
  { sets }: Ruleset,
  family: Family,
): Promise<readonly ConnectionCount[]> {
  const place = { family: family === 'IPv4' ? 'ip' : 'ip6', table: TABLE } as const;
  const counts = new Map<string, ConnectionCount>();
  const breath = new Breath(systemClock);
  for (const set of sets.filter(({ counts: isCounting }) => isCounting)) {
    const [reply] = await channel.dumpAll([getElements({ ...place, set: set.name })]);
    if (reply?.kind !== 'answered') continue; // it went meanwhile
    breath.begin();
    for (const { payload } of reply.messages) {
      for (const element of decodeElements(payload).elements) {
        const { counter, comment, data } = element;
        const { protocol } = keyOf(set, element, family);
        if (!counter || comment === undefined || !data || !protocol) continue;
        const { ip, port } = endpointOf(data, family);
        const endpoint = hostPort(ip, port);
        const key = `${comment} ${protocol} ${endpoint}`;
        const connections = Number(counter.packets) + (counts.get(key)?.connections ?? 0);
        counts.set(key, { servicePort: comment, protocol, endpoint, connections });
      }
      const pause = breath.take();
      if (pause) await pause;
    }
  }
  return [...counts.values()];
}
