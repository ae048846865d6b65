/** By which interface packets of a source come in: the one by which the node would answer it. */
import type { Ip } from '../../model/ip.ts';
import { withChannel } from '../../netlink/sockets.ts';
import { decodeLink, decodeRoute, getLinks, getRoute } from '../../netlink/rtnetlink.ts';
import { NETLINK_ROUTE } from '../../netlink/socket.ts';

/** `undefined`: there is no route to it. */
export function interfaceTowards(source: Ip): Promise<string | undefined> {
  return withChannel(NETLINK_ROUTE, async (channel) => {
    const reply = await channel.request(getRoute(source));
    const [message] = reply.kind === 'answered' ? reply.messages : [];
    const outLink = message && decodeRoute(message.payload).outLink;
    if (outLink === undefined) return undefined;
    const links = await channel.list(getLinks(), 'the links', decodeLink);
    return links.find(({ index }) => index === outLink)?.name;
  });
}
