/**
 * Deletes what the IPVS mode leaves, from nothing but the kernel's state: virtual servers that our sets or our device
 * name, the device, and the sets. Virtual servers of others stay.
 */
import { isJunctionError } from '../../errors.ts';
import type { Log } from '../../log/log.ts';
import { FAMILIES, type Family, type Ip } from '../../model/ip.ts';
import { NLM_F_DUMP } from '../../netlink/codec.ts';
import type { NetlinkChannel } from '../../netlink/channel.ts';
import { listRequest } from '../../netlink/ipset.ts';
import { systemClock } from '../../time/systemClock.ts';
import { wait } from '../../time/wait.ts';
import { withSockets } from '../../netlink/sockets.ts';
import { channelsOf, type IpvsChannels, NetlinkIpvsClient } from './client.ts';
import { findDevice, readAddresses } from './device.ts';
import { type IpvsClient, type IpvsEdit, openConnections, type ServerAttributes } from './rules/client.ts';
import { editName } from './rules/outcomes.ts';
import { ourServers, readSets } from './rules/resync.ts';
import { growingName, setName } from './rules/sets.ts';

const TRIES = 5;
const PAUSE_MS = 50;

export interface StaleIpvsObjects {
  readonly family: Family;
  readonly servers: readonly ServerAttributes[];
  /** Addresses on the device. */
  readonly bound: readonly Ip[];
  readonly sets: readonly string[];
}

export async function findStaleObjects(channels: IpvsChannels, family: Family): Promise<StaleIpvsObjects> {
  const client = new NetlinkIpvsClient(family, channels);
  const sets = await readSets(client, family).catch((error: unknown) => {
    // A kernel without sets has none of ours.
    if (isJunctionError(error, 'NETLINK_FAILED')) return new Map<string, never>();
    throw error;
  });
  const device = await client.readDevice();
  const bound = device.state === 'present' ? device.addresses : [];
  const nodeIps = await nodeAddresses(channels.route, family);
  const servers = ourServers(await client.readServers(), { family, sets, bound, nodeIps });
  return { family, servers, bound, sets: [...sets.keys()] };
}

/** First what attracts packets and sends them on. The rules must go before the sets that they match. */
export async function removeServers(
  channels: IpvsChannels,
  stale: readonly StaleIpvsObjects[],
): Promise<readonly string[]> {
  const servers = stale.flatMap((each) => each.servers);
  const device = await findDevice(channels.route);
  const isAll = FAMILIES.every((family) => stale.some((each) => each.family === family));
  return refusalsOf(new NetlinkIpvsClient('IPv4', channels), [
    ...servers.map((server) => ({ kind: 'deleteServer', server }) as const),
    ...(device?.kind === 'dummy' && isAll ? [{ kind: 'dropDevice' } as const] : []),
  ]);
}

/** What a rule of another program still matches cannot be deleted; the failures name it. */
export async function removeSets(
  channels: IpvsChannels,
  stale: readonly StaleIpvsObjects[],
): Promise<readonly string[]> {
  const client = new NetlinkIpvsClient('IPv4', channels);
  const edits = stale
    .flatMap(({ sets, family }) => (sets.length > 0 ? [...sets, growingName(family)] : []))
    .map((set) => ({ kind: 'destroySet', set }) as const);
  for (let tries = 1; ; tries++) {
    const failures = await refusalsOf(client, edits);
    if (tries === TRIES || failures.length === 0) return failures;
    // A program that lists a set holds a reference to it meanwhile.
    await wait(systemClock, PAUSE_MS);
  }
}

async function refusalsOf(client: NetlinkIpvsClient, edits: readonly IpvsEdit[]): Promise<readonly string[]> {
  const outcomes = await client.apply(edits);
  return edits.flatMap((edit, index) => {
    const outcome = outcomes[index];
    return outcome?.state === 'refused' ? [`${editName(edit)}: ${outcome.name}`] : [];
  });
}

/** Addresses of this node, but for those of the device. */
async function nodeAddresses(route: NetlinkChannel, family: Family): Promise<ReadonlySet<string>> {
  const device = await findDevice(route);
  const addresses = await readAddresses(route, family);
  return new Set(addresses.filter(({ linkIndex }) => linkIndex !== device?.index).map(({ ip }) => ip));
}

/*
 * A node that was switched from the IPVS mode: once the new rules work, its stale objects are deleted. Service addresses
 * would otherwise stay addresses of this node for ever.
 *
 * A virtual server with open connections stays until they end, and so does its address: IPVS forgets a connection with its
 * virtual server, and the connection's next packet would be a first one to the new rules, which choose another endpoint. It
 * has weight 0, so that it answers nobody when its service is deleted meanwhile. All of it is in the kernel, where a restarted
 * process finds it.
 */

/** How often open connections are counted. */
const INTERVAL_MS = 10_000;

interface StaleIpvsOptions {
  readonly log: Log;
  /** After which open connections are cut; 0: never. */
  readonly drainLimitMs: number;
}

