/** How many connections each endpoint got, as real servers have counted them. */
import { type Family, hostPort } from '../../model/ip.ts';
import type { NetlinkChannel } from '../../netlink/channel.ts';
import { decodeDestination, decodeDestinationCounters, getDestinations } from '../../netlink/ipvs.ts';
import type { ConnectionReading } from '../../telemetry/metrics/connections.ts';
import { systemClock } from '../../time/systemClock.ts';
import { TimeSlice } from '../../time/timeSlice.ts';
import { DESTINATIONS } from './client.ts';
import type { VirtualServer } from './rules/compile.ts';

/** The kernel lists the real servers of one virtual server at a time. */
export async function readServerConnections(
  generic: Pick<NetlinkChannel, 'list'>,
  ipvs: number,
  virtualServers: Iterable<readonly [key: string, server: VirtualServer]>,
  family: Family,
): Promise<readonly ConnectionReading[]> {
  const timeSlice = new TimeSlice(systemClock);
  const readings: ConnectionReading[] = [];
  const servers = [...virtualServers]; // they change meanwhile
  for (const [key, server] of servers) {
    const { servicePort, protocol } = server;
    const counted = await generic.list(getDestinations(ipvs, server), DESTINATIONS, (payload) => ({
      ...decodeDestination(payload),
      ...decodeDestinationCounters(payload),
    }));
    timeSlice.begin();
    for (const { ip, port, connections } of counted) {
      if (connections === undefined) continue;
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
    const pause = timeSlice.pause();
    if (pause) await pause;
  }
  return readings;
}
