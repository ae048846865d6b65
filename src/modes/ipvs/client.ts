/** IPVS, sets and the device in the kernel: edits become netlink messages, sent in batches. */
import {
  DEVICE,
  type DestinationState,
  type EditOutcome,
  type IpvsClient,
  type IpvsEdit,
  type KernelIpset,
  type KernelState,
  type ServerAttributes,
} from './rules/client.ts';
import type { ServerKey } from './rules/compile.ts';
import { type Family, familyOf, hostPort } from '../../model/ip.ts';
import { runSliced, TimeSlice } from '../../time/timeSlice.ts';
import { systemClock } from '../../time/systemClock.ts';
import type { Change } from '../../netlink/request.ts';
import { type DumpReply, messagesOf, type NetlinkChannel } from '../../netlink/channel.ts';
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
import { findDevice, readDevice } from './device.ts';
import { entryKey, SET_IDS, type SetEntry, setName, type SetType } from './rules/sets.ts';
import { addAddress, deleteAddress, deleteLink, newLink } from '../../netlink/rtnetlink.ts';
import {
  addEntry,
  createSet,
  decodeSupport,
  decodingSet,
  deleteEntry,
  destroySet,
  IPSET_TYPES,
  type IpsetSupport,
  type IpsetType,
  listRequest,
  swapSets,
  typeRequest,
} from '../../netlink/ipset.ts';
import { constants } from 'node:os';
import { JunctionError } from '../../errors.ts';
import { NETLINK_GENERIC, NETLINK_NETFILTER, NETLINK_ROUTE } from '../../netlink/socket.ts';
import type { NetlinkThread } from '../../netlink/thread.ts';
import { decodeFamilyId, getFamily } from '../../netlink/generic.ts';

export interface IpvsChannels {
  readonly route: NetlinkChannel;
  readonly netfilter: NetlinkChannel;
  readonly generic: NetlinkChannel;
}

export function channelsOf(thread: Pick<NetlinkThread, 'channel'>): IpvsChannels {
  return {
    route: thread.channel(NETLINK_ROUTE),
    netfilter: thread.channel(NETLINK_NETFILTER),
    generic: thread.channel(NETLINK_GENERIC),
  };
}

export class NetlinkIpvsClient implements IpvsClient {
  readonly #family: Family;
  readonly #channels: IpvsChannels;
  #numbers: Numbers | undefined;
  #deviceIndex: number | undefined;

  constructor(family: Family, channels: IpvsChannels) {
    this.#family = family;
    this.#channels = channels;
  }

