/** What a statement makes of a packet where it is now: it goes on in the rule, in so many ways, or the rule ends. */
import { cidrContains, type Ip, isLoopback } from '../../../model/ip.ts';
import type { Protocol } from '../../../model/objects.ts';
import type { Element, ElementKey, Key, KeyPart, Statement } from './rule.ts';
import type { AffinityEntry } from './transaction.ts';
import type { WalkTable } from './walkElements.ts';

/** The first packet of a connection, somewhere on its way. */
export interface InFlight {
  readonly source: Ip;
  readonly destination: Ip;
  readonly protocol: Protocol;
  readonly port: number;
  /** What the client dialled. */
  readonly original: { readonly source: Ip; readonly destination: Ip; readonly port: number };
  /** Empty where a packet has no such interface: in the hooks output and postrouting. */
  readonly inInterface: string;
  readonly mark: number;
  readonly isRewritten: boolean;
}

export interface World {
  readonly table: WalkTable;
  readonly isLocal: (ip: Ip) => boolean;
  /** Whom a map of remembered clients holds. */
  readonly remembered: (map: string) => readonly AffinityEntry[];
  readonly note: (text: string) => void;
}

/** A client that this packet makes the table remember. */
export interface NewlyRemembered extends AffinityEntry {
  readonly map: string;
  readonly seconds: number;
}

export type Verdict =
  | { readonly kind: 'drop' | 'reject' | 'return' | 'masquerade' }
  | { readonly kind: 'jump' | 'goto'; readonly chain: string }
  | { readonly kind: 'dnat'; readonly ip: Ip; readonly port: number };

/** One of the ways in which a statement may end, by how likely it is. */
type Branch =
  /** The rule does not match. */
  | { readonly kind: 'ends'; readonly chance: number; readonly lookups: number }
  | {
      readonly kind: 'goesOn';
      readonly chance: number;
      readonly lookups: number;
      readonly mark?: number;
      readonly found?: Element;
      readonly remembers?: NewlyRemembered;
      /** Leaves the rule by this. */
      readonly verdict?: Verdict;
    };

const ENDS: Branch = { kind: 'ends', chance: 1, lookups: 0 };
const GOES_ON: Extract<Branch, { kind: 'goesOn' }> = { kind: 'goesOn', chance: 1, lookups: 0 };

export function localAddresses(addresses: readonly Ip[]): (ip: Ip) => boolean {
  const known = new Set<string>(addresses);
  return (ip) => isLoopback(ip) || known.has(ip);
}

export function branchesOf(statement: Statement, packet: InFlight, world: World): readonly Branch[] {
  switch (statement.kind) {
    case 'inSet':
      return lookUp(statement.key, statement.set, packet, world, (found) => {
        const isMatch = (found !== undefined) !== statement.not;
        return isMatch ? { ...(found && { found }) } : undefined;
      });
    case 'dnatByMap':
      return lookUp(statement.key, statement.map, packet, world, (found) => {
        const endpoint = found?.endpoint;
        return found && endpoint && { found, verdict: { kind: 'dnat', ...endpoint } };
      });
    case 'verdictByMap':
      return lookUp(statement.key, statement.map, packet, world, (found) => {
        const chain = found?.chain;
        return found && chain !== undefined ? { found, verdict: { kind: 'jump', chain } } : undefined;
      });
    case 'learn':
      return [{ ...GOES_ON, lookups: 1, remembers: rememberedBy(statement, packet) }];
    case 'changeMark': {
      const { operation, mark } = statement;
      return [{ ...GOES_ON, mark: (operation === 'flip' ? packet.mark ^ mark : packet.mark | mark) >>> 0 }];
    }
    case 'jump':
    case 'goto':
      return [{ ...GOES_ON, verdict: { kind: statement.kind, chain: statement.chain } }];
    case 'masquerade':
    case 'reject':
    case 'drop':
    case 'return':
      return [{ ...GOES_ON, verdict: { kind: statement.kind } }];
    default:
      return [matches(statement, packet, world) ? GOES_ON : ENDS];
  }
}

type Match = Extract<
  Statement,
  { kind: 'addressType' | 'addressIn' | 'inInterface' | 'protocol' | 'hasPort' | 'isRewritten' | 'hasMark' }
