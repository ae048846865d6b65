/**
 * Sends packets through the IPVS mode: its rules, the sets that they match, and the virtual servers between the hooks.
 *
 * What the kernel has is asked for one thing at a time, so that it may be in memory or be read as the walk needs it.
 */
import {
  type Cidr,
  type Family,
  familyOf,
  hostCidr,
  type Ip,
  isLoopback,
  parseCidr,
} from '../../../model/ip.ts';
import type { Host } from '../../../plan/decide.ts';
import type { Balanced, WalkContext, WalkSteps, Way } from '../../walk.ts';
import {
  type IptablesPacket,
  type IptablesWalkOptions,
  type SetMatch,
  type WalkedTables,
  walkTables,
} from '../../iptables/rules/walk.ts';
import { ruleProtocol } from '../../iptables/rules/names.ts';
import type { ServerAttributes } from './client.ts';
import { type Destination, PERSISTENT, type ServerKey, serverKey } from './compile.ts';
import { entryKey, type SetEntry, type SetType } from './sets.ts';

/** A virtual server as far as a packet is concerned. */
export interface WalkedServer extends Pick<ServerAttributes, 'scheduler' | 'flags' | 'timeout'> {
  readonly destinations: readonly WalkedDestination[];
  /** That it has counted since it was made; unset where nothing counts. */
  readonly packets?: number;
  readonly connections?: number;
}

export interface WalkedDestination extends Destination {
  readonly weight: number;
  readonly activeConnections?: number;
  readonly inactiveConnections?: number;
  readonly packets?: number;
  readonly connections?: number;
}

/** What the kernel has. */
export interface WalkedIpvs {
  readonly tables: WalkedTables;
  /** `undefined`: there is no such set, or one of a type that we do not have. */
  typeOf(set: string): SetType | undefined;
  /** Whether a set has an entry, or a network that has it. */
  has(set: string, entry: SetEntry): boolean;
  server(key: ServerKey): WalkedServer | undefined;
  /** Whether another program has a virtual server for a firewall mark. */
  hasMark(mark: number): boolean;
  /** Whether the device kube-ipvs0 has it. */
  isBound(ip: Ip): boolean;
}

/**
 * What the node sends from its own address it sends without choosing one. To an address of kube-ipvs0 it then comes from
 * that address itself: the kernel prefers it.
 *
 * An outcome's `learned` are persistence entries: `TCP 10.96.0.1:80 -> 10.244.0.1:8080`.
 */
export function walkIpvs(
  kernel: WalkedIpvs,
  packet: IptablesPacket,
  host: Host,
  options: Pick<IptablesWalkOptions, 'record' | 'affinity'> = {},
): WalkSteps<string> {
  const { affinity = () => false, ...more } = options;
  const { source, destination, inInterface } = packet;
  const isUnbound =
    inInterface === undefined && source === nodeIpOf(host, source) && kernel.isBound(destination);
  return walkTables(kernel.tables, isUnbound ? { ...packet, source: destination } : packet, host, {
    ...more,
    isBound: (ip) => kernel.isBound(ip),
    inSet: (match, way) => {
      const entry = entryOf(kernel, match, way);
      return entry && kernel.has(match.name, entry);
    },
    foundInSet: (match, way) => {
      const entry = entryOf(kernel, match, way);
      return entry && `${match.name} { ${entryKey(entry)} }`;
    },
    isVirtual: ({ protocol, address, port }, { virtualServer, protocol: its }) =>
      protocol === ruleProtocol(its) && virtualServer?.ip === address && virtualServer.port === port,
    balance: (way, context) => balance(kernel, way, context, affinity),
  });
}

function nodeIpOf({ nodeIp, addresses }: Host, source: Ip): Ip | undefined {
  return nodeIp ?? addresses.find((ip) => familyOf(ip) === familyOf(source) && !isLoopback(ip));
}

/** What the packet is looked up by. `undefined`: by something that a walk does not know, such as the source port. */
function entryOf(kernel: WalkedIpvs, { name, sides }: SetMatch, way: Way<string>): SetEntry | undefined {
  const type = kernel.typeOf(name);
  if (!type) return undefined;
  const [first = 'dst', second, third] = sides;
  const ipOf = (side: 'src' | 'dst'): Ip => (side === 'src' ? way.source : way.destination);
  if (type === 'hash:ip') return { type, ip: ipOf(first) };
  if (type === 'bitmap:port') return first === 'dst' ? { type, port: way.port } : undefined;
  if (second !== 'dst') return undefined;
  const { protocol, port } = way;
  const key = { ip: ipOf(first), protocol, port };
  if (type === 'hash:ip,port') return { type, ...key };
  if (!third) return undefined;
  if (type === 'hash:ip,port,ip') return { type, ...key, secondIp: ipOf(third) };
  return { type, ...key, net: hostCidr(ipOf(third)) };
}

