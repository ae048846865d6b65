/** The rules of the IPVS mode as a walk needs them: those of iptables, the sets that they match, and IPVS between the hooks. */
import { FAMILIES, familyOf, hostCidr, type Ip, isLoopback, parseCidr } from '../../../model/ip.ts';
import type { Host, Packet } from '../../../plan/decide.ts';
import { walkPacket } from '../../walk.ts';
import {
  type BaseChain,
  type HookPoint,
  type KernelRules,
  type PacketPlace,
  type PacketState,
  ReadOnce,
  type RuleResult,
  type Steps,
  type WalkContext,
  type WalkResult,
  type WalkRule,
} from '../../kernelRules.ts';
import type { IpvsSource, KernelDestination, KernelDevice, KernelIpset, KernelServer } from './client.ts';
import { PERSISTENT, type ServerKey, serverKey } from './compile.ts';
import { entryKey, IPSETS, SET_IDS, type SetEntry, setName } from './sets.ts';

/**
 * What the node sends from its own address it sends without choosing one. To an address of kube-ipvs0 it then comes from
 * that address itself: the kernel prefers it.
 *
 * An outcome's `learned` are persistence entries: `TCP 10.96.0.1:80 -> 10.244.0.1:8080`.
 */
export function* walkIpvs(
  source: IpvsSource,
  tables: KernelRules,
  place: PacketPlace,
  packet: Packet,
  host: Host,
): Steps<WalkResult> {
  let device: KernelDevice = { state: 'absent' };
  yield source.readDevice().then((read) => (device = read));
  const rules = new IpvsRules(source, tables, boundIps(device), new Set(host.addresses));
  const { source: client, destination, inInterface } = packet;
  const isUnbound =
    inInterface === undefined && client === nodeIpOf(host, client) && rules.isBound(destination);
  return yield* walkPacket(rules, isUnbound ? { ...packet, source: destination } : packet, host, {
    ...place,
    inSet: (...question) => rules.inSet(...question),
  });
}

function nodeIpOf({ nodeIp, addresses }: Host, source: Ip): Ip | undefined {
  return nodeIp ?? addresses.find((ip) => familyOf(ip) === familyOf(source) && !isLoopback(ip));
}

/** The kernel delivers here what is for these. */
export function boundIps(device: KernelDevice): ReadonlySet<Ip> {
  return new Set(device.state === 'present' && !device.broken ? device.addresses : []);
}

/** Where IPVS is among the chains: of linux/netfilter_ipv4.h, NF_IP_PRI_NAT_SRC - 1 and NF_IP_PRI_NAT_DST + 1. */
const PRIORITY: Partial<Readonly<Record<HookPoint, number>>> = { input: 99, output: -99 };
const IPVS = 'ipvs';

const TYPES = new Map(
  FAMILIES.flatMap((family) => SET_IDS.map((id) => [setName(id, family), IPSETS[id].type] as const)),
);

interface Balanced {
  readonly server: KernelServer;
  readonly destinations: readonly KernelDestination[];
}

class IpvsRules implements KernelRules {
  readonly #source: IpvsSource;
  readonly #tables: KernelRules;
  readonly #bound: ReadonlySet<Ip>;
  readonly #addresses: ReadonlySet<string>;
  readonly #sets = new ReadOnce<KernelIpset>();
  readonly #servers = new ReadOnce<Balanced>();

  constructor(
    source: IpvsSource,
    tables: KernelRules,
    bound: ReadonlySet<Ip>,
    addresses: ReadonlySet<string>,
  ) {
    this.#source = source;
    this.#tables = tables;
    this.#bound = bound;
    this.#addresses = addresses;
  }

  isBound(ip: Ip): boolean {
    return this.#bound.has(ip) && !this.#addresses.has(ip) && !isLoopback(ip);
  }

  *baseChains(point: HookPoint): Steps<readonly BaseChain[]> {
    const chains = yield* this.#tables.baseChains(point);
    const priority = PRIORITY[point];
    if (priority === undefined) return chains;
    return [...chains, { type: IPVS, table: IPVS, chain: IPVS, priority, policy: 'accept' }];
  }

