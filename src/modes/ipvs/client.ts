/** The kernel behind the IPVS backend: edits become netlink messages, sent in batches. */
import type { DestinationState, IpvsEdit, EditOutcome, IpvsClient, KernelState } from './rules/client.ts';
import type { ServerKey } from './rules/compile.ts';
import { type Family, hostPort } from '../../model/ip.ts';
import { TimeSlice } from '../../time/timeSlice.ts';
import { systemClock } from '../../time/systemClock.ts';
import { type DumpReply, messagesOf, type NetlinkChannel } from '../../netlink/channel.ts';
import { decodeDestination, getDestinations } from '../../netlink/ipvs.ts';
import { findDevice, readDevice } from './device.ts';
import { changeOf, type Numbers, type Wire, wireOf } from './changes.ts';
import { findNumbers } from './numbers.ts';
import { readServers, readSets } from './reading.ts';

export interface IpvsChannels {
  readonly route: NetlinkChannel;
  readonly netfilter: NetlinkChannel;
  readonly generic: NetlinkChannel;
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
    while (outcomes.length < edits.length) {
      const { wire, edits: some } = runAt(edits, outcomes.length);
      for (const outcome of await this.#send(wire, some)) outcomes.push(outcome);
    }
    return outcomes;
  }

  async #send(wire: Wire, edits: readonly IpvsEdit[]): Promise<readonly EditOutcome[]> {
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