  async read(): Promise<KernelState> {
    const { route, netfilter, generic } = this.#channels;
    const { ipvs } = await this.#known();
    return {
      sets: await readSets(netfilter, this.#family),
      device: await readDevice(route, this.#family),
      servers: await readServers(generic, ipvs, this.#family),
    };
  }

  async readDestinations(servers: readonly ServerKey[]): Promise<readonly (readonly DestinationState[])[]> {
    const { ipvs } = await this.#known();
    const states: (readonly DestinationState[])[] = [];
    const timeSlice = new TimeSlice(systemClock);
    while (states.length < servers.length) {
      const some = servers.slice(states.length, states.length + SERVERS_PER_READING);
      const replies = await this.#channels.generic.dumpAll(some.map((key) => getDestinations(ipvs, key)));
      timeSlice.begin();
      for (const reply of replies) {
        states.push(destinationsIn(reply));
        const pause = timeSlice.pause();
        if (pause) await pause;
      }
    }
    return states;
  }

  async apply(edits: readonly IpvsEdit[]): Promise<readonly EditOutcome[]> {
    const outcomes: EditOutcome[] = [];
    while (outcomes.length < edits.length)
      for (const outcome of await this.#send(runAt(edits, outcomes.length))) outcomes.push(outcome);
    return outcomes;
  }

  async #send({ wire, edits }: Run): Promise<readonly EditOutcome[]> {
    const numbers = await this.#known();
    const device = wire === 'address' ? await this.#device() : 0;
    if (device === undefined) return edits.map(() => ({ state: 'refused', name: 'ENODEV' }));
    const channel = { set: 'netfilter', server: 'generic', link: 'route', address: 'route' } as const;
    const changes = edits.map((edit) => changeOf(edit, this.#family, numbers, device));
    const outcomes = await this.#channels[channel[wire]].apply(changes);
    const isGone = outcomes.some((outcome) => outcome.state === 'refused' && outcome.name === 'ENODEV');
    if (wire === 'link' || isGone) this.#deviceIndex = undefined;
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

/** Reading the answers for more would hold up everything else. */
const SERVERS_PER_READING = 64;

function destinationsIn(reply: DumpReply): readonly DestinationState[] {
  return messagesOf(reply, 'the endpoints of a virtual server').map(({ payload }) => {
    const { ip, port, weight, activeConnections, inactiveConnections } = decodeDestination(payload);
    const connections = activeConnections + inactiveConnections;
    return { ip, port, key: hostPort(ip, port), weight, connections };
  });
}

interface Run {
  readonly wire: Wire;
  readonly edits: readonly IpvsEdit[];
}

/** As messages they take much memory for a short time, and making them holds up everything else. */
const EDITS_PER_RUN = 1024;

/** Neighbours that go the same way are sent together. */
function runAt(edits: readonly IpvsEdit[], start: number): Run {
  const first = edits[start];
  const wire = first ? wireOf(first) : 'set';
  const isSame = (edit: IpvsEdit | undefined): boolean => edit !== undefined && wireOf(edit) === wire;
  let end = start + 1;
  while (end < start + EDITS_PER_RUN && isSame(edits[end])) end++;
  return { wire, edits: edits.slice(start, end) };
}

/* From edits of the IPVS mode to messages for the kernel. */

/** What the kernel must be asked for before anything can be said to it. */
export interface Numbers {
  readonly ipvs: number;
  readonly revisions: ReadonlyMap<SetType, number>;
}

/** Which part of the kernel an edit is for. */
export type Wire = 'set' | 'server' | 'link' | 'address';

const HASH_SIZE = 1024;
const LAST_PORT = 65_535;

export function wireOf(edit: IpvsEdit): Wire {
  if ('set' in edit) return 'set';
  if ('server' in edit) return 'server';
  return 'ip' in edit ? 'address' : 'link';
}

export function changeOf(
  edit: IpvsEdit,
  family: Family,
  { ipvs, revisions }: Numbers,
  device: number,
): Change {
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

/* Sets and virtual servers as the kernel has them. */

/** So many take some tens of microseconds. */
const STEP = 32;

/** Those of our names, by name. */
export async function readSets(
  netfilter: NetlinkChannel,
  family: Family,
): Promise<ReadonlyMap<string, KernelIpset>> {
  const names = SET_IDS.map((id) => setName(id, family));
  const replies = await netfilter.dumpAll(names.map((name) => listRequest(name)));
  const timeSlice = new TimeSlice(systemClock);
  const sets = new Map<string, KernelIpset>();
  for (const [index, reply] of replies.entries()) {
    const set = await runSliced(decodingKernelIpset(reply), timeSlice);
    if (set) sets.set(names[index] ?? '', set);
  }
  return sets;
}

/** Everybody's. */
export async function readServers(
  generic: NetlinkChannel,
  ipvs: number,
  family: Family,
): Promise<readonly ServerAttributes[]> {
  const [reply] = await generic.dumpAll([getServices(ipvs)]);
  return runSliced(decodingServers(reply, family), new TimeSlice(systemClock));
}

function* decodingServers(
  reply: DumpReply | undefined,
  family: Family,
): Generator<void, readonly ServerAttributes[]> {
  const servers: ServerAttributes[] = [];
  for (const { payload } of messagesOf(reply, 'the virtual servers')) {
    const server = decodeService(payload);
    // Without the kernel's own note that the server is in its table.
    if (server && familyOf(server.ip) === family)
      servers.push({ ...server, flags: server.flags & ~IP_VS_SVC_F_HASHED });
    if (servers.length % STEP === 0) yield;
  }
  return servers;
}

function* decodingKernelIpset(reply: DumpReply): Generator<void, KernelIpset | undefined> {
  if (reply.kind === 'refused' && reply.errno === constants.errno.ENOENT) return undefined;
  const set = yield* decodingSet(messagesOf(reply, 'the sets'));
  if (!set) return undefined;
  const entries = new Map<string, SetEntry>();
  for (const entry of set.entries) {
    entries.set(entryKey(entry), entry);
    if (entries.size % STEP === 0) yield;
  }
  return { type: set.type, capacity: set.maxElements ?? Number.POSITIVE_INFINITY, entries };
}

/* Numbers that differ from kernel to kernel, asked once. */

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
  const reply = await generic.request(getFamily('IPVS'));
  if (reply.kind === 'refused' && reply.errno === constants.errno.ENOENT) return undefined;
  const [message] = messagesOf(reply, 'the families of generic netlink');
  return message && decodeFamilyId(message.payload);
}