function balance(
  kernel: WalkedIpvs,
  way: Way<string>,
  { note }: WalkContext,
  affinity: (entry: string) => boolean,
): readonly Balanced<string>[] {
  const key: ServerKey = { protocol: way.protocol, ip: way.destination, port: way.port };
  const name = serverKey(key);
  if (way.mark !== 0 && kernel.hasMark(way.mark))
    note(
      `not evaluated: a virtual server for the firewall mark 0x${way.mark.toString(16)}, found before ${name}`,
    );
  const server = kernel.server(key);
  if (!server) {
    if (!kernel.isBound(key.ip)) return [];
    return [{ verdict: 'pass', way, steps: () => [{ chain: name, text: 'no virtual server', found: [] }] }];
  }
  const shares = sharesOf(server);
  const isPersistent = (server.flags & PERSISTENT) !== 0;
  const entryFor = (destination: Destination): string => `${name} -> ${destination.key}`;
  const known = isPersistent ? shares.find(([destination]) => affinity(entryFor(destination))) : undefined;
  const taken = known ? [[known[0], 1] as const] : shares;
  const serverStep = { chain: name, text: printServer(server), found: [], packets: server.packets };
  if (taken.length === 0) {
    const found = server.destinations.map(printDestination);
    return [{ verdict: 'reject', way, steps: () => [{ ...serverStep, found }] }];
  }
  if (taken.length > 1 && !isEvenHanded(server.scheduler)) note(`${name}: ${chosenBy(server.scheduler)}`);
  return taken.map(([destination, share]) => ({
    verdict: 'forward',
    way: {
      ...way,
      destination: destination.ip,
      port: destination.port,
      probability: way.probability * share,
      byAffinity: known !== undefined,
      learned: isPersistent ? [...way.learned, entryFor(destination)] : way.learned,
    },
    steps: () => [
      serverStep,
      { chain: name, text: printDestination(destination), found: [], packets: destination.packets },
    ],
  }));
}

/** Of the real servers that take new connections. Where it is not known which, each is as likely as the others. */
function sharesOf({
  scheduler,
  destinations,
}: WalkedServer): readonly (readonly [WalkedDestination, number])[] {
  const open = destinations.filter(({ weight }) => weight > 0);
  const most = open.reduce((weight, each) => Math.max(weight, each.weight), 0);
  const taking = scheduler === 'fo' ? open.filter(({ weight }) => weight === most).slice(0, 1) : open;
  const sharing = scheduler === 'wrr' ? taking : taking.map((each) => ({ ...each, weight: 1 }));
  const all = sharing.reduce((sum, { weight }) => sum + weight, 0);
  return taking.map((each, index) => [each, (sharing[index]?.weight ?? 0) / all]);
}

/** Whether the shares of its real servers are known without its state. */
function isEvenHanded(scheduler: string): boolean {
  return ['rr', 'wrr', 'fo'].includes(scheduler);
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

/** All of it in memory: of a dump, or of what was compiled. */
export interface IpvsSnapshot {
  readonly tables: WalkedTables;
  readonly sets: ReadonlyMap<
    string,
    { readonly type: string; readonly entries: ReadonlyMap<string, SetEntry> }
  >;
  /** By `serverKey`. */
  readonly servers: ReadonlyMap<string, WalkedServer>;
  readonly bound: ReadonlySet<Ip>;
}

export function walkedSnapshot({ tables, sets, servers, bound }: IpvsSnapshot): WalkedIpvs {
  return {
    tables,
    typeOf: (set) => typeNamed(sets.get(set)?.type),
    has: (set, entry) => {
      const entries = sets.get(set)?.entries;
      return entries !== undefined && keysFor(entry).some((key) => entries.has(key));
    },
    server: (key) => servers.get(serverKey(key)),
    hasMark: () => false,
    isBound: (ip) => bound.has(ip),
  };
}

const TYPES: ReadonlySet<string> = new Set<SetType>([
  'hash:ip',
  'hash:ip,port',
  'hash:ip,port,ip',
  'hash:ip,port,net',
  'bitmap:port',
]);

export function typeNamed(text: string | undefined): SetType | undefined {
  return text !== undefined && TYPES.has(text) ? (text as SetType) : undefined;
}

const BITS: Readonly<Record<Family, number>> = { IPv4: 32, IPv6: 128 };

/** The entry itself; of a host in a set of networks, every network that has it. */
function keysFor(entry: SetEntry): readonly string[] {
  if (entry.type !== 'hash:ip,port,net') return [entryKey(entry)];
  const [host = ''] = entry.net.split('/', 1);
  return Array.from({ length: BITS[familyOf(entry.ip)] + 1 }, (_, prefix) => {
    const net: Cidr | undefined = parseCidr(`${host}/${prefix}`);
    return net === undefined ? '' : entryKey({ ...entry, net });
  });
}
