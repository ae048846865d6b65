/** IPVS, sets and the device in the kernel: edits become netlink messages, sent in batches. */
import { JunctionError } from '../../errors.ts';
import { type Family, familyOf, hostPort } from '../../model/ip.ts';
import type { Change } from '../../netlink/request.ts';
import type { NetlinkChannel } from '../../netlink/channel.ts';
import { decodeFamilyId, getFamily } from '../../netlink/generic.ts';
import {
  addEntry,
  createSet,
  decodeSupport,
  deleteEntry,
  destroySet,
  IPSET_TYPES,
  type IpsetSupport,
  type IpsetType,
  listRequest,
  setDecoder,
  swapSets,
  typeRequest,
} from '../../netlink/ipset.ts';
import {
  decodeDestination,
  decodeService,
  deleteDestination,
  deleteService,
  getDestinations,
  getServices,
  IP_VS_SVC_F_HASHED,
  newDestination,
  newService,
  setDestination,
  setService,
} from '../../netlink/ipvs.ts';
import { addAddress, deleteAddress, deleteLink, newLink } from '../../netlink/rtnetlink.ts';
import { NETLINK_GENERIC, NETLINK_NETFILTER, NETLINK_ROUTE } from '../../netlink/socket.ts';
import type { NetlinkSockets } from '../../netlink/sockets.ts';
import { systemClock } from '../../time/systemClock.ts';
import { forEachSliced, TimeSlice } from '../../time/timeSlice.ts';
import { findDevice, readDevice } from './device.ts';
import {
  DEVICE,
  type DestinationState,
  type EditOutcome,
  type IpvsClient,
  type IpvsEdit,
  type KernelDevice,
  type KernelIpset,
  type ServerAttributes,
} from './rules/client.ts';
import type { ServerKey } from './rules/compile.ts';
import { entryKey, type SetEntry, type SetType } from './rules/sets.ts';

export interface IpvsChannels {
  readonly route: NetlinkChannel;
  readonly netfilter: NetlinkChannel;
  readonly generic: NetlinkChannel;
}

export function channelsOf(sockets: Pick<NetlinkSockets, 'channel'>): IpvsChannels {
  return {
    route: sockets.channel(NETLINK_ROUTE),
    netfilter: sockets.channel(NETLINK_NETFILTER),
    generic: sockets.channel(NETLINK_GENERIC),
  };
}

/** As messages they take much memory for a short time, and making them holds up everything else. */
const EDITS_AT_ONCE = 1024;

export class NetlinkIpvsClient implements IpvsClient {
  readonly #family: Family;
  readonly #channels: IpvsChannels;
  #numbers: Numbers | undefined;
  #deviceIndex: number | undefined;

  constructor(family: Family, channels: IpvsChannels) {
    this.#family = family;
    this.#channels = channels;
  }

  async readSet(name: string): Promise<KernelIpset | undefined> {
    const parts = await this.#channels.netfilter.list(listRequest(name), `the set ${name}`, setDecoder());
    const [first] = parts;
    if (!first) return undefined;
    const entries = new Map<string, SetEntry>();
    const all = parts.flatMap((part) => part.entries);
    await forEachSliced(all, (entry) => void entries.set(entryKey(entry), entry), new TimeSlice(systemClock));
    return { type: first.type, capacity: first.maxElements ?? Number.POSITIVE_INFINITY, entries };
  }

