/**
 * Compares what the kernel has with what it should have, one part after another: at a start, after a failure, and to find what
 * other programs changed. Between two parts a sync may write a change first.
 */
import { JunctionError } from '../../../errors.ts';
import { type Cidr, cidrContains, type Family } from '../../../model/ip.ts';
import {
  DEVICE,
  type IpvsSource,
  type KernelDevice,
  type KernelIpset,
  type ServerAttributes,
} from './client.ts';
import { serverKey } from './compile.ts';
import type { Changeset, DesiredState } from './desiredState.ts';
import { capacityFor, entryKey, growSet, IPSETS, SET_IDS, type SetId, setName } from './sets.ts';

/** Reading more at a time would hold up everything else. */
const SERVERS_PER_PART = 64;

export interface ComparisonOptions {
  readonly client: IpvsSource;
  readonly family: Family;
  readonly desired: DesiredState;
  /** The node's own: by these a virtual server of a node port is known. */
  readonly nodeIps: ReadonlySet<string>;
  /** Virtual servers in these ranges are never deleted. */
  readonly excludeCIDRs: readonly Cidr[];
}

/** A part of the kernel as it was just read. Adds what has to change, step by step. */
export type Comparison = (changes: Changeset) => Generator<void>;

export async function* compareKernel(options: ComparisonOptions): AsyncGenerator<Comparison, void> {
  const { client, family, desired, nodeIps, excludeCIDRs } = options;
  const device = await client.readDevice();
  yield (changes) => compareDevice(device, desired, changes);
  const sets = new Map<string, KernelIpset>();
  for (const id of SET_IDS) {
    const name = setName(id, family);
    const set = await client.readSet(name);
    if (set) sets.set(name, set);
    yield function* (changes) {
      const { type } = IPSETS[id];
      const size = desired.sizeOf(id);
      if (!set) changes.made.push({ kind: 'createSet', set: name, type, capacity: capacityFor(size) });
      else if (set.type !== type) throw wrongType(name, set.type, type);
      yield* compareSet(id, set?.entries ?? NO_ENTRIES, desired, changes);
      const leaving = changes.leaving(name);
      if (!set || size + leaving.length <= set.capacity) return;
      const entries = Array.from(desired.entriesOf(id), ([, entry]) => entry);
      changes.made.push(...growSet(id, family, [...entries, ...leaving], set.capacity));
    };
  }
  const isKnown = (key: string): boolean => desired.server(key) !== undefined;
  const bound = device.state === 'present' ? device.addresses : [];
  const servers = ourServers(await client.readServers(), { family, sets, bound, nodeIps }, isKnown);
  yield (changes) => compareServers(servers, desired, changes, excludeCIDRs);
  for (let from = 0; from < servers.length; from += SERVERS_PER_PART) {
    const some = servers.slice(from, from + SERVERS_PER_PART);
    const destinations = await client.readDestinations(some);
    yield function* (changes) {
      for (const [index, server] of some.entries()) {
        const wanted = desired.server(serverKey(server));
        if (wanted) changes.destinations(wanted, destinations[index] ?? []);
        yield;
      }
    };
  }
}

const NO_ENTRIES: KernelIpset['entries'] = new Map();

function* compareDevice(device: KernelDevice, desired: DesiredState, changes: Changeset): Generator<void> {
  if (device.state === 'foreign')
    throw new JunctionError(
      'DEVICE_TAKEN',
      `there is a link ${DEVICE} that is a ${device.type}, not a dummy`,
      { hint: `Find out who made it; when nobody needs it: ip link delete ${DEVICE}` },
    );
  const isUsable = device.state === 'present' && !device.broken;
  if (!isUsable) {
    if (device.state === 'present') changes.made.push({ kind: 'dropDevice' });
    changes.made.push({ kind: 'makeDevice' });
  }
  const bound = new Set(isUsable ? device.addresses : []);
  for (const ip of desired.boundIps()) {
    changes.address(ip, bound.has(ip), true);
    yield;
  }
  for (const ip of bound) changes.address(ip, true, desired.isBound(ip));
}

function* compareSet(
  id: SetId,
  entries: KernelIpset['entries'],
  desired: DesiredState,
  changes: Changeset,
): Generator<void> {
  for (const [key, entry] of desired.entriesOf(id)) {
    changes.entry(id, entries.get(key), entry);
    yield;
  }
  for (const [key, entry] of entries) {
    if (!desired.has(id, key)) changes.entry(id, entry, undefined);
    yield;
  }
}

function wrongType(set: string, found: string, wanted: string): JunctionError {
  return new JunctionError(
    'IPSET_TAKEN',
    `the set ${set} is there already and is of type ${found}, not ${wanted}`,
    {
      hint: `Find out who made it (iptables-save | grep ${set}); when nobody needs it: ipset destroy ${set}`,
    },
  );
}

/** All but their endpoints, which are read apart. */
function* compareServers(
  existing: readonly ServerAttributes[],
  desired: DesiredState,
  changes: Changeset,
  excludeCIDRs: readonly Cidr[],
): Generator<void> {
  const there = new Set<string>();
  for (const server of existing) {
    const key = serverKey(server);
    const wanted = desired.server(key);
    there.add(key);
    const isExcluded = excludeCIDRs.some((cidr) => cidrContains(cidr, server.ip));
    if (wanted || !isExcluded) changes.server(server, wanted);
    yield;
  }
  for (const [key, server] of desired.servers()) {
    if (!there.has(key)) {
      changes.server(undefined, server);
      changes.destinations(server, []);
    }
    yield;
  }
}

/** Those of our names, by name. */
export async function readSets(
  client: Pick<IpvsSource, 'readSet'>,
  family: Family,
): Promise<ReadonlyMap<string, KernelIpset>> {
  const sets = new Map<string, KernelIpset>();
  for (const id of SET_IDS) {
    const name = setName(id, family);
    const set = await client.readSet(name);
    if (set) sets.set(name, set);
  }
  return sets;
}

interface Signs extends Pick<ComparisonOptions, 'family' | 'nodeIps'> {
  /** By name. */
  readonly sets: ReadonlyMap<string, KernelIpset>;
  /** Addresses of our device. */
  readonly bound: readonly string[];
}

/** Virtual servers that are ours to change: wanted, or named by our sets or device. */
export function ourServers(
  servers: readonly ServerAttributes[],
  { family, sets, bound: addresses, nodeIps }: Signs,
  isKnown: (key: string) => boolean = () => false,
): readonly ServerAttributes[] {
  const bound = new Set(addresses);
  const has = (id: SetId, key: string): boolean => sets.get(setName(id, family))?.entries.has(key) ?? false;
  return servers.filter((server) => {
    const { ip, protocol, port } = server;
    if (isKnown(serverKey(server)) || bound.has(ip)) return true;
    const key = entryKey({ type: 'hash:ip,port', ip, protocol, port });
    if (ADDRESS_SETS.some((id) => has(id, key))) return true;
    // A node port of a former process: on an address of this node, with a port that our sets name.
    return nodeIps.has(ip) && protocol !== 'SCTP' && has(`KUBE-NODE-PORT-${protocol}`, String(port));
  });
}

const ADDRESS_SETS: readonly SetId[] = [
  'KUBE-CLUSTER-IP',
  'KUBE-EXTERNAL-IP',
  'KUBE-EXTERNAL-IP-LOCAL',
  'KUBE-LOAD-BALANCER',
  'KUBE-NODE-PORT-SCTP-HASH',
];
