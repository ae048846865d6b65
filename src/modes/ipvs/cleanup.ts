/**
 * Takes out what the IPVS mode leaves, from nothing but the kernel's state: virtual servers that our sets or our device
 * name, the device, and the sets. Virtual servers of others stay.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { isNodePortServer, ourServers, type Retired, retireServers } from './rules/resync.ts';
import { type ServerKey, serverKey } from './rules/compile.ts';
import type { KernelDevice, KernelIpset } from './rules/client.ts';
import { growingName, setName } from './rules/sets.ts';
import { isJunctionError } from '../../errors.ts';
import { FAMILIES, type Family } from '../../model/ip.ts';
import { decodeAddress, getAddresses, deleteLink } from '../../netlink/rtnetlink.ts';
import type { ChangeOutcome } from '../../netlink/batch.ts';
import type { NetlinkChannel } from '../../netlink/channel.ts';
import { decodeFamilyId, getFamily } from '../../netlink/genetlink.ts';
import { destroySet, listRequest } from '../../netlink/ipset.ts';
import { deleteService } from '../../netlink/ipvs.ts';
import { findDevice, readDevice } from './device.ts';
import { DEVICE } from './rules/print.ts';
import { type IpvsChannels, NetlinkIpvsClient, readServers, readSets } from './client.ts';
import { NETLINK_GENERIC, NETLINK_NETFILTER, NETLINK_ROUTE } from '../../netlink/socket.ts';
import type { Log } from '../../log/log.ts';
import { withNetlink } from '../staleObjects.ts';
import { systemClock } from '../../time/systemClock.ts';
import { wait } from '../../time/wait.ts';

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
  const sets = await ifThere(() => readSets(channels.netfilter, family), new Map<string, KernelIpset>());
  const device = await readDevice(channels.route, family);
  const ipvs = await findIpvs(channels.generic);
  const servers = ipvs === undefined ? [] : await readServers(channels.generic, ipvs, family);
  const state = { sets, device, servers };
  const nodeIps = await nodeAddresses(channels.route, family);
  const ours = new Set(ourServers(state, family, () => false));
  return {
    family,
    servers: servers.filter((server) => ours.has(server) || isNodePortServer(server, state, family, nodeIps)),
    addresses: countAddresses(device),
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
    const changes = servers.map((server) => deleteService(ipvs, server));
    const outcomes = await channels.generic.apply(changes);
    failures.push(...refusals(outcomes, (index) => `virtual server ${serverKey(servers[index] ?? NOBODY)}`));
  }
  const device = await findDevice(channels.route);
  const isAll = FAMILIES.every((family) => stale.some((each) => each.family === family));
  if (device?.kind === 'dummy' && isAll)
    failures.push(...refusals(await channels.route.apply([deleteLink(DEVICE)]), () => `device ${DEVICE}`));
  return failures;
}

/** What a rule of another program still matches cannot go; the answer names it. */
export async function removeSets(
  channels: IpvsChannels,
  stale: readonly StaleIpvsObjects[],
): Promise<readonly string[]> {
  let names: readonly string[] = stale.flatMap(({ sets, family }) =>
    sets.length > 0 ? [...sets, growingName(family)] : [],
  );
  for (let tries = 1; names.length > 0; tries++) {
    const outcomes = await channels.netfilter.apply(names.map(destroySet));
    const asked = names;
    if (tries === TRIES) return refusals(outcomes, (index) => `set ${asked[index]}`);
    names = asked.filter((_, index) => outcomes[index]?.state === 'refused');
    // Whoever lists a set keeps it for that moment.
    if (names.length > 0) await wait(systemClock, PAUSE_MS);
  }
  return [];
}

const NOBODY = { protocol: 'TCP', ip: '' as never, port: 0 } as const;

function refusals(outcomes: readonly ChangeOutcome[], name: (index: number) => string): readonly string[] {
  return outcomes.flatMap((outcome, index) =>
    outcome.state === 'refused' ? [`${name(index)}: ${outcome.name}`] : [],
  );
}

function countAddresses(device: KernelDevice): number {
  return device.state === 'present' ? device.addresses.length : 0;
}

export async function findIpvs(generic: NetlinkChannel): Promise<number | undefined> {
  const reply = await generic.request(getFamily('IPVS'));
  const [message] = reply.kind === 'answered' ? reply.messages : [];
  return message && decodeFamilyId(message.payload);
}

/** A kernel without sets has none of ours. */
async function ifThere<T>(work: () => Promise<T>, otherwise: T): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (isJunctionError(error, 'NETLINK_FAILED')) return otherwise;
    throw error;
  }
}

/** Addresses of this node, but for those of the device. */
async function nodeAddresses(route: NetlinkChannel, family: Family): Promise<ReadonlySet<string>> {
  const device = await findDevice(route);
  const [reply] = await route.dumpAll([getAddresses(family)]);
  const addresses = reply?.kind === 'answered' ? reply.messages : [];
  return new Set(
    addresses.flatMap(({ payload }) => {
      const address = decodeAddress(payload);
      return address && address.linkIndex !== device?.index ? [address.ip] : [];
    }),
  );
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
    do await sleep(pauseMs, undefined, { signal, ref: false }).catch(() => {});
    while (!signal.aborted && !(await this.#pass()));
  }

  /** Returns whether nothing is left to wait for. */
  async #pass(): Promise<boolean> {
    let isDone = true;
    await withNetlink(
      async (thread) => {
        const channels: IpvsChannels = {
          route: thread.channel(NETLINK_ROUTE),
          netfilter: thread.channel(NETLINK_NETFILTER),
          generic: thread.channel(NETLINK_GENERIC),
        };
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
    FAMILIES.map((family) => listRequest(setName('clusterIP', family), 0)),
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
