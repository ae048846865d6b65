/** The rules of the IPVS mode as a walk needs them: those of iptables, the sets that they match, and IPVS between the hooks. */
import { type Cidr, familyOf, hostCidr, type Ip, isLoopback, parseCidr } from '../../../model/ip.ts';
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
import type { KernelIpset, ServerAttributes } from './client.ts';
import { type Destination, PERSISTENT, type ServerKey, serverKey } from './compile.ts';
import { entryKey, IPSETS, SET_IDS, type SetEntry, setName, type SetType } from './sets.ts';

/** A virtual server as far as a packet is concerned. */
export interface WalkedServer extends Pick<ServerAttributes, 'scheduler' | 'flags' | 'timeout'> {
  readonly destinations: readonly WalkedDestination[];
  /** That it has counted since it was made; unset where nothing counts. */
  readonly packets?: number | undefined;
}

export interface WalkedDestination extends Destination {
  readonly weight: number;
  readonly activeConnections?: number | undefined;
  readonly inactiveConnections?: number | undefined;
  readonly packets?: number | undefined;
}

/** What the kernel has, asked for one thing at a time. */
export interface IpvsLookups {
  /** Whether a set has an entry, or a network that has it. */
  hasEntry(set: string, entry: SetEntry): Promise<boolean>;
  server(key: ServerKey): Promise<WalkedServer | undefined>;
  /** Whether the device kube-ipvs0 has it: the kernel delivers here what is for it. */
  isBound(ip: Ip): boolean;
}

/**
 * What the node sends from its own address it sends without choosing one. To an address of kube-ipvs0 it then comes from
 * that address itself: the kernel prefers it.
 *
 * An outcome's `learned` are persistence entries: `TCP 10.96.0.1:80 -> 10.244.0.1:8080`.
 */
export function walkIpvs(
  lookups: IpvsLookups,
  tables: KernelRules,
  place: PacketPlace,
  packet: Packet,
  host: Host,
): Steps<WalkResult> {
  const rules = new IpvsRules(lookups, tables, new Set(host.addresses));
  const { source, destination, inInterface } = packet;
  const isUnbound =
    inInterface === undefined && source === nodeIpOf(host, source) && rules.isBound(destination);
  return walkPacket(rules, isUnbound ? { ...packet, source: destination } : packet, host, {
    ...place,
    inSet: (...question) => rules.inSet(...question),
  });
}

function nodeIpOf({ nodeIp, addresses }: Host, source: Ip): Ip | undefined {
  return nodeIp ?? addresses.find((ip) => familyOf(ip) === familyOf(source) && !isLoopback(ip));
}

/** Where IPVS is among the chains: of linux/netfilter_ipv4.h, NF_IP_PRI_NAT_SRC - 1 and NF_IP_PRI_NAT_DST + 1. */
const PRIORITY: Partial<Readonly<Record<HookPoint, number>>> = { input: 99, output: -99 };
const IPVS = 'ipvs';

const TYPES: ReadonlyMap<string, SetType> = new Map(
  (['IPv4', 'IPv6'] as const).flatMap((family) =>
    SET_IDS.map((id) => [setName(id, family), IPSETS[id].type] as const),
  ),
);

class IpvsRules implements KernelRules {
  readonly #lookups: IpvsLookups;
  readonly #tables: KernelRules;
  readonly #addresses: ReadonlySet<string>;
  readonly #entries = new ReadOnce<boolean>();
  readonly #servers = new ReadOnce<WalkedServer>();
  readonly #bound = new Map<Ip, boolean>();

  constructor(lookups: IpvsLookups, tables: KernelRules, addresses: ReadonlySet<string>) {
    this.#lookups = lookups;
    this.#tables = tables;
    this.#addresses = addresses;
  }