  readDevice(): Promise<KernelDevice> {
    return readDevice(this.#channels.route, this.#family);
  }

  async readServers(): Promise<readonly ServerAttributes[]> {
    const { ipvs } = await this.#known();
    return readServers(this.#channels.generic, ipvs, this.#family);
  }

  async readDestinations(servers: readonly ServerKey[]): Promise<readonly (readonly DestinationState[])[]> {
    const { ipvs } = await this.#known();
    const states: (readonly DestinationState[])[] = [];
    for (const key of servers)
      states.push(await this.#channels.generic.list(getDestinations(ipvs, key), DESTINATIONS, destinationIn));
    return states;
  }

  async apply(edits: readonly IpvsEdit[]): Promise<readonly EditOutcome[]> {
    const outcomes: EditOutcome[] = [];
    for (let start = 0; start < edits.length; ) {
      const some = sameWay(edits, start);
      for (const outcome of await this.#send(some)) outcomes.push(outcome);
      start += some.length;
    }
    return outcomes;
  }

  /** Edits of one way. */
  async #send(edits: readonly IpvsEdit[]): Promise<readonly EditOutcome[]> {
    const [first] = edits;
    const way = first ? wayOf(first) : 'set';
    const numbers = await this.#known();
    const device = way === 'address' ? await this.#device() : 0;
    if (device === undefined) return edits.map(() => ({ state: 'refused', name: 'ENODEV' }));
    const changes = edits.map((edit) => changeOf(edit, this.#family, numbers, device));
    const outcomes = await this.#channels[CHANNELS[way]].apply(changes);
    const isGone = outcomes.some((outcome) => outcome.state === 'refused' && outcome.name === 'ENODEV');
    if (way === 'link' || isGone) this.#deviceIndex = undefined;
    return outcomes;
  }

  async #device(): Promise<number | undefined> {
    this.#deviceIndex ??= (await findDevice(this.#channels.route))?.index;
    return this.#deviceIndex;
  }

  async #known(): Promise<Numbers> {
    this.#numbers ??= await findNumbers(this.#channels, this.#family);
    return this.#numbers;
  }
}

const CHANNELS = { set: 'netfilter', server: 'generic', link: 'route', address: 'route' } as const;
type Way = keyof typeof CHANNELS;

function wayOf(edit: IpvsEdit): Way {
  if ('set' in edit) return 'set';
  if ('server' in edit) return 'server';
  return 'ip' in edit ? 'address' : 'link';
}

/** Neighbours that go the same way are sent together. */
function sameWay(edits: readonly IpvsEdit[], start: number): readonly IpvsEdit[] {
  const some = edits.slice(start, start + EDITS_AT_ONCE);
  const [first] = some;
  const end = some.findIndex((edit) => first !== undefined && wayOf(edit) !== wayOf(first));
  return end < 0 ? some : some.slice(0, end);
}

const HASH_SIZE = 1024;
const LAST_PORT = 65_535;

function changeOf(edit: IpvsEdit, family: Family, { ipvs, revisions }: Numbers, device: number): Change {
  switch (edit.kind) {
    case 'createSet': {
      const { set, type, capacity } = edit;
      const spec =
        type === 'bitmap:port'
          ? { type, from: 0, to: LAST_PORT }
          : { type, family, hashSize: HASH_SIZE, maxElements: capacity };
      return createSet(set, spec, revisions.get(type) ?? 0);
    }
    case 'destroySet':
      return destroySet(edit.set);
    case 'swapSets':
      return swapSets(edit.set, edit.other);
    case 'addEntry':
      return addEntry(edit.set, edit.entry);
    case 'deleteEntry':
      return deleteEntry(edit.set, edit.entry);
    case 'newServer':
      return newService(ipvs, edit.server);
    case 'setServer':
      return setService(ipvs, edit.server);
    case 'deleteServer':
      return deleteService(ipvs, edit.server);
    case 'newDestination':
      return newDestination(ipvs, edit.server, { ...edit.destination, weight: edit.weight });
    case 'setDestination':
      return setDestination(ipvs, edit.server, { ...edit.destination, weight: edit.weight });
    case 'deleteDestination':
      return deleteDestination(ipvs, edit.server, edit.destination);
    case 'makeDevice':
      return newLink(DEVICE, 'dummy');
    case 'dropDevice':
      return deleteLink(DEVICE);
    case 'bind':
      return addAddress(device, edit.ip);
    case 'unbind':
      return deleteAddress(device, edit.ip);
  }
}

/** For errors. */
export const DESTINATIONS = 'the endpoints of a virtual server';

function destinationIn(payload: Uint8Array): DestinationState {
  const { ip, port, weight, activeConnections, inactiveConnections } = decodeDestination(payload);
  const connections = activeConnections + inactiveConnections;
  return { ip, port, key: hostPort(ip, port), weight, connections };
}

/** Everybody's. */
export async function readServers(
  generic: NetlinkChannel,
  ipvs: number,
  family: Family,
): Promise<readonly ServerAttributes[]> {
  return generic.list(getServices(ipvs), 'the virtual servers', (payload) => {
    const server = decodeService(payload);
    // Without the kernel's own note that the server is in its table.
    return server && familyOf(server.ip) === family
      ? { ...server, flags: server.flags & ~IP_VS_SVC_F_HASHED }
      : undefined;
  });
}

/* Numbers that differ from kernel to kernel, asked once. */

interface Numbers {
  readonly ipvs: number;
  readonly revisions: ReadonlyMap<SetType, number>;
}

export async function findNumbers(
  { generic, netfilter }: Pick<IpvsChannels, 'generic' | 'netfilter'>,
  family: Family,
): Promise<Numbers> {
  const ipvs = await findIpvs(generic);
  if (ipvs === undefined)
    throw new JunctionError('IPVS_UNAVAILABLE', "can't use the IPVS proxier: the kernel has no IPVS", {
      hint: 'Load its module on the node: modprobe ip_vs',
    });
  const revisions = new Map<IpsetType, number>();
  for (const type of IPSET_TYPES) {
    const support = await setSupport(netfilter, type, family);
    if (support.state === 'absent')
      throw new JunctionError('IPVS_UNAVAILABLE', support.reason, { hint: `modprobe ${support.module}` });
    revisions.set(type, support.revision);
  }
  return { ipvs, revisions };
}

/** The kernel loads the type's module if it can. */
export async function setSupport(
  netfilter: NetlinkChannel,
  type: IpsetType,
  family: Family,
): Promise<IpsetSupport> {
  return decodeSupport(type, await netfilter.request(typeRequest(type, family)));
}

/** The number by which this kernel knows IPVS. `undefined`: it has none. */
export async function findIpvs(generic: NetlinkChannel): Promise<number | undefined> {
  return generic.get(getFamily('IPVS'), 'the families of generic netlink', decodeFamilyId);
}
