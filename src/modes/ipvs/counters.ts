/** How many connections each endpoint got, as real servers have counted them. */
import { type Family, hostPort } from '../../model/ip.ts';
import { messagesOf, type NetlinkChannel } from '../../netlink/channel.ts';
import { decodeDestination, decodeDestinationCounters, getDestinations } from '../../netlink/ipvs.ts';
import type { ConnectionReading } from '../../telemetry/metrics/connections.ts';
import { systemClock } from '../../time/systemClock.ts';
import { TimeSlice } from '../../time/timeSlice.ts';
import type { VirtualServer } from './rules/compile.ts';

/** Between two such readings a sync has its turn. */
const SERVERS_AT_ONCE = 16;

/** The kernel lists the real servers of one virtual server at a time. */
export async function readServerConnections(
  generic: Pick<NetlinkChannel, 'dumpAll'>,
  ipvs: number,
  virtualServers: Iterable<readonly [key: string, server: VirtualServer]>,
  family: Family,
): Promise<readonly ConnectionReading[]> {
  const servers = [...virtualServers];
  const timeSlice = new TimeSlice(systemClock);
  const readings: ConnectionReading[] = [];
  for (let from = 0; from < servers.length; from += SERVERS_AT_ONCE) {
    const some = servers.slice(from, from + SERVERS_AT_ONCE);
    const replies = await generic.dumpAll(some.map(([, server]) => getDestinations(ipvs, server)));
    timeSlice.begin();
    for (const [index, [key, { servicePort, protocol }]] of some.entries()) {
      for (const { payload } of messagesOf(replies[index], 'the endpoints of a virtual server')) {
        const { connections } = decodeDestinationCounters(payload);
        if (connections === undefined) continue;
        const { ip, port } = decodeDestination(payload);
        const endpoint = hostPort(ip, port);
        const element = `${key} -> ${endpoint}`;
        readings.push({
          family,
          servicePort,
          protocol,
          endpoint,
          element,
          connections,
          isCountedElsewhere: false,
        });
      }
    }
    const pause = timeSlice.pause();
    if (pause) await pause;
  }
  return readings;
}
