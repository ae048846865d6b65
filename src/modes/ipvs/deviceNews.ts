/** What the kernel tells of the device whose addresses are the services': who binds them hears of what others did. */
import type { Family, Ip } from '../../model/ip.ts';
import {
  type LinkAddress,
  RTM_NEWADDR,
  decodeLink,
  IFF_UP,
  type Link,
  RTM_DELLINK,
} from '../../netlink/rtnetlink.ts';
import { DEVICE } from './device.ts';

export interface DeviceFollower {
  readonly family: Family;
  /** Whether an address of the device is there because we want it. */
  isBound(ip: Ip): boolean;
  /** Another program changed the device. `object`: what of it, or undefined where notifications were lost. */
  onDevice(object: string | undefined): void;
}

export class DeviceNews {
  readonly #followers: DeviceFollower[] = [];
  #index: number | undefined;
  #isUp = false;

  follow(follower: DeviceFollower): void {
    this.#followers.push(follower);
  }

  has({ linkIndex }: LinkAddress): boolean {
    return linkIndex === this.#index;
  }

  /** No news: somebody looked. */
  found(device: Link | undefined): void {
    this.#index = device?.index;
    this.#isUp = isUp(device?.flags ?? 0);
  }

  heardOfLink(type: number, payload: Uint8Array): void {
    const { name, index, flags } = decodeLink(payload);
    if (name !== DEVICE) return;
    const isKnown = this.#index === index;
    const wasUp = this.#isUp;
    this.#index = type === RTM_DELLINK ? undefined : index;
    this.#isUp = isUp(flags);
    if (type === RTM_DELLINK || (isKnown && this.#isUp !== wasUp)) this.tellEverybody(`link ${DEVICE}`);
  }

  heardOfAddress(type: number, { family, ip, scope }: LinkAddress): void {
    for (const follower of this.#followers) {
      if (follower.family !== family || scope !== 'global') continue;
      if (follower.isBound(ip) !== (type === RTM_NEWADDR)) follower.onDevice(`address ${ip} on ${DEVICE}`);
    }
  }

  tellEverybody(object?: string): void {
    for (const each of this.#followers) each.onDevice(object);
  }
}

function isUp(flags: number): boolean {
  return (flags & IFF_UP) !== 0;
}