/** Nothing that fails here may stop the proxy. */
export class StaleIpvs {
  readonly #log: Log;
  readonly #limitMs: number;
  readonly #end = new AbortController();
  #draining: Promise<void> = Promise.resolve();
  #since = 0;
  #loggedServers = -1;

  constructor({ log, drainLimitMs }: StaleIpvsOptions) {
    this.#log = log;
    this.#limitMs = drainLimitMs;
  }

  /** Resolves when all is gone but what waits for connections to end. */
  async remove(): Promise<void> {
    this.#since = performance.now();
    if (!(await this.#pass())) this.#draining = this.#drain();
  }

  async close(): Promise<void> {
    this.#end.abort();
    await this.#draining;
  }

  async #drain(): Promise<void> {
    const { signal } = this.#end;
    const pauseMs = this.#limitMs > 0 ? Math.min(this.#limitMs, INTERVAL_MS) : INTERVAL_MS;
    do await wait(systemClock, pauseMs, signal);
    while (!signal.aborted && !(await this.#pass()));
  }

  /** Returns whether nothing is left to wait for. */
  async #pass(): Promise<boolean> {
    let isDone = true;
    try {
      await withSockets(async (sockets) => {
        const channels = channelsOf(sockets);
        if (await isThereAny(channels)) isDone = await this.#remove(channels);
      });
    } catch (error) {
      this.#log.warn(FAILURE, { err: error, whatToDo: 'junction cleanup' });
    }
    return isDone;
  }

  async #remove(channels: IpvsChannels): Promise<boolean> {
    const isOverdue = this.#limitMs > 0 && performance.now() - this.#since >= this.#limitMs;
    const failures: string[] = [];
    let [virtualServers, addresses, kept, connections, sets] = [0, 0, 0, 0, 0];
    for (const family of FAMILIES) {
      const client = new NetlinkIpvsClient(family, channels);
      const stale = await findStaleObjects(channels, family);
      const retirement = await retire(client, stale, isOverdue);
      failures.push(...(await refusalsOf(client, retirement.edits)));
      virtualServers += stale.servers.length - retirement.kept;
      addresses += retirement.edits.filter(({ kind }) => kind === 'unbind').length;
      kept += retirement.kept;
      connections += retirement.connections;
    }
    if (kept === 0) {
      // By these a restarted process knows a virtual server for ours, so they go last.
      const stale: StaleIpvsObjects[] = [];
      for (const family of FAMILIES) stale.push(await findStaleObjects(channels, family));
      failures.push(...(await removeServers(channels, stale)), ...(await removeSets(channels, stale)));
      sets = stale.flatMap((each) => each.sets).length;
    }
    if (kept === 0 || virtualServers + addresses > 0)
      this.#log.info('Removed what the ipvs mode left', { virtualServers, addresses, sets });
    if (kept > 0 && kept !== this.#loggedServers) {
      const drainLimit = this.#limitMs === 0 ? 'none' : `${this.#limitMs / 1000}s`;
      const what = { virtualServers: kept, connections, drainLimit };
      this.#log.info('Kept virtual servers of the ipvs mode until their connections have ended', what);
    }
    this.#loggedServers = kept;
    for (const what of failures) this.#log.warn(FAILURE, { what });
    return kept === 0;
  }
}

const FAILURE = 'Cannot remove what the ipvs mode left';

/** Asked first, because the very question for virtual servers loads the module. */
async function isThereAny({ route, netfilter }: IpvsChannels): Promise<boolean> {
  if (await findDevice(route)) return true;
  for (const family of FAMILIES) {
    const request = { ...listRequest(setName('KUBE-CLUSTER-IP', family)), flags: NLM_F_DUMP };
    if ((await netfilter.request(request)).kind === 'answered') return true;
  }
  return false;
}

/** Deletes virtual servers without open connections; the others get weight 0, and keep their address. */
async function retire(client: IpvsClient, { servers, bound }: StaleIpvsObjects, isOverdue: boolean) {
  const destinations = servers.length > 0 ? await client.readDestinations(servers) : [];
  const edits: IpvsEdit[] = [];
  const keptIps = new Set<string>();
  let [kept, connections] = [0, 0];
  for (const [index, server] of servers.entries()) {
    const states = destinations[index] ?? [];
    // Datagrams have no end that could be waited for; the next one goes by the new rules.
    const open = isOverdue || server.protocol === 'UDP' ? 0 : openConnections(states);
    if (open === 0) {
      edits.push({ kind: 'deleteServer', server });
      continue;
    }
    kept++;
    connections += open;
    keptIps.add(server.ip);
    for (const destination of states.filter(({ weight }) => weight !== 0))
      edits.push({ kind: 'setDestination', server, destination, weight: 0, was: destination.weight });
  }
  for (const ip of bound) if (!keptIps.has(ip)) edits.push({ kind: 'unbind', ip });
  return { edits, kept, connections };
}
