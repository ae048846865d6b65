/** The node's primary address family, as kube-proxy finds it. */
import { type Family, familyOf, parseIp } from '../model/ip.ts';
import type { Node } from '../model/objects.ts';

/** Of a bind address that is one machine's, else of the node's first address, else IPv4. */
export function primaryFamily(bindAddress: string, node: Pick<Node, 'ips'> | undefined): Family {
  const bound = parseIp(bindAddress);
  if (bound !== undefined && bound !== '0.0.0.0' && bound !== '::') return familyOf(bound);
  const [first] = node?.ips ?? [];
  return first === undefined ? 'IPv4' : familyOf(first);
}