  isBound(ip: Ip): boolean {
    if (this.#addresses.has(ip) || isLoopback(ip)) return false;
    const bound = this.#bound.get(ip) ?? this.#lookups.isBound(ip);
    this.#bound.set(ip, bound);
    return bound;
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
    const text = `${set} { ${entryKey(entry)} }`;
    const isMember = yield* this.#entries.get(text, () => this.#lookups.hasEntry(set, entry));
    return { isMember: isMember ?? false, entry: text };
  }

  *#balance(state: PacketState, { note, place }: WalkContext): Steps<readonly RuleResult[]> {
    const key: ServerKey = { protocol: state.protocol, ip: state.destination, port: state.port };
    const chain = serverKey(key);
    const server = yield* this.#servers.get(chain, () => this.#lookups.server(key));
    if (!server) {
      const steps = (): readonly [{ chain: string; text: string }] => [{ chain, text: 'no virtual server' }];
      return [{ state, isMatch: this.isBound(key.ip), steps }];
    }
    const { scheduler, destinations, packets } = server;
    const shares = sharesOf(server);
    const isPersistent = (server.flags & PERSISTENT) !== 0;
    const entryFor = (destination: Destination): string => `${chain} -> ${destination.key}`;
    const known = isPersistent
      ? shares.find(([destination]) => place.remembers?.(entryFor(destination)) ?? false)
      : undefined;
    const taken = known ? [[known[0], 1] as const] : shares;
    const serverStep = { chain, text: printServer(server), packets };
    if (taken.length === 0) {
      const found = destinations.map(printDestination);
      return [{ state, isMatch: true, verdict: { kind: 'reject' }, steps: () => [{ ...serverStep, found }] }];
    }
    if (taken.length > 1 && !['rr', 'wrr', 'fo'].includes(scheduler))
      note(`${chain}: ${chosenBy(scheduler)}`);
    return taken.map(([destination, share]) => ({
      state: {
        ...state,
        destination: destination.ip,
        port: destination.port,
        virtualServer: { ip: key.ip, port: key.port },
        probability: state.probability * share,
        byAffinity: known !== undefined,
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

/** Of the real servers that take new connections. Where it is not known which, each is as likely as the others. */
function sharesOf({
  scheduler,
  destinations,
}: WalkedServer): readonly (readonly [WalkedDestination, number])[] {
  const open = destinations.filter(({ weight }) => weight > 0);
  const most = open.reduce((weight, each) => Math.max(weight, each.weight), 0);
  const taking = scheduler === 'fo' ? open.filter(({ weight }) => weight === most).slice(0, 1) : open;
  const share = ({ weight }: WalkedDestination): number => (scheduler === 'wrr' ? weight : 1);
  const all = taking.reduce((sum, each) => sum + share(each), 0);
  return taking.map((each) => [each, share(each) / all]);
}

const BY_HASH: Readonly<Record<string, string>> = {
  sh: "the client's address",
  dh: 'the dialled address',
  mh: "the client's address and port",
};

function chosenBy(scheduler: string): string {
  const hashed = BY_HASH[scheduler];
  const how = hashed === undefined ? 'their connections' : `a hash of ${hashed}`;
  return `the scheduler ${scheduler} chooses one of its real servers by ${how}; not evaluated`;
}

function printServer({ scheduler, flags, timeout }: WalkedServer): string {
  const persistence = (flags & PERSISTENT) === 0 ? '' : `, persistent for ${timeout} s`;
  return `virtual server, scheduler ${scheduler}${persistence}`;
}

function printDestination(destination: WalkedDestination): string {
  const { key, weight, activeConnections, inactiveConnections } = destination;
  const connections =
    activeConnections === undefined
      ? ''
      : `, ${activeConnections} active and ${inactiveConnections ?? 0} inactive connections`;
  return `real server ${key}, weight ${weight}${connections}`;
}

/** All of it in memory, as a dump has it. */
interface IpvsSnapshot {
  readonly sets: ReadonlyMap<string, Pick<KernelIpset, 'entries'>>;
  /** By `serverKey`. */
  readonly servers: ReadonlyMap<string, WalkedServer>;
  readonly bound: ReadonlySet<Ip>;
}

export function lookupsIn({ sets, servers, bound }: IpvsSnapshot): IpvsLookups {
  return {
    hasEntry: async (set, entry) => {
      const entries = sets.get(set)?.entries;
      return entries !== undefined && keysFor(entry).some((key) => entries.has(key));
    },
    server: async (key) => servers.get(serverKey(key)),
    isBound: (ip) => bound.has(ip),
  };
}

/** The entry itself; of a host in a set of networks, every network that has it. */
function keysFor(entry: SetEntry): readonly string[] {
  if (entry.type !== 'hash:ip,port,net') return [entryKey(entry)];
  const [host = ''] = entry.net.split('/', 1);
  const bits = familyOf(entry.ip) === 'IPv4' ? 32 : 128;
  return Array.from({ length: bits + 1 }, (_, prefix) => {
    const net: Cidr | undefined = parseCidr(`${host}/${prefix}`);
    return net === undefined ? '' : entryKey({ ...entry, net });
  });
}
