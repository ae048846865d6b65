/** The dummy device whose addresses make service addresses this node's own, so that IPVS gets to see their packets. */
import { DEVICE } from './rules/print.ts';
import { constants } from 'node:os';
import { JunctionError } from '../../errors.ts';
import type { KernelDevice } from './rules/client.ts';
import type { Family, Ip } from '../../model/ip.ts';
import {
  decodeAddress,
  getAddresses,
  decodeLink,
  getLink,
  type Link,
  decodeIsLocal,
  getRoute,
} from '../../netlink/rtnetlink.ts';
import type { NetlinkChannel } from '../../netlink/channel.ts';

export { DEVICE };

export async function findDevice(route: NetlinkChannel): Promise<Link | undefined> {
  const reply = await route.request(getLink(DEVICE));
  if (reply.kind === 'refused') {
    if (reply.errno === constants.errno.ENODEV) return undefined;
    throw new JunctionError('NETLINK_FAILED', `netlink: cannot read the link ${DEVICE}: ${reply.name}`);
  }
  const [message] = reply.messages;
  return message && decodeLink(message.payload);
}

export async function readDevice(route: NetlinkChannel, family: Family): Promise<KernelDevice> {
  const link = await findDevice(route);
  if (!link) return { state: 'absent' };
  if (link.kind !== 'dummy') return { state: 'foreign', type: link.kind ?? 'physical device' };
  const addresses = await addressesOf(route, link, family);
  return { state: 'present', addresses, broken: await isBroken(route, addresses) };
}

async function addressesOf(route: NetlinkChannel, link: Link, family: Family): Promise<readonly Ip[]> {
  const [reply] = await route.dumpAll([getAddresses(family)]);
  if (reply?.kind !== 'answered')
    throw new JunctionError('NETLINK_FAILED', `netlink: cannot list the addresses: ${reply?.name}`);
  return reply.messages.flatMap(({ payload }) => {
    const address = decodeAddress(payload);
    return address?.linkIndex === link.index && address.scope === 'global' ? [address.ip] : [];
  });
}

/**
 * A device that was set up and down again keeps its IPv4 addresses, but the kernel has forgotten that they are local.
 * What happened to one of them happened to all.
 */
async function isBroken(route: NetlinkChannel, [first]: readonly Ip[]): Promise<boolean> {
  if (first === undefined) return false;
  const reply = await route.request(getRoute(first));
  if (reply.kind === 'refused') return true; // no route at all
  const [message] = reply.messages;
  return message === undefined || !decodeIsLocal(message.payload);
}
