/** From everything that the kernel has to what it should have: at a start, after a failure, and to verify. */
import type { Family } from '../../../model/ip.ts';
import { JunctionError } from '../../../errors.ts';
import { type ServerKey, serverKey } from './compile.ts';
import type {
  DestinationState,
  IpvsEdit,
  IpvsClient,
  KernelDevice,
  KernelIpset,
  KernelState,
  ServerAttributes,
} from './client.ts';
import type { DesiredState } from './desiredState.ts';
import { capacityFor, create, entryKey, SET_IDS, type SetId, setName, IPSETS } from './sets.ts';
import { sameAttributes, type Changeset } from './changeset.ts';

/** Sets that have to be made, and how much room each has that is there. Step by step, as is `resyncServers`. */
export function* resyncSets(
  state: KernelState,
  desired: DesiredState,
  family: Family,
  changeset: Changeset,
): Generator<void, Map<SetId, number>> {
  const capacities = new Map<SetId, number>();
  for (const id of SET_IDS) {
    const set = setName(id, family);
    const existing = state.sets.get(set);
    const { type } = IPSETS[id];
    if (existing && existing.type !== type) throw wrongType(set, existing.type, type);
    if (existing) capacities.set(id, existing.capacity);
    else {
      const capacity = capacityFor(desired.sizeOf(id));
      capacities.set(id, capacity);
      changeset.prepare.push(create(id, family, capacity));
    }
    const entries = existing?.entries ?? new Map<string, never>();
    for (const [key, entry] of desired.entriesOf(id)) {
      if (!entries.has(key)) changeset.addEntry(id, entry);
      yield;
    }
    for (const [key, entry] of entries) {
      if (!desired.has(id, key)) changeset.deleteEntry(id, entry);
      yield;
    }
  }
  return capacities;
}

function wrongType(set: string, found: string, wanted: string): JunctionError {
  return new JunctionError(
    'IPSET_TAKEN',
    `the set ${set} is there already and is of type ${found}, not ${wanted}`,
    {
      hint: `Find out who made it (iptables-save | grep ${set}); when nobody needs it: ipset destroy ${set}`,
    },
  );
}

export function resyncDevice(device: KernelDevice, desired: DesiredState, changeset: Changeset): void {
  if (device.state === 'foreign') {
    throw new JunctionError(
      'DEVICE_TAKEN',
      `there is a link kube-ipvs0 that is a ${device.type}, not a dummy`,
      {
        hint: 'Find out who made it; when nobody needs it: ip link delete kube-ipvs0',
      },
    );
  }
  if (device.state === 'absent' || device.broken) {
    if (device.state === 'present') changeset.prepare.push({ kind: 'dropDevice' });
    changeset.prepare.push({ kind: 'makeDevice' });
    for (const ip of desired.boundIps()) changeset.binds.push(ip);
    return;
  }
  const bound = new Set(device.addresses);
  for (const ip of desired.boundIps()) if (!bound.has(ip)) changeset.binds.push(ip);
  for (const ip of bound) if (!desired.isBound(ip)) changeset.unbinds.push(ip);
}

/** Servers in the kernel that are ours to change: wanted, made by this process, or named by our sets or device. */
export function ourServers(
  { device, sets, servers }: KernelState,
  family: Family,
  nodeIps: ReadonlySet<string>,
  isKnown: (key: string) => boolean = () => false,
): readonly ServerAttributes[] {
  const bound = new Set(device.state === 'present' ? device.addresses : []);
  const entriesOf = (id: SetId): KernelIpset['entries'] | undefined => sets.get(setName(id, family))?.entries;
  const named = ADDRESS_SETS.map(entriesOf);
  const nodePorts = { TCP: entriesOf('nodePortTcp'), UDP: entriesOf('nodePortUdp'), SCTP: undefined };
  return servers.filter((server) => {
    const { ip, protocol, port } = server;
    if (isKnown(serverKey(server)) || bound.has(ip)) return true;
    const key = entryKey({ type: 'hash:ip,port', ip, protocol, port });
    if (named.some((entries) => entries?.has(key))) return true;
    // A node port of a former process: on an address of this node, with a port that our sets name.
    return nodeIps.has(ip) && (nodePorts[protocol]?.has(String(port)) ?? false);
  });
}

const ADDRESS_SETS: readonly SetId[] = [
  'clusterIP',
  'externalIP',
  'externalIPLocal',
  'loadBalancer',
  'nodePortSctp',
];

export function* resyncServers(
  existing: readonly ServerAttributes[],
  destinations: readonly (readonly DestinationState[])[],
  desired: DesiredState,
  changeset: Changeset,
  isExcluded: (server: ServerKey) => boolean,
): Generator<void, void> {
  const there = new Set<string>();
  for (const [index, server] of existing.entries()) {
    const key = serverKey(server);
    const wanted = desired.server(key);
    if (wanted) {
      there.add(key);
      if (!sameAttributes(server, wanted)) changeset.setServer(wanted);
      changeset.matchDestinations(wanted, destinations[index] ?? []);
    } else if (!isExcluded(server)) changeset.deletedServers.push(server);
    yield;
  }
  for (const [key, server] of desired.servers()) {
    if (!there.has(key)) changeset.newServer(server);
    yield;
  }
}

/**
 * Leaving the IPVS mode: another mode forwards by now, and new connections no longer get to IPVS. A virtual server with
 * open connections stays until they end, and so does its address: IPVS forgets a connection with its virtual server, and
 * the connection's next packet would be a first one to the new rules, which choose another endpoint.
 *
 * What stays has weight 0, so that it answers nobody when its service is deleted meanwhile. All of it is in the kernel,
 * where a restarted process finds it.
 */
interface RetireOptions {
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

export async function retireServers(client: IpvsClient, options: RetireOptions): Promise<Retired> {
  const { family, nodeIps, isOverdue } = options;
  const state = await client.read();
  const servers = ourServers(state, family, nodeIps);
  const destinations = await client.readDestinations(servers);
  const edits: IpvsEdit[] = [];
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
  const outcomes = await client.apply(edits);
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

function quiesce(server: ServerKey, states: readonly DestinationState[]): readonly IpvsEdit[] {
  return states
    .filter(({ weight }) => weight !== 0)
    .map((destination) => ({ kind: 'setDestination', server, destination, weight: 0 }));
}
