/**
 * Deletes what the IPVS mode leaves, from nothing but the kernel's state: virtual servers that our sets or our device
 * name, the device, and the sets. Virtual servers of others stay.
 */
import { isJunctionError } from '../../errors.ts';
import type { Log } from '../../log/log.ts';
import { FAMILIES, type Family, type Ip } from '../../model/ip.ts';
import { NLM_F_DUMP } from '../../netlink/codec.ts';
import type { ChangeOutcome } from '../../netlink/request.ts';
import type { NetlinkChannel } from '../../netlink/channel.ts';
import { destroySet, listRequest } from '../../netlink/ipset.ts';
import { deleteService } from '../../netlink/ipvs.ts';
import { deleteLink } from '../../netlink/rtnetlink.ts';
import { systemClock } from '../../time/systemClock.ts';
import { wait } from '../../time/wait.ts';
import { withSockets } from '../../netlink/sockets.ts';
import { channelsOf, findIpvs, type IpvsChannels, NetlinkIpvsClient } from './client.ts';
import { findDevice, readAddresses } from './device.ts';
import { DEVICE, type IpvsEdit, type ServerAttributes } from './rules/client.ts';
import { serverKey } from './rules/compile.ts';
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
  const hasIpvs = (await findIpvs(channels.generic)) !== undefined;
  const nodeIps = await nodeAddresses(channels.route, family);
  const servers = ourServers(hasIpvs ? await client.readServers() : [], { family, sets, bound, nodeIps });
  return { family, servers, bound, sets: [...sets.keys()] };
}

/** First what attracts packets and sends them on. The rules must go before the sets that they match. */
export async function removeServers(
  channels: IpvsChannels,
  stale: readonly StaleIpvsObjects[],
): Promise<readonly string[]> {
  const ipvs = await findIpvs(channels.generic);
  const servers = stale.flatMap((each) => each.servers);
  const failures: string[] = [];
  if (ipvs !== undefined && servers.length > 0) {
    const outcomes = await channels.generic.apply(servers.map((server) => deleteService(ipvs, server)));
    const names = servers.map((server) => `virtual server ${serverKey(server)}`);
    failures.push(...refusals(outcomes, names));
  }
  const device = await findDevice(channels.route);
  const isAll = FAMILIES.every((family) => stale.some((each) => each.family === family));
  if (device?.kind === 'dummy' && isAll)
    failures.push(...refusals(await channels.route.apply([deleteLink(DEVICE)]), [`device ${DEVICE}`]));
  return failures;
}

/** What a rule of another program still matches cannot be deleted; the failures name it. */
export async function removeSets(
  channels: IpvsChannels,
  stale: readonly StaleIpvsObjects[],
): Promise<readonly string[]> {
  let names: readonly string[] = stale.flatMap(({ sets, family }) =>
    sets.length > 0 ? [...sets, growingName(family)] : [],
  );
  for (let tries = 1; names.length > 0; tries++) {
    const outcomes = await channels.netfilter.apply(names.map(destroySet));
    const objects = names.map((name) => `set ${name}`);
    if (tries === TRIES) return refusals(outcomes, objects);
    names = names.filter((_, index) => outcomes[index]?.state === 'refused');
    // A program that lists a set holds a reference to it meanwhile.
    if (names.length > 0) await wait(systemClock, PAUSE_MS);
  }
  return [];
}

function refusals(outcomes: readonly ChangeOutcome[], names: readonly string[]): readonly string[] {
  return outcomes.flatMap((outcome, index) =>
    outcome.state === 'refused' ? [`${names[index]}: ${outcome.name}`] : [],
  );
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
      this.#log.warn('Cannot remove what the ipvs mode left', { err: error, whatToDo: 'junction cleanup' });
    }
    return isDone;
  }

  async #remove(channels: IpvsChannels): Promise<boolean> {
    const isOverdue = this.#limitMs > 0 && performance.now() - this.#since >= this.#limitMs;
    const failures: string[] = [];
    const count = { virtualServers: 0, addresses: 0, kept: 0, connections: 0 };
    const hasIpvs = (await findIpvs(channels.generic)) !== undefined;
    for (const family of hasIpvs ? FAMILIES : []) {
      const client = new NetlinkIpvsClient(family, channels);
      const { edits, kept, connections } = await retirement(channels, client, family, isOverdue);
      count.kept += kept;
      count.connections += connections;
      for (const { kind } of edits)
        if (kind === 'deleteServer') count.virtualServers++;
        else if (kind === 'unbind') count.addresses++;
      for (const [index, outcome] of (await client.apply(edits)).entries())
        if (outcome.state === 'refused') failures.push(`${edits[index]?.kind ?? ''}: ${outcome.name}`);
    }
    const { kept, connections, ...removed } = count;
    const sets = kept === 0 ? await removeRest(channels, failures) : 0;
    if (kept === 0 || removed.virtualServers + removed.addresses > 0)
      this.#log.info('Removed what the ipvs mode left', { ...removed, sets });
    if (kept > 0 && kept !== this.#loggedServers)
      this.#log.info('Kept virtual servers of the ipvs mode until their connections have ended', {
        virtualServers: kept,
        connections,
        drainLimit: this.#limitMs === 0 ? 'none' : `${this.#limitMs / 1000}s`,
      });
    this.#loggedServers = kept;
    for (const what of failures) this.#log.warn('Cannot remove what the ipvs mode left', { what });
    return kept === 0;
  }
}

/** Asked first, because the very question for virtual servers loads the module. */
async function isThereAny({ route, netfilter }: IpvsChannels): Promise<boolean> {
  if (await findDevice(route)) return true;
  for (const family of FAMILIES) {
    const request = { ...listRequest(setName('clusterIP', family)), flags: NLM_F_DUMP };
    if ((await netfilter.request(request)).kind === 'answered') return true;
  }
  return false;
}

/** Deletes virtual servers without open connections; the others get weight 0, and keep their address. */
async function retirement(
  channels: IpvsChannels,
  client: NetlinkIpvsClient,
  family: Family,
  isOverdue: boolean,
) {
  const { servers, bound } = await findStaleObjects(channels, family);
  const destinations = servers.length > 0 ? await client.readDestinations(servers) : [];
  const edits: IpvsEdit[] = [];
  const keptIps = new Set<string>();
  let [kept, connections] = [0, 0];
  for (const [index, server] of servers.entries()) {
    const states = destinations[index] ?? [];
    // Datagrams have no end that could be waited for; the next one goes by the new rules.
    const isOver = isOverdue || server.protocol === 'UDP';
    const open = isOver ? 0 : states.reduce((sum, state) => sum + state.connections, 0);
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

/** The device and the sets; by these a restarted process knows a virtual server for ours, so they go last. Returns how many sets. */
async function removeRest(channels: IpvsChannels, failures: string[]): Promise<number> {
  const stale: StaleIpvsObjects[] = [];
  for (const family of FAMILIES) stale.push(await findStaleObjects(channels, family));
  failures.push(...(await removeServers(channels, stale)), ...(await removeSets(channels, stale)));
  return stale.reduce((sum, { sets }) => sum + sets.length, 0);
}
