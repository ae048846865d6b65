/**
 * Follows the node's addresses, and the device of the IPVS mode, whose addresses are the services' and not the node's. They
 * are read when one of another link changes: a read at every sync would cost more with every service.
 */
import { type Family, familyOf, type Ip, isLoopback, LOOPBACK } from '../model/ip.ts';
import {
  decodeAddress,
  RTM_DELADDR,
  RTM_NEWADDR,
  RTM_DELLINK,
  RTM_NEWLINK,
  RTNLGRP_IPV4_IFADDR,
  RTNLGRP_IPV6_IFADDR,
  RTNLGRP_LINK,
} from '../netlink/rtnetlink.ts';
import type { Message } from '../netlink/codec.ts';
import { NETLINK_ROUTE } from '../netlink/socket.ts';
import type { NetlinkSockets, Watch } from '../netlink/sockets.ts';
import { DeviceWatch, type DeviceSubscriber, findDevice, readAddresses } from './ipvs/device.ts';

interface AddressSubscriber {
  onNodeAddresses(): void;
}

type Sockets = Pick<NetlinkSockets, 'channel' | 'watch'>;

/** After a reading that failed; twice as long after each that fails again. */
const RETRY_MS = 1000;
const MAX_RETRY_MS = 30_000;

export class AddressWatch {
  readonly #sockets: Sockets;
  readonly #subscribers: AddressSubscriber[] = [];
  readonly #device = new DeviceWatch();
  #nodeIps: ReadonlySet<Ip> = new Set();
  #watch: Watch | undefined;
  #reading: Promise<void> = Promise.resolve();
  #isReadingDue = false;
  #retry: NodeJS.Timeout | undefined;
  #failures = 0;
  #isClosed = false;

  private constructor(sockets: Sockets) {
    this.#sockets = sockets;
  }

  static async start(sockets: Sockets): Promise<AddressWatch> {
    const watch = new AddressWatch(sockets);
    const groups = [RTNLGRP_LINK, RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR];
    watch.#watch = await sockets.watch(NETLINK_ROUTE, groups, {
      messages: (messages) => watch.#receive(messages),
      lost: () => {
        watch.#device.notifyAll();
        watch.#readSoon();
      },
    });
    watch.#reading = watch.#read();
    await watch.#reading;
    return watch;
  }

  /** Addresses of every link but the device, without loopback and those that are valid on one link only. */
  nodeIps(family: Family): readonly Ip[] {
    return [...this.#nodeIps].filter((ip) => familyOf(ip) === family);
  }

  /** Every address for which this node itself takes packets. */
  localIps(family: Family): readonly Ip[] {
    return [...this.nodeIps(family), LOOPBACK[family]];
  }

  subscribe(subscriber: AddressSubscriber | (AddressSubscriber & DeviceSubscriber)): void {
    this.#subscribers.push(subscriber);
    if ('onDevice' in subscriber) this.#device.subscribe(subscriber);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#retry);
    await this.#watch?.close();
    await this.#reading;
  }

  async #read(): Promise<void> {
    const route = this.#sockets.channel(NETLINK_ROUTE);
    this.#device.found(await findDevice(route));
    const addresses = await readAddresses(route);
    const own = addresses.filter((address) => {
      const isOnLinkOnly = address.family === 'IPv6' && address.scope === 'link';
      return !this.#device.has(address) && !isLoopback(address.ip) && !isOnLinkOnly;
    });
    this.#nodeIps = new Set(own.map(({ ip }) => ip));
  }

  #receive(messages: readonly Message[]): void {
    let isNodes = false;
    for (const { type, payload } of messages) {
      if (type === RTM_NEWLINK || type === RTM_DELLINK) this.#device.onLink(type, payload);
      if (type !== RTM_NEWADDR && type !== RTM_DELADDR) continue;
      const address = decodeAddress(payload);
      if (address && this.#device.has(address)) this.#device.onAddress(type, address);
      else if (address) isNodes = true;
    }
    if (isNodes) this.#readSoon();
  }

  /** What changes during a reading is read by the next one. */
  #readSoon(): void {
    if (this.#isReadingDue) return;
    this.#isReadingDue = true;
    clearTimeout(this.#retry);
    this.#reading = this.#reading.then(() => this.#readAgain());
  }

  async #readAgain(): Promise<void> {
    this.#isReadingDue = false;
    const before = [...this.#nodeIps].toSorted().join();
    try {
      await this.#read();
      this.#failures = 0;
    } catch {
      // Nothing else would ask again, and until then a new address is not served.
      const milliseconds = Math.min(RETRY_MS * 2 ** this.#failures++, MAX_RETRY_MS);
      if (!this.#isClosed) this.#retry = setTimeout(() => this.#readSoon(), milliseconds).unref();
    }
    if ([...this.#nodeIps].toSorted().join() === before) return;
    for (const each of this.#subscribers) each.onNodeAddresses();
  }
}
