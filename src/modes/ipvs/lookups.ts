/** Asks the kernel about one thing each, never a whole table: an entry of a set, a virtual server, an address. */
import { JunctionError } from '../../errors.ts';
import { hostPort, type Ip } from '../../model/ip.ts';
import { testEntry } from '../../netlink/ipset.ts';
import {
  decodeDestination,
  decodeDestinationCounters,
  decodeService,
  decodeServiceCounters,
  getDestinations,
  getService,
} from '../../netlink/ipvs.ts';
import { decodeRoute, getRoute } from '../../netlink/rtnetlink.ts';
import { NETLINK_ROUTE } from '../../netlink/socket.ts';
import { payloadsNow } from '../../netlink/request.ts';
import { DESTINATIONS, findIpvs, type IpvsChannels } from './client.ts';
import type { ServerKey } from './rules/compile.ts';
import type { SetEntry } from './rules/sets.ts';
import type { IpvsLookups, WalkedDestination, WalkedServer } from './rules/walk.ts';

export class NetlinkLookups implements IpvsLookups {
  readonly #channels: Pick<IpvsChannels, 'netfilter' | 'generic'>;
  #ipvs: Promise<number | undefined> | undefined;

  constructor(channels: Pick<IpvsChannels, 'netfilter' | 'generic'>) {
    this.#channels = channels;
  }

  async hasEntry(set: string, entry: SetEntry): Promise<boolean> {
    const [outcome] = await this.#channels.netfilter.apply([testEntry(set, entry)]);
    if (outcome?.state !== 'refused') return outcome?.state === 'done';
    throw new JunctionError('NETLINK_FAILED', `netlink: cannot test an entry of ${set}: ${outcome.name}`);
  }

  async server(key: ServerKey): Promise<WalkedServer | undefined> {
    const { generic } = this.#channels;
    this.#ipvs ??= findIpvs(generic);
    const ipvs = await this.#ipvs;
    if (ipvs === undefined) return undefined; // the kernel has no IPVS
    const service = await generic.get(getService(ipvs, key), 'a virtual server', (payload) => {
      const decoded = decodeService(payload);
      return decoded && { ...decoded, ...decodeServiceCounters(payload) };
    });
    if (!service) return undefined;
    const { scheduler, flags, timeout, packets } = service;
    const destinations = await generic.list(getDestinations(ipvs, key), DESTINATIONS, destinationIn);
    return { scheduler, flags, timeout, packets, destinations };
  }

  /** The device may have an address and be broken: what counts is where the kernel delivers. */
  isBound(ip: Ip): boolean {
    const [payload] = payloadsNow(NETLINK_ROUTE, getRoute(ip));
    return payload !== undefined && decodeRoute(payload).isLocal; // or there is no route at all
  }
}

function destinationIn(payload: Uint8Array): WalkedDestination {
  const { ip, port, weight, activeConnections, inactiveConnections } = decodeDestination(payload);
  const { packets } = decodeDestinationCounters(payload);
  return { ip, port, key: hostPort(ip, port), weight, activeConnections, inactiveConnections, packets };
}