>;

function matches(statement: Match, packet: InFlight, world: World): boolean {
  switch (statement.kind) {
    case 'addressType':
      return world.isLocal(packet[statement.side]) !== statement.not;
    case 'addressIn':
      return cidrContains(statement.cidr, packet[statement.side]) !== statement.not;
    case 'inInterface':
      return isInterface(statement.name, packet.inInterface) !== statement.not;
    case 'protocol':
      return statement.protocol === packet.protocol;
    case 'hasPort':
      return packet.port !== 0;
    case 'isRewritten':
      return packet.isRewritten;
    case 'hasMark':
      return ((packet.mark & statement.mark) !== 0) !== statement.not;
  }
}

function isInterface(pattern: string, name: string): boolean {
  return pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : pattern === name;
}

type Consequence = Omit<Extract<Branch, { kind: 'goesOn' }>, 'kind' | 'chance' | 'lookups'>;

/**
 * A number that is drawn splits the packet. The draws that find nothing are one way again: the numbers are forgotten
 * when the rule ends.
 */
function lookUp(
  key: Key,
  set: string,
  packet: InFlight,
  world: World,
  judge: (found: Element | undefined) => Consequence | undefined,
): readonly Branch[] {
  const shape = world.table.sets.get(set);
  if (!shape) {
    world.note(`the table has no set ${set}`);
    return [ENDS];
  }
  const of = drawsOf(key);
  const branches: Branch[] = [];
  let missing = 0;
  for (let index = 0; index < of; index++) {
    const found =
      shape.dynamicSize === undefined
        ? world.table.find(set, keyOf(key, packet, index))
        : findRemembered(set, keyOf(key, packet, index), world);
    const consequence = judge(found);
    if (!consequence) missing++;
    else branches.push({ kind: 'goesOn', chance: 1 / of, lookups: 1, ...consequence });
  }
  if (missing > 0) branches.push({ kind: 'ends', chance: missing / of, lookups: 1 });
  return branches;
}

function drawsOf(key: Key): number {
  for (const part of key) if (typeof part === 'object') return part.drawnOf;
  return 1;
}

function findRemembered(map: string, { address, secondAddress, port }: ElementKey, world: World) {
  const known = world
    .remembered(map)
    .find((each) => each.client === address && each.destination === secondAddress && each.port === port);
  if (!known) return undefined;
  const { client, destination, endpoint } = known;
  const key: ElementKey = { address: client, secondAddress: destination, port: known.port };
  return { set: map, key, endpoint } satisfies Element;
}

function keyOf(key: Key, packet: InFlight, index: number): ElementKey {
  const result: {
    address?: Ip;
    secondAddress?: Ip;
    protocol?: Protocol;
    port?: number;
    secondPort?: number;
    index?: number;
  } = {};
  const addAddress = (ip: Ip): void => {
    if (result.address === undefined) result.address = ip;
    else result.secondAddress = ip;
  };
  const addPort = (port: number): void => {
    if (result.port === undefined) result.port = port;
    else result.secondPort = port;
  };
  for (const part of key) {
    const value = valueOf(part, packet);
    if (typeof part === 'object') result.index = index;
    else if (typeof value === 'number') addPort(value);
    else if (part === 'protocol') result.protocol = packet.protocol;
    else if (value !== undefined) addAddress(value);
  }
  return result;
}

function valueOf(part: KeyPart, packet: InFlight): Ip | number | undefined {
  switch (part) {
    case 'source':
    case 'destination':
    case 'port':
      return packet[part];
    case 'originalSource':
      return packet.original.source;
    case 'originalDestination':
      return packet.original.destination;
    case 'originalPort':
      return packet.original.port;
    default:
      return undefined;
  }
}

function rememberedBy(
  { map, seconds, key }: Extract<Statement, { kind: 'learn' }>,
  packet: InFlight,
): NewlyRemembered {
  const { address, secondAddress, port } = keyOf(key, packet, 0);
  if (address === undefined || secondAddress === undefined || port === undefined)
    throw new Error(`${map} is not for clients and what they dialled`);
  const endpoint = { ip: packet.destination, port: packet.port };
  return { map, seconds, client: address, destination: secondAddress, port, endpoint };
}
