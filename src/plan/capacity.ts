/**
 * How much one Service may cost a node. An API server takes objects of 1.5 MB, and products of their fields are without
 * limit: 30,000 ports × 30,000 external IPs fit, and so does a slice of 1,000 endpoints × 20,000 ports. What is beyond
 * the bounds is not served, so that nobody else waits for it; what is within them is first in the object's order.
 */
import type { Family } from '../model/ip.ts';
import type { ModeName } from '../model/mode.ts';
import type { UnreadCounts } from '../model/objects.ts';
import type { ServicePort } from '../model/serviceTracker.ts';

/** Of one Service in one address family. What a mode can bear is measured: `npm run bench -- hostile`. */
export interface Capacity {
  readonly ports: number;
  /** Addresses × ports, node ports among them. */
  readonly frontends: number;
  /** Source ranges × load-balancer addresses × ports. */
  readonly sourceRanges: number;
  /** Endpoints × ports. */
  readonly endpoints: number;
  /** Endpoints × frontends. */
  readonly destinations: number;
}

/**
 * As measured on two cores, a change of a service at these bounds takes some tenths of a second, and the largest that
 * anybody is known to need is far from them: Kubernetes supports 5,000 nodes, so a DaemonSet has 5,000 endpoints; lists of
 * source ranges have hundreds of entries; Services with more than some hundred ports are advised against.
 */
const COMMON = { ports: 1000, frontends: 5000 };

const CAPACITIES: Readonly<Record<ModeName, Capacity>> = {
  // A chain of 5,000 endpoints is written again when one of them changes, which takes iptables-nft up to a second.
  iptables: { ...COMMON, sourceRanges: 10_000, endpoints: 5000, destinations: Number.POSITIVE_INFINITY },
  ipvs: { ...COMMON, sourceRanges: 10_000, endpoints: 50_000, destinations: 50_000 },
  // The kernel's sets of ranges take time with the square of their size: 1,000 entries 50 ms, 5,000 half a second.
  // A pool that gets another size is written again: twice its elements, for each address.
  nftables: { ...COMMON, sourceRanges: 4000, endpoints: 30_000, destinations: 30_000 },
};

/** Of IPv6 addresses four times as many bits are compared: removing 4,000 such ranges took two seconds. */
const IPV6_RANGES_IN_NFTABLES = 2000;

export function capacityOf(mode: ModeName, family: Family): Capacity {
  const capacity = CAPACITIES[mode];
  if (mode !== 'nftables' || family !== 'IPv6') return capacity;
  return { ...capacity, sourceRanges: IPV6_RANGES_IN_NFTABLES };
}

const NO_BOUND = Number.POSITIVE_INFINITY;

export const UNBOUNDED: Capacity = {
  ports: NO_BOUND,
  frontends: NO_BOUND,
  sourceRanges: NO_BOUND,
  endpoints: NO_BOUND,
  destinations: NO_BOUND,
};

/** A field of which only the first entries count. */
export interface Cut {
  readonly field: CutField;
  /** How many entries it has, and how many of them count. */
  readonly count: number;
  readonly served: number;
  /** Which bound it is. */
  readonly bound: keyof Capacity;
  readonly capacity: number;
}

type CutField =
  | 'spec.ports'
  | 'spec.externalIPs'
  | 'status.loadBalancer.ingress'
  | 'spec.loadBalancerSourceRanges'
  | 'endpoints';

const FIELDS: Readonly<Record<keyof UnreadCounts, CutField>> = {
  ports: 'spec.ports',
  externalIPs: 'spec.externalIPs',
  loadBalancerIPs: 'status.loadBalancer.ingress',
  sourceRanges: 'spec.loadBalancerSourceRanges',
};

const ALL_READ: UnreadCounts = { ports: 0, externalIPs: 0, loadBalancerIPs: 0, sourceRanges: 0 };

interface BoundedService {
  readonly ports: readonly ServicePort[];
  /** How many endpoints each port may have. */
  readonly endpointsPerPort: number;
  readonly cuts: readonly Cut[];
}

