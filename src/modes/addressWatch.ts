/**
 * Follows the node's addresses, and the device of the IPVS mode, whose addresses are the services' and not the node's.
 * Reading them at every sync would cost the more the more services there are, because each has an address on it.
 */
import { type Family, familyOf, type Ip, isLoopback, LOOPBACK } from '../model/ip.ts';
import {
  decodeAddress,
  type LinkAddress,
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
import type { NetlinkThread, Watch } from '../netlink/thread.ts';
import { DeviceWatch, type DeviceSubscriber, findDevice, readAddresses } from './ipvs/device.ts';

interface AddressSubscriber {
  onNodeAddresses(): void;
}

type Thread = Pick<NetlinkThread, 'channel' | 'watch'>;

export class AddressWatch {
  readonly #thread: Thread;
  readonly #subscribers: AddressSubscriber[] = [];
  readonly #device = new DeviceWatch();
  /** By link and address: one address may be on two links. */
  #nodeIps = new Map<string, Ip>();
  #watch: Watch | undefined;
  #reading: Promise<void> = Promise.resolve();
  #isReadingDue = false;
  #retry: NodeJS.Timeout | undefined;
  #failures = 0;
  #isClosed = false;
  /** Counts notifications, so that one during a reading is not taken for older than the reading. */
  #receivedCount = 0;

  private constructor(thread: Thread) {
    this.#thread = thread;
  }

  static async start(thread: Thread): Promise<AddressWatch> {
    const watch = new AddressWatch(thread);
    const groups = [RTNLGRP_LINK, RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR];
    watch.#watch = await thread.watch(NETLINK_ROUTE, groups, {
      messages: (messages) => watch.#receive(messages),
      lost: () => watch.#lookAgain(),
    });
    await watch.#read();
    return watch;
  }

  /** Addresses of every link but the device, without loopback and those that are good on one link only. */
  nodeIps(family: Family): readonly Ip[] {
    return [...new Set(this.#nodeIps.values())].filter((ip) => familyOf(ip) === family);
  }

  /** All that a packet for this node itself may be for. */
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
    const route = this.#thread.channel(NETLINK_ROUTE);
    for (let tries = 0; tries < MOST_READINGS; tries++) {
      const receivedBefore = this.#receivedCount;
      const device = await findDevice(route);
      const addresses = await readAddresses(route);
      this.#device.found(device);
      const own = addresses.filter((address) => this.#isNodes(address));
      this.#nodeIps = new Map(own.map((address) => [keyOf(address), address.ip]));
      if (this.#receivedCount === receivedBefore) return;
    }
  }

  #receive(messages: readonly Message[]): void {
    this.#receivedCount++;
    let nodesChanged = false;
    for (const { type, payload } of messages) {
      if (type === RTM_NEWLINK || type === RTM_DELLINK) this.#device.onLink(type, payload);
      else if (type === RTM_NEWADDR || type === RTM_DELADDR)
        nodesChanged = this.#onAddress(type, payload) || nodesChanged;
    }
    if (nodesChanged) this.#notifyAll();
  }

  /** Returns whether the node's own addresses are different now. */
  #onAddress(type: number, payload: Uint8Array): boolean {
    const address = decodeAddress(payload);
    if (!address) return false;
    if (this.#device.has(address)) this.#device.onAddress(type, address);
    if (!this.#isNodes(address)) return false;
    const key = keyOf(address);
    if (type === RTM_DELADDR) return this.#nodeIps.delete(key);
    if (this.#nodeIps.has(key)) return false;
    this.#nodeIps.set(key, address.ip);
    return true;
  }

  #isNodes(address: LinkAddress): boolean {
    const { ip, family, scope } = address;
    const isOnLinkOnly = family === 'IPv6' && scope === 'link';
    return !this.#device.has(address) && !isLoopback(ip) && !isOnLinkOnly;
  }

  #notifyAll(): void {
    for (const each of this.#subscribers) each.onNodeAddresses();
  }

  #lookAgain(): void {
    if (this.#isReadingDue) return;
    this.#isReadingDue = true;
    clearTimeout(this.#retry);
    this.#reading = this.#reading.then(() => this.#readAgain());
  }

  async #readAgain(): Promise<void> {
    this.#isReadingDue = false;
    try {
      await this.#read();
      this.#failures = 0;
    } catch {
      // What is known is old, and nothing else would ask again: until then, a new address is served nowhere.
      const milliseconds = Math.min(RETRY_MS * 2 ** this.#failures++, MOST_RETRY_MS);
      if (!this.#isClosed) this.#retry = setTimeout(() => this.#lookAgain(), milliseconds).unref();
    }
    this.#notifyAll();
    this.#device.notifyAll(); // a full sync looks for itself, and fails aloud
  }
}

/** After a reading that failed; twice as long after each that fails again. */
const RETRY_MS = 1000;
const MOST_RETRY_MS = 30_000;
/** Addresses that change faster than they can be read come from a runaway program. */
const MOST_READINGS = 10;

function keyOf({ linkIndex, ip }: LinkAddress): string {
  return `${linkIndex} ${ip}`;
}
