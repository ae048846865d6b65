/** How many connections each endpoint got, as the elements of our sets and maps have counted them. */
import { constants } from 'node:os';
import { connectionsSet, SCOPE_LIST, TABLE } from './rules/names.ts';
import { printElement } from './rules/print.ts';
import type { Element, Ruleset, TableSet } from './rules/rule.ts';
import { JunctionError } from '../../errors.ts';
import { type Family, hostPort } from '../../model/ip.ts';
import { type Protocol, PROTOCOLS } from '../../model/objects.ts';
import { TimeSlice, runSliced } from '../../time/timeSlice.ts';
import { systemClock } from '../../time/systemClock.ts';
import type { NetlinkChannel } from '../../netlink/channel.ts';
import { type SetElement, readElements } from '../../netlink/nftables/elements.ts';
import { endpointOf, keyOf } from './sets.ts';

interface ConnectionCount {
  /** `namespace/name:port` */
  readonly servicePort: string;
  readonly protocol: Protocol;
  /** `10.0.0.1:80` */
  readonly endpoint: string;
  /** What counted them; written again, it begins from 0. An endpoint has one for each frontend, or more. */
  readonly element: string;
  readonly connections: number;
  /** Other elements have counted these too. */
  readonly isCountedElsewhere: boolean;
}

type Count = Omit<ConnectionCount, 'isCountedElsewhere'>;

const CONNECTIONS: ReadonlyMap<string, Protocol> = new Map(
  PROTOCOLS.flatMap((protocol) =>
    SCOPE_LIST.map((scope) => [connectionsSet(scope, protocol), protocol] as const),
  ),
);

/** With affinity, a pool counts only connections without an affinity entry, and another set counts them all. */
export async function readConnections(
  channel: NetlinkChannel,
  { sets }: Ruleset,
  family: Family,
): Promise<readonly ConnectionCount[]> {
  const whole = new Set<string>();
  const result: ConnectionCount[] = [];
  const read = async (set: TableSet): Promise<void> => {
    for (const count of await readSet(channel, set, family)) {
      const isPool = !CONNECTIONS.has(set.name);
      if (!isPool) whole.add(ownerOf(count));
      result.push({ ...count, isCountedElsewhere: isPool && whole.has(ownerOf(count)) });
    }
  };
  const counting = sets.filter(({ counts }) => counts);
  for (const set of counting.filter(({ name }) => CONNECTIONS.has(name))) await read(set);
  for (const set of counting.filter(({ name }) => !CONNECTIONS.has(name))) await read(set);
  return result;
}

function ownerOf({ servicePort, protocol }: Count): string {
  return `${servicePort} ${protocol}`;
}

async function readSet(channel: NetlinkChannel, set: TableSet, family: Family): Promise<readonly Count[]> {
  const place = { family: family === 'IPv4' ? 'ip' : 'ip6', table: TABLE, set: set.name } as const;
  const [reply] = await readElements(channel, [place]);
  if (reply?.kind === 'refused' && reply.errno === constants.errno.ENOENT) return []; // it went meanwhile
  if (reply?.kind !== 'answered')
    throw new JunctionError('NETLINK_FAILED', `netlink: cannot list the elements of ${set.name}`);
  return runSliced(counting(set, reply.elements, family), new TimeSlice(systemClock));
}

function* counting(
  set: TableSet,
  elements: readonly SetElement[],
  family: Family,
): Generator<void, readonly Count[]> {
  const counts: Count[] = [];
  for (const [index, element] of elements.entries()) {
    const count = countOf(set, element, family);
    if (count) counts.push(count);
    if (index % ELEMENTS_AT_ONCE === 0) yield;
  }
  return counts;
}

const ELEMENTS_AT_ONCE = 256;

function countOf(set: TableSet, element: SetElement, family: Family): Count | undefined {
  const { counter, comment, data } = element;
  const key = keyOf(set, element, family);
  if (!key) return undefined;
  const endpoint = data ? endpointOf(data, family) : endpointIn(key);
  const protocol = key.protocol ?? CONNECTIONS.get(set.name);
  if (!counter || comment === undefined || !endpoint || !protocol) return undefined;
  return {
    servicePort: comment,
    protocol,
    endpoint: hostPort(endpoint.ip, endpoint.port),
    element: `${set.name} ${printElement({ set: set.name, key, ...(data && { endpoint }) })}`,
    connections: Number(counter.packets),
  };
}

function endpointIn({ address, port }: Element['key']): Element['endpoint'] {
  return address === undefined || port === undefined ? undefined : { ip: address, port };
}