/** A service's ports with no more addresses and ranges than there is room for. Addresses are served at every port or at none. */
export function withinCapacity(all: readonly ServicePort[], capacity: Capacity): BoundedService {
  const cuts: Cut[] = [];
  const unread = all[0]?.unread ?? ALL_READ;
  const first = <T>(
    items: readonly T[],
    room: number,
    list: keyof UnreadCounts,
    bound: keyof Capacity,
  ): readonly T[] => {
    const served = Math.min(items.length, Math.max(0, Math.floor(room)));
    const count = items.length + unread[list];
    // Addresses that were too many to read are the other family's where none of this one was among the first.
    const isOthers = items.length === 0 && (list === 'externalIPs' || list === 'loadBalancerIPs');
    if (count <= served || isOthers) return items;
    cuts.push({ field: FIELDS[list], count, served, bound, capacity: capacity[bound] });
    return items.slice(0, served);
  };
  const ports = first(all, capacity.ports, 'ports', 'ports');
  const [port] = ports;
  if (!port) return { ports, endpointsPerPort: capacity.endpoints, cuts };

  const count = ports.length;
  const always = count + ports.filter(({ nodePort }) => nodePort !== 0).length;
  const roomForIPs = (capacity.frontends - always) / count;
  const loadBalancerIPs = first(port.loadBalancerIPs, roomForIPs, 'loadBalancerIPs', 'frontends');
  const roomForExternal = roomForIPs - loadBalancerIPs.length;
  const externalIPs = first(port.externalIPs, roomForExternal, 'externalIPs', 'frontends');
  const restricted = Math.max(1, loadBalancerIPs.length) * count;
  const roomForRanges = Math.max(1, capacity.sourceRanges / restricted); // none would let everybody in
  const sourceRanges = first(port.sourceRanges, roomForRanges, 'sourceRanges', 'sourceRanges');
  const frontends = always + (loadBalancerIPs.length + externalIPs.length) * count;
  return {
    ports:
      cuts.length === 0
        ? ports
        : ports.map((each) => ({ ...each, loadBalancerIPs, externalIPs, sourceRanges })),
    endpointsPerPort: Math.max(
      1,
      Math.floor(Math.min(capacity.endpoints / count, capacity.destinations / frontends)),
    ),
    cuts,
  };
}

/** About how much there is to plan and to write for a service. */
export function costOf(ports: readonly ServicePort[], endpointCount: number, capacity: Capacity): number {
  const [port] = ports;
  if (!port) return 0;
  const { externalIPs, loadBalancerIPs, sourceRanges } = port;
  const count = Math.min(ports.length, capacity.ports);
  const frontends = Math.min(count * (2 + externalIPs.length + loadBalancerIPs.length), capacity.frontends);
  const destinations = Math.min(frontends * endpointCount, capacity.destinations);
  const ranges = Math.min(count * loadBalancerIPs.length * sourceRanges.length, capacity.sourceRanges);
  return frontends + destinations + ranges;
}

/** What is not served of a service's endpoints. */
export function endpointCut(
  count: number,
  { endpointsPerPort }: BoundedService,
  capacity: Capacity,
): readonly Cut[] {
  if (count <= endpointsPerPort) return [];
  const bound = Number.isFinite(capacity.destinations) ? 'destinations' : 'endpoints';
  return [{ field: 'endpoints', count, served: endpointsPerPort, bound, capacity: capacity[bound] }];
}

/** `spec.externalIPs has 60000 entries, of which the first 4998 are used: a Service may have …` */
export function printCut({ field, count, served, bound, capacity }: Cut): string {
  const what =
    field === 'endpoints' ? `${count} endpoints are in its slices` : `${field} has ${count} entries`;
  const kept = field === 'endpoints' ? `${served} for each port` : `the first ${served}`;
  return `${what}, of which ${kept} are used: a Service may have ${capacity} ${BOUNDS[bound]}`;
}

const BOUNDS: Readonly<Record<keyof Capacity, string>> = {
  ports: 'ports',
  frontends: 'frontends (addresses × ports, with node ports)',
  sourceRanges: 'source-range entries (ranges × load-balancer addresses × ports)',
  endpoints: 'endpoint entries (endpoints × ports)',
  destinations: 'destinations (endpoints × addresses × ports)',
};
