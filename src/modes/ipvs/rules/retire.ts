/**
 * Leaving the IPVS mode: another mode forwards by now, and new connections no longer get to IPVS. A virtual server with
 * open connections stays until they end, and so does its address: IPVS forgets a connection with its virtual server, and
 * the connection's next packet would be a first one to the new rules, which choose another endpoint.
 *
 * What stays has weight 0, so that it answers nobody when its service is deleted meanwhile. All of it is in the kernel,
 * where a restarted process finds it.
 */
import type { Family } from '../../../model/ip.ts';
import { isNodePortServer, ourServers } from './adopt.ts';
import type { ServerKey } from './fragment.ts';
import type { DestinationState, Edit, IpvsClient } from './kernelDoor.ts';

export interface RetireOptions {
  readonly family: Family;
  readonly nodeIps: ReadonlySet<string>;
  /** Open connections have had their time. */
  readonly isOverdue: boolean;
}

export interface Retired {
  readonly servers: number;
  readonly addresses: number;
  /** Virtual servers that wait for connections to end. */
  readonly keptServers: number;
  readonly connections: number;
  /** What the kernel refused. */
  readonly failures: readonly string[];
}

export async function retireServers(door: IpvsClient, options: RetireOptions): Promise<Retired> {
  const { family, nodeIps, isOverdue } = options;
  const state = await door.read();
  const named = new Set(ourServers(state, family, () => false));
  const servers = state.servers.filter(
    (server) => named.has(server) || isNodePortServer(server, state, family, nodeIps),
  );
  const destinations = await door.readDestinations(servers);
  const edits: Edit[] = [];
  const keptIps = new Set<string>();
  let [keptServers, connections, addresses] = [0, 0, 0];
  for (const [index, server] of servers.entries()) {
    const states = destinations[index] ?? [];
    const open = isOverdue ? 0 : openConnections(server, states);
    if (open === 0) {
      edits.push({ kind: 'deleteServer', server });
      continue;
    }
    keptServers++;
    connections += open;
    keptIps.add(server.ip);
    edits.push(...quiesce(server, states));
  }
  for (const ip of state.device.state === 'present' ? state.device.addresses : []) {
    if (keptIps.has(ip)) continue;
    addresses++;
    edits.push({ kind: 'unbind', ip });
  }
  const outcomes = await door.apply(edits);
  return {
    servers: servers.length - keptServers,
    addresses,
    keptServers,
    connections,
    failures: outcomes.flatMap((outcome, index) =>
      outcome.state === 'refused' ? [`${edits[index]?.kind ?? ''}: ${outcome.name}`] : [],
    ),
  };
}

/** Datagrams have no end that could be waited for; the next one goes by the new rules. */
function openConnections({ protocol }: ServerKey, states: readonly DestinationState[]): number {
  return protocol === 'UDP' ? 0 : states.reduce((sum, { connections }) => sum + connections, 0);
}

function quiesce(server: ServerKey, states: readonly DestinationState[]): readonly Edit[] {
  return states
    .filter(({ weight }) => weight !== 0)
    .map((destination) => ({ kind: 'setDestination', server, destination, weight: 0 }));
}
