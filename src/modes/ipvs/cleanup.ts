/**
 * Takes out what the IPVS mode leaves, from nothing but the kernel's state: virtual servers that our sets or our device
 * name, the device, and the sets. Virtual servers of others stay.
 */
import { isNodePortServer, ourServers } from './rules/resync.ts';
import { type ServerKey, serverKey } from './rules/compile.ts';
import type { KernelDevice, KernelSet } from './rules/client.ts';
import { growingName } from './rules/sets.ts';
import { isJunctionError } from '../../errors.ts';
import { FAMILIES, type Family } from '../../model/ip.ts';
import { decodeAddress, getAddresses, deleteLink } from '../../netlink/rtnetlink.ts';
import type { ChangeOutcome } from '../../netlink/batch.ts';
import type { NetlinkChannel } from '../../netlink/channel.ts';
import { decodeFamilyId, getFamily } from '../../netlink/genetlink.ts';
import { destroySet } from '../../netlink/ipset.ts';
import { deleteService } from '../../netlink/ipvs.ts';
import { DEVICE, findDevice, readDevice } from './device.ts';
import type { IpvsChannels } from './client.ts';
import { readServers, readSets } from './reading.ts';
import { systemClock } from '../../time/systemClock.ts';
import { wait } from '../../time/wait.ts';

const TRIES = 5;
const PAUSE_MS = 50;

/** Of one family. */
export interface IpvsRemains {
  readonly family: Family;
  readonly servers: readonly ServerKey[];
  /** Addresses on the device. */
  readonly addresses: number;
  readonly sets: readonly string[];
}

export async function findRemains(channels: IpvsChannels, family: Family): Promise<IpvsRemains> {
  const sets = await ifThere(() => readSets(channels.netfilter, family), new Map<string, KernelSet>());
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
  remains: readonly IpvsRemains[],
): Promise<readonly string[]> {
  const ipvs = await findIpvs(channels.generic);
  const servers = remains.flatMap((each) => each.servers);
  const failures: string[] = [];
  if (ipvs !== undefined && servers.length > 0) {
    const changes = servers.map((server) => deleteService(ipvs, server));
    const outcomes = await channels.generic.apply(changes);
    failures.push(...refusals(outcomes, (index) => `virtual server ${serverKey(servers[index] ?? NOBODY)}`));
  }
  const device = await findDevice(channels.route);
  const isAll = FAMILIES.every((family) => remains.some((each) => each.family === family));
  if (device?.kind === 'dummy' && isAll)
    failures.push(...refusals(await channels.route.apply([deleteLink(DEVICE)]), () => `device ${DEVICE}`));
  return failures;
}

/** What a rule of somebody else still matches cannot go; the answer names it. */
export async function removeSets(
  channels: IpvsChannels,
  remains: readonly IpvsRemains[],
): Promise<readonly string[]> {
  let names: readonly string[] = remains.flatMap(({ sets, family }) =>
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
export async function nodeAddresses(route: NetlinkChannel, family: Family): Promise<ReadonlySet<string>> {
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
