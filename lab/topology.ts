/**
 * The lab's map. Addresses are fixed, so that tests can name them.
 *
 *   client ── eth1 node1 eth0 ── LAN ── eth0 node2
 *                  cni0                      cni0
 *                 ┌─┴─┐                     ┌─┴─┐
 *              pod-a pod-b               pod-c pod-d
 */
import { FAMILIES, type Family, type Ip, parseIp } from '../src/model/ip.ts';

export const HOST_NAMES = ['node1', 'node2', 'pod-a', 'pod-b', 'pod-c', 'pod-d', 'client'] as const;
export type HostName = (typeof HOST_NAMES)[number];
export type NodeName = 'node1' | 'node2';
export type PodName = 'pod-a' | 'pod-b' | 'pod-c' | 'pod-d';

export const PODS_OF: Readonly<Record<NodeName, readonly PodName[]>> = {
  node1: ['pod-a', 'pod-b'],
  node2: ['pod-c', 'pod-d'],
};

/**
 * How neighbouring pods reach each other. `bridged`: through the bridge, whose frames pass iptables by bridge-nf-call.
 * `routed`: each pod's address stands alone (/32, /128), so that everything goes to the node first; for kernels where
 * br_netfilter is absent or has no setting per namespace.
 */
export type PodRouting = 'bridged' | 'routed';

export type Addresses = Readonly<Record<Family, readonly Ip[]>>;

/** A host's first address of a family is the one that it is known by. */
export const ADDRESSES: Readonly<Record<HostName, Addresses>> = {
  node1: addresses(
    ['192.168.100.2', '10.244.1.1', '192.0.2.1'],
    ['fd00:100::2', 'fd00:244:1::1', '2001:db8:1::1'],
  ),
  node2: addresses(['192.168.100.3', '10.244.2.1'], ['fd00:100::3', 'fd00:244:2::1']),
  'pod-a': addresses(['10.244.1.11'], ['fd00:244:1::11']),
  'pod-b': addresses(['10.244.1.12'], ['fd00:244:1::12']),
  'pod-c': addresses(['10.244.2.11'], ['fd00:244:2::11']),
  'pod-d': addresses(['10.244.2.12'], ['fd00:244:2::12']),
  client: addresses(['192.0.2.10', '198.18.0.10'], ['2001:db8:1::10', '2001:db8:2::10']),
};

export const POD_CIDRS: Readonly<Record<NodeName, Readonly<Record<Family, string>>>> = {
  node1: { IPv4: '10.244.1.0/24', IPv6: 'fd00:244:1::/64' },
  node2: { IPv4: '10.244.2.0/24', IPv6: 'fd00:244:2::/64' },
};

/** The network of the client's second address, which lies behind its first. */
export const FAR_NETWORK: Readonly<Record<Family, string>> = {
  IPv4: '198.18.0.0/24',
  IPv6: '2001:db8:2::/64',
};

/**
 * What every pod answers on, over TCP, UDP and, where the lab has it, SCTP; 53 because DNS is the service whose UDP
 * matters most.
 */
export const POD_PORTS: readonly number[] = [8080, 8081, 9090, 53];
/** What the nodes themselves answer on, over TCP: a service whose endpoints are host-network pods. */
export const NODE_PORT_OF_HOST_NETWORK = 9999;

export function addressOf(host: HostName, family: Family, index = 0): Ip {
  const address = ADDRESSES[host][family][index];
  if (address === undefined) throw new Error(`${host} has no ${family} address number ${index}`);
  return address;
}

export function networkBits(family: Family): number {
  return family === 'IPv4' ? 24 : 64;
}

export function hostBits(family: Family): number {
  return family === 'IPv4' ? 32 : 128;
}

export function perFamily<T>(make: (family: Family) => readonly T[]): readonly T[] {
  return FAMILIES.flatMap(make);
}

function addresses(ipv4: readonly string[], ipv6: readonly string[]): Addresses {
  return { IPv4: ipv4.map(known), IPv6: ipv6.map(known) };
}

function known(text: string): Ip {
  const ip = parseIp(text);
  if (ip === undefined) throw new Error(`not an address: ${text}`);
  return ip;
}
