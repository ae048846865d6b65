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
  type IpsetSupport,
  type IpsetType,
  listRequest,
  setDecoder,
  swapSets,
  typeRequest,
} from '../../netlink/ipset.ts';
import {
  decodeDestination,
  decodeDestinationCounters,
  decodeService,
  decodeServiceCounters,
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
  type EditOutcome,
  type IpvsClient,
  type IpvsEdit,
  type KernelDestination,
  type KernelDevice,
  type KernelIpset,
  type KernelServer,
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
  /* Numbers that differ from kernel to kernel, asked once. */
  #ipvs: number | undefined;
  #deviceIndex: number | undefined;
  readonly #revisions = new Map<SetType, number>();

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

  /** A kernel without IPVS has none. */
  async readServers(): Promise<readonly KernelServer[]> {
    const { generic } = this.#channels;
    this.#ipvs ??= await findIpvs(generic);
    if (this.#ipvs === undefined) return [];
    return generic.list(getServices(this.#ipvs), 'the virtual servers', (payload) => {
      const server = decodeService(payload);
      if (!server || familyOf(server.ip) !== this.#family) return undefined;
      // Without the kernel's own note that the server is in its table.
      const flags = server.flags & ~IP_VS_SVC_F_HASHED;
      return { ...server, flags, packets: decodeServiceCounters(payload).packets };
    });
  }

  async readDestinations(servers: readonly ServerKey[]): Promise<readonly (readonly KernelDestination[])[]> {
    const { generic } = this.#channels;
    this.#ipvs ??= await requireIpvs(generic);
    const states: (readonly KernelDestination[])[] = [];
    for (const key of servers) {
      const request = getDestinations(this.#ipvs, key);
      states.push(await generic.list(request, 'the endpoints of a virtual server', destinationIn));
    }
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
    if (way === 'server') this.#ipvs ??= await requireIpvs(this.#channels.generic);
    if (way === 'address') this.#deviceIndex ??= (await findDevice(this.#channels.route))?.index;
    for (const edit of edits) if (edit.kind === 'createSet') await this.#findRevision(edit.type);
    if (way === 'address' && this.#deviceIndex === undefined)
      return edits.map(() => ({ state: 'refused', name: 'ENODEV' }));
    const outcomes = await this.#channels[CHANNELS[way]].apply(edits.map((edit) => this.#changeOf(edit)));
    const isGone = outcomes.some((outcome) => outcome.state === 'refused' && outcome.name === 'ENODEV');
    if (way === 'link' || isGone) this.#deviceIndex = undefined;
    return outcomes;
  }

  async #findRevision(type: SetType): Promise<void> {
    if (this.#revisions.has(type)) return;
    const support = await setSupport(this.#channels.netfilter, type, this.#family);
    if (support.state === 'absent')
      throw new JunctionError('IPVS_UNAVAILABLE', support.reason, { hint: `modprobe ${support.module}` });
    this.#revisions.set(type, support.revision);
  }

  #changeOf(edit: IpvsEdit): Change {
    const ipvs = this.#ipvs ?? 0;
    const device = this.#deviceIndex ?? 0;
    switch (edit.kind) {
      case 'createSet': {
        const { set, type, capacity } = edit;
        const spec =
          type === 'bitmap:port'
            ? { type, from: 0, to: LAST_PORT }
            : { type, family: this.#family, hashSize: HASH_SIZE, maxElements: capacity };
        return createSet(set, spec, this.#revisions.get(type) ?? 0);
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

function destinationIn(payload: Uint8Array): KernelDestination {
  const { ip, port, weight, activeConnections, inactiveConnections } = decodeDestination(payload);
  const { connections, packets } = decodeDestinationCounters(payload);
  const key = hostPort(ip, port);
  return { ip, port, key, weight, activeConnections, inactiveConnections, connections, packets };
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

export async function requireIpvs(generic: NetlinkChannel): Promise<number> {
  const ipvs = await findIpvs(generic);
  if (ipvs !== undefined) return ipvs;
  throw new JunctionError('IPVS_UNAVAILABLE', "can't use the IPVS proxier: the kernel has no IPVS", {
    hint: 'Load its module on the node: modprobe ip_vs',
  });
}
