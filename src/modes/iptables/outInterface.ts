/** By which interface the kernel would send a packet, as its routes are now. Rules that route by a mark are not asked. */
import type { Ip } from '../../model/ip.ts';
import { NLM_F_DUMP } from '../../netlink/codec.ts';
import { decodeLink, decodeRoute, getLinks, getRoute, type Link } from '../../netlink/rtnetlink.ts';
import { NETLINK_ROUTE, type NetlinkRequest, requestOnce } from '../../netlink/socket.ts';

/** `inInterface` is empty where this node sends it. `undefined`: there is no route, or nobody knows. */
export type OutInterface = (destination: Ip, source: Ip, inInterface: string) => string | undefined;

/** For one walk: links are read once. */
export function routesNow(): OutInterface {
  let known: readonly Link[] | undefined;
  return (destination, source, inInterface) => {
    const links = (known ??= answered({ ...getLinks(), flags: NLM_F_DUMP }).map(decodeLink));
    const inLink = links.find(({ name }) => name === inInterface)?.index;
    if (inInterface !== '' && inLink === undefined) return undefined;
    const arrival = inLink === undefined ? undefined : { source, inLink };
    const [route] = answered(getRoute(destination, arrival)).map(decodeRoute);
    return links.find(({ index }) => index === route?.outLink)?.name;
  };
}

/** On a socket of its own, at once: a walk cannot wait. */
function answered(request: NetlinkRequest): readonly Uint8Array[] {
  const reply = requestOnce(NETLINK_ROUTE, request);
  return typeof reply === 'string' || reply.kind !== 'answered'
    ? []
    : reply.messages.map(({ payload }) => payload);
}
