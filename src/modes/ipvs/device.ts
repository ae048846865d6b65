/** The dummy device whose addresses make service addresses this node's own, so that IPVS gets to see their packets. */
import { DEVICE, type KernelDevice } from './rules/client.ts';
import type { Family, Ip } from '../../model/ip.ts';
import {
  decodeAddress,
  getAddresses,
  type LinkAddress,
  RTM_NEWADDR,
  decodeLink,
  getLink,
  IFF_UP,
  type Link,
  RTM_DELLINK,
  decodeRoute,
  getRoute,
} from '../../netlink/rtnetlink.ts';
import type { NetlinkChannel } from '../../netlink/channel.ts';

export async function findDevice(route: NetlinkChannel): Promise<Link | undefined> {
  return route.get(getLink(DEVICE), `the link ${DEVICE}`, decodeLink);
}

export async function readDevice(route: NetlinkChannel, family: Family): Promise<KernelDevice> {
  const link = await findDevice(route);
  if (!link) return { state: 'absent' };
  if (link.kind !== 'dummy') return { state: 'foreign', type: link.kind ?? 'physical device' };
  const addresses = (await readAddresses(route, family))
    .filter(({ linkIndex, scope }) => linkIndex === link.index && scope === 'global')
    .map(({ ip }) => ip);
  return { state: 'present', addresses, broken: await isBroken(route, addresses) };
}

/** Of all links. */
export async function readAddresses(route: NetlinkChannel, family?: Family): Promise<readonly LinkAddress[]> {
  return route.list(getAddresses(family), 'the addresses', decodeAddress);
}

/**
 * A device that was set up and down again keeps its IPv4 addresses, but the kernel has forgotten that they are local.
 * What happened to one of them happened to all.
 */
async function isBroken(route: NetlinkChannel, [first]: readonly Ip[]): Promise<boolean> {
  if (first === undefined) return false;
  const reply = await route.request(getRoute(first));
  const [message] = reply.kind === 'answered' ? reply.messages : []; // or there is no route at all
  return !message || !decodeRoute(message.payload).isLocal;
}

/* Notifications of the device whose addresses are the services': changes that other programs made. */

export interface DeviceSubscriber {
  readonly family: Family;
  /** Whether an address of the device is there because we want it. */
  isBound(ip: Ip): boolean;
  /** Another program changed the device. `object`: what of it, or undefined where notifications were lost. */
  onDevice(object: string | undefined): void;
}

export class DeviceWatch {
  readonly #subscribers: DeviceSubscriber[] = [];
  #index: number | undefined;
  #isUp = false;

  subscribe(subscriber: DeviceSubscriber): void {
    this.#subscribers.push(subscriber);
  }

  has({ linkIndex }: LinkAddress): boolean {
    return linkIndex === this.#index;
  }

  /** As a reading found it: nothing to notify of. */
  found(device: Link | undefined): void {
    this.#index = device?.index;
    this.#isUp = isUp(device?.flags ?? 0);
  }

  onLink(type: number, payload: Uint8Array): void {
    const { name, index, kind, flags } = decodeLink(payload);
    if (name !== DEVICE) return;
    const isKnown = this.#index === index;
    const wasUp = this.#isUp;
    this.#index = type === RTM_DELLINK ? undefined : index;
    this.#isUp = isUp(flags);
    // Another program made a link of our name, between the end of ours and its repair.
    const isForeign = !isKnown && kind !== 'dummy';
    if (type === RTM_DELLINK || isForeign || (isKnown && this.#isUp !== wasUp))
      this.notifyAll(`link ${DEVICE}`);
  }

  onAddress(type: number, { family, ip, scope }: LinkAddress): void {
    for (const subscriber of this.#subscribers) {
      if (subscriber.family !== family || scope !== 'global') continue;
      if (subscriber.isBound(ip) !== (type === RTM_NEWADDR))
        subscriber.onDevice(`address ${ip} on ${DEVICE}`);
    }
  }

  notifyAll(object?: string): void {
    for (const each of this.#subscribers) each.onDevice(object);
  }
}

function isUp(flags: number): boolean {
  return (flags & IFF_UP) !== 0;
}
