/**
 * Takes out what the IPVS mode leaves, from nothing but the kernel's state: virtual servers that our sets or our device
 * name, the device, and the sets. Virtual servers of others stay.
 */
import { isJunctionError } from '../../errors.ts';
import type { Log } from '../../log/log.ts';
import { FAMILIES, type Family } from '../../model/ip.ts';
import type { ChangeOutcome } from '../../netlink/request.ts';
import type { NetlinkChannel } from '../../netlink/channel.ts';
import { destroySet, listRequest } from '../../netlink/ipset.ts';
import { deleteService } from '../../netlink/ipvs.ts';
import { deleteLink } from '../../netlink/rtnetlink.ts';
import { systemClock } from '../../time/systemClock.ts';
import { wait } from '../../time/wait.ts';
import { withNetlink } from '../staleObjects.ts';
import {
  channelsOf,
  findIpvs,
  type IpvsChannels,
  NetlinkIpvsClient,
  readServers,
  readSets,
} from './client.ts';
import { findDevice, readAddresses, readDevice } from './device.ts';
import { DEVICE, type KernelIpset } from './rules/client.ts';
import { type ServerKey, serverKey } from './rules/compile.ts';
import { ourServers, type Retired, retireServers } from './rules/resync.ts';
import { growingName, setName } from './rules/sets.ts';

const TRIES = 5;
const PAUSE_MS = 50;

/** Of one family. */
export interface StaleIpvsObjects {
  readonly family: Family;
  readonly servers: readonly ServerKey[];
  /** Addresses on the device. */
  readonly addresses: number;
  readonly sets: readonly string[];
}

export async function findStaleObjects(channels: IpvsChannels, family: Family): Promise<StaleIpvsObjects> {
  const { route, netfilter, generic } = channels;
  const sets = await readSets(netfilter, family).catch((error: unknown) => {
    // A kernel without sets has none of ours.
    if (isJunctionError(error, 'NETLINK_FAILED')) return new Map<string, KernelIpset>();
    throw error;
  });
  const device = await readDevice(route, family);
  const ipvs = await findIpvs(generic);
  const servers = ipvs === undefined ? [] : await readServers(generic, ipvs, family);
  return {
    family,
    servers: ourServers({ sets, device, servers }, family, await nodeAddresses(route, family)),
    addresses: device.state === 'present' ? device.addresses.length : 0,
    sets: [...sets.keys()],
  };
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
    if (tries === TRIES)
      return refusals(
        outcomes,
        names.map((name) => `set ${name}`),
      );
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
 * would otherwise stay addresses of this node for ever. Virtual servers with open connections go when these have ended.
 */

/** How often connections are looked at that keep something in the kernel. */
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
    await withNetlink(
      async (thread) => {
        const channels = channelsOf(thread);
        if (await isThereAny(channels)) isDone = await this.#remove(channels);
      },
      (error) =>
        this.#log.warn('Cannot remove what the ipvs mode left', { err: error, whatToDo: 'junction cleanup' }),
    );
    return isDone;
  }

  async #remove(channels: IpvsChannels): Promise<boolean> {
    const isOverdue = this.#limitMs > 0 && performance.now() - this.#since >= this.#limitMs;
    const retired = await retire(channels, isOverdue);
    const sum = (count: (each: Retired) => number): number =>
      retired.reduce((total, each) => total + count(each), 0);
    const keptServers = sum((each) => each.keptServers);
    const isDone = keptServers === 0;
    const rest = isDone ? await removeRest(channels) : { sets: 0, failures: [] };
    const virtualServers = sum((each) => each.servers);
    const addresses = sum((each) => each.addresses);
    if (isDone || virtualServers + addresses > 0)
      this.#log.info('Removed what the ipvs mode left', { virtualServers, addresses, sets: rest.sets });
    if (!isDone && keptServers !== this.#loggedServers)
      this.#log.info('Kept virtual servers of the ipvs mode until their connections have ended', {
        virtualServers: keptServers,
        connections: sum((each) => each.connections),
        drainLimit: this.#limitMs === 0 ? 'none' : `${this.#limitMs / 1000}s`,
      });
    this.#loggedServers = keptServers;
    for (const what of [...retired.flatMap(({ failures }) => failures), ...rest.failures])
      this.#log.warn('Cannot remove what the ipvs mode left', { what });
    return isDone;
  }
}

/** Asked first, because the very question for virtual servers loads the module. */
async function isThereAny({ route, netfilter }: IpvsChannels): Promise<boolean> {
  if (await findDevice(route)) return true;
  const replies = await netfilter.dumpAll(
    FAMILIES.map((family) => listRequest(setName('clusterIP', family))),
  );
  return replies.some(({ kind }) => kind === 'answered');
}

async function retire(channels: IpvsChannels, isOverdue: boolean): Promise<readonly Retired[]> {
  const retired: Retired[] = [];
  if ((await findIpvs(channels.generic)) === undefined) return retired;
  for (const family of FAMILIES) {
    const nodeIps = await nodeAddresses(channels.route, family);
    retired.push(
      await retireServers(new NetlinkIpvsClient(family, channels), { family, nodeIps, isOverdue }),
    );
  }
  return retired;
}

/** The device and the sets; by these a restarted process knows a virtual server for ours, so they go last. */
async function removeRest(
  channels: IpvsChannels,
): Promise<{ readonly sets: number; readonly failures: readonly string[] }> {
  const stale: StaleIpvsObjects[] = [];
  for (const family of FAMILIES) stale.push(await findStaleObjects(channels, family));
  const failures = [...(await removeServers(channels, stale)), ...(await removeSets(channels, stale))];
  return { sets: stale.reduce((sum, { sets }) => sum + sets.length, 0), failures };
}
