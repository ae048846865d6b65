/** The host that a browser asked for: `Host`, or the target where that is a whole address. */
import { type Ip, parseIp } from '../model/ip.ts';

type AskedHost = { readonly ip: Ip } | { readonly name: string };

/** `node1:8080`, `10.0.0.1`, `[fd00::1]:8080`; without zones, user names and anything else that browsers do not send. */
export function parseAuthority(text: string): AskedHost | undefined {
  const [, ipv6, other, port = ''] = /^(?:\[([\da-f:.]+)\]|([\w.-]+))(?::(\d{1,5}))?$/i.exec(text) ?? [];
  if (Number(port) > 65_535) return undefined;
  if (ipv6 !== undefined) {
    const ip = ipv6.includes(':') ? parseIp(ipv6.toLowerCase()) : undefined;
    return ip && { ip };
  }
  if (other === undefined) return undefined;
  const ip = parseIp(other);
  return ip ? { ip } : { name: other.toLowerCase() };
}
