/** The addresses that connections to the API server go to: the server's, or those of the proxy before it. */
import { lookup } from 'node:dns/promises';
import { parseIp } from '../model/ip.ts';
import type { SocketAddress } from '../plan/view.ts';
import type { ApiAccess } from '../sources/api/index.ts';

/** A name is looked up once. Where that fails, the endpoints of default/kubernetes are still known. */
export async function dialledAddresses({
  server,
  proxy,
}: Pick<ApiAccess, 'server' | 'proxy'>): Promise<readonly SocketAddress[]> {
  const { hostname, port, protocol } = proxy ?? server;
  const number = port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port);
  const host = hostname.replace(/^\[|\]$/g, '');
  const ip = parseIp(host);
  if (ip !== undefined) return [{ ip, port: number }];
  const found = await lookup(host, { all: true }).catch(() => []);
  return found.flatMap(({ address }) => {
    const each = parseIp(address);
    return each === undefined ? [] : [{ ip: each, port: number }];
  });
}
