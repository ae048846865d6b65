/**
 * Addresses that no Service may claim from outside: those at which the API server is reached.
 *
 * A mode that binds a service's addresses to the node (IPVS) makes each of them the node's own, at every port. If one is the
 * API server's, this node has cut itself off: it cannot even learn that the Service is gone, and nor can whoever starts next.
 */
import { type Family, familyOf, type Ip } from '../model/ip.ts';
import { type EndpointSlice, objectKey, type ObjectKey, type Protocol } from '../model/objects.ts';

export interface SocketAddress {
  readonly ip: Ip;
  readonly port: number;
}

export interface ReservedAddress {
  readonly ip: Ip;
  /** `undefined`: every port. The node's own addresses are never bound, so there it is one port. */
  readonly tcpPort: number | undefined;
}

export function reservedAddresses(
  apiServers: readonly SocketAddress[],
  nodeIps: readonly Ip[],
  family: Family,
): readonly ReservedAddress[] {
  return apiServers
    .filter(({ ip }) => familyOf(ip) === family)
    .map(({ ip, port }) => ({ ip, tcpPort: nodeIps.includes(ip) ? port : undefined }));
}

export function isReserved(
  reserved: readonly ReservedAddress[],
  ip: Ip,
  protocol: Protocol,
  port: number,
): boolean {
  return reserved.some(
    (other) =>
      other.ip === ip && (other.tcpPort === undefined || (protocol === 'TCP' && other.tcpPort === port)),
  );
}

/** The endpoints of the Service `default/kubernetes`: the API servers themselves, whatever address they are dialled at. */
export class ApiServerEndpoints {
  readonly #slices = new Map<ObjectKey, readonly SocketAddress[]>();
  #all: readonly SocketAddress[] = [];

  get all(): readonly SocketAddress[] {
    return this.#all;
  }

  update(namespace: string, name: string, slice: EndpointSlice | undefined): void {
    const key = objectKey(namespace, name);
    const isTheirs = namespace === 'default' && slice?.service === 'kubernetes';
    if (!isTheirs && !this.#slices.has(key)) return;
    if (isTheirs) this.#slices.set(key, addressesOf(slice));
    else this.#slices.delete(key);
    this.#all = [...this.#slices.values()].flat();
  }
}

function addressesOf({ endpoints, ports }: EndpointSlice): readonly SocketAddress[] {
  return endpoints.flatMap(({ ip }) => ports.map(({ port }) => ({ ip, port })));
}