  *rulesOf(
    table: string,
    chain: string,
    state: PacketState,
    context: WalkContext,
  ): Steps<readonly WalkRule[] | undefined> {
    if (table !== IPVS) return yield* this.#tables.rulesOf(table, chain, state, context);
    // What IPVS has sent on already it leaves alone.
    if (state.virtualServer) return [];
    return [{ evaluate: (...packet) => this.#balance(...packet), print: () => '' }];
  }

  *inSet(
    set: string,
    sides: readonly string[],
    state: PacketState,
  ): ReturnType<NonNullable<PacketPlace['inSet']>> {
    const entry = entryOf(set, sides, state);
    if (!entry) return { isMember: undefined };
    const known = yield* this.#sets.get(set, () => this.#source.readSet(set));
    return {
      isMember: known !== undefined && hasEntry(known, entry),
      entry: `${set} { ${entryKey(entry)} }`,
    };
  }

  async #read(key: ServerKey): Promise<Balanced | undefined> {
    const servers = await this.#source.readServers();
    const server = servers.find((each) => serverKey(each) === serverKey(key));
    const [destinations = []] = server ? await this.#source.readDestinations([key]) : [];
    return server && { server, destinations };
  }

  *#balance(state: PacketState, { note, place }: WalkContext): Steps<readonly RuleResult[]> {
    const key: ServerKey = { protocol: state.protocol, ip: state.destination, port: state.port };
    const chain = serverKey(key);
    const known = yield* this.#servers.get(chain, () => this.#read(key));
    if (!known)
      return [{ state, isMatch: this.isBound(key.ip), steps: () => [{ chain, text: 'no virtual server' }] }];
    const { server, destinations } = known;
    const isPersistent = (server.flags & PERSISTENT) !== 0;
    const entryFor = (destination: KernelDestination): string => `${chain} -> ${destination.key}`;
    const open = destinations.filter(({ weight }) => weight > 0);
    const kept = isPersistent ? open.find((each) => place.remembers?.(entryFor(each))) : undefined;
    const taken = kept ? [kept] : open;
    const serverStep = { chain, text: printServer(server), packets: server.packets };
    if (taken.length === 0) {
      const found = destinations.map(printDestination);
      return [{ state, isMatch: true, verdict: { kind: 'reject' }, steps: () => [{ ...serverStep, found }] }];
    }
    if (taken.length > 1 && server.scheduler !== 'rr') note(`${chain}: ${chosenBy(server.scheduler)}`);
    return taken.map((destination) => ({
      state: {
        ...state,
        destination: destination.ip,
        port: destination.port,
        virtualServer: { ip: key.ip, port: key.port },
        probability: state.probability / taken.length,
        byAffinity: kept !== undefined,
        learned: isPersistent ? [...state.learned, { name: entryFor(destination) }] : state.learned,
      },
      isMatch: true,
      steps: () => [serverStep, { chain, text: printDestination(destination), packets: destination.packets }],
    }));
  }
}

/** What the packet is looked up by. `undefined`: by something that a walk does not know, such as the source port. */
function entryOf(name: string, sides: readonly string[], state: PacketState): SetEntry | undefined {
  const type = TYPES.get(name);
  const [first = 'dst', second, third] = sides;
  const { protocol, port } = state;
  const ipOf = (side: string): Ip => (side === 'src' ? state.source : state.destination);
  switch (type) {
    case 'hash:ip':
      return { type, ip: ipOf(first) };
    case 'bitmap:port':
      return first === 'dst' ? { type, port } : undefined;
    case 'hash:ip,port':
      return second === 'dst' ? { type, ip: ipOf(first), protocol, port } : undefined;
    case 'hash:ip,port,ip':
      if (second !== 'dst' || !third) return undefined;
      return { type, ip: ipOf(first), protocol, port, secondIp: ipOf(third) };
    case 'hash:ip,port,net':
      if (second !== 'dst' || !third) return undefined;
      return { type, ip: ipOf(first), protocol, port, net: hostCidr(ipOf(third)) };
    case undefined:
      return undefined;
  }
}

const CHOICES: Readonly<Record<string, string>> = {
  wrr: 'their weights',
  fo: 'their weights',
  sh: "a hash of the client's address",
  dh: 'a hash of the dialled address',
  mh: "a hash of the client's address and port",
};

/** Where it is not known which, each is as likely as the others. */
function chosenBy(scheduler: string): string {
  const how = CHOICES[scheduler] ?? 'their connections';
  return `the scheduler ${scheduler} chooses one of its real servers by ${how}; not evaluated`;
}

function printServer({ scheduler, flags, timeout }: KernelServer): string {
  const persistence = (flags & PERSISTENT) === 0 ? '' : `, persistent for ${timeout} s`;
  return `virtual server, scheduler ${scheduler}${persistence}`;
}

function printDestination({
  key,
  weight,
  activeConnections,
  inactiveConnections,
}: KernelDestination): string {
  const connections = `${activeConnections} active and ${inactiveConnections} inactive connections`;
  return `real server ${key}, weight ${weight}, ${connections}`;
}

/** The entry itself; of a set of networks, one that has the host. */
function hasEntry({ entries }: KernelIpset, entry: SetEntry): boolean {
  if (entry.type !== 'hash:ip,port,net') return entries.has(entryKey(entry));
  const [host = ''] = entry.net.split('/', 1);
  const bits = familyOf(entry.ip) === 'IPv4' ? 32 : 128;
  for (let prefix = 0; prefix <= bits; prefix++) {
    const net = parseCidr(`${host}/${prefix}`);
    if (net !== undefined && entries.has(entryKey({ ...entry, net }))) return true;
  }
  return false;
}
