/**
 * A node that was switched from the IPVS mode: once the new rules work, what the old mode left goes. Service addresses
 * would otherwise stay addresses of this node for ever. Virtual servers with open connections go when these have ended.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Retired, retireServers } from './rules/resync.ts';
import { setName } from './rules/sets.ts';
import {
  findIpvs,
  findRemains,
  type IpvsRemains,
  nodeAddresses,
  removeServers,
  removeSets,
} from './cleanup.ts';
import { findDevice } from './device.ts';
import { type IpvsChannels, NetlinkIpvsClient } from './client.ts';
import { listRequest } from '../../netlink/ipset.ts';
import { NETLINK_GENERIC, NETLINK_NETFILTER, NETLINK_ROUTE } from '../../netlink/socket.ts';
import type { Log } from '../../log/log.ts';
import { FAMILIES } from '../../model/ip.ts';
import { withNetlink } from '../netlinkWork.ts';

/** How often connections are looked at that keep something in the kernel. */
const INTERVAL_MS = 10_000;

export interface StaleIpvsOptions {
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
  #toldServers = -1;

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
    const wait = this.#limitMs > 0 ? Math.min(this.#limitMs, INTERVAL_MS) : INTERVAL_MS;
    do await sleep(wait, undefined, { signal, ref: false }).catch(() => {});
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
    if (!isDone && keptServers !== this.#toldServers)
      this.#log.info('Kept virtual servers of the ipvs mode until their connections have ended', {
        virtualServers: keptServers,
        connections: sum((each) => each.connections),
        drainLimit: this.#limitMs === 0 ? 'none' : `${this.#limitMs / 1000}s`,
      });
    this.#toldServers = keptServers;
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
  const remains: IpvsRemains[] = [];
  for (const family of FAMILIES) remains.push(await findRemains(channels, family));
  const failures = [...(await removeServers(channels, remains)), ...(await removeSets(channels, remains))];
  return { sets: remains.reduce((sum, { sets }) => sum + sets.length, 0), failures };
}
