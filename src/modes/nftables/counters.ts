/** How many connections each endpoint got, as the elements of our sets and maps have counted them. */
import { type Family, hostPort } from '../../model/ip.ts';
import { type Protocol, PROTOCOLS } from '../../model/objects.ts';
import type { NetlinkChannel } from '../../netlink/channel.ts';
import { readElements, type SetElement } from '../../netlink/nftables/elements.ts';
import type { ConnectionReading } from '../../telemetry/metrics/connections.ts';
import { forEachSliced, TimeSlice } from '../../time/timeSlice.ts';
import { systemClock } from '../../time/systemClock.ts';
import { connectionsSet, SCOPE_LIST } from './rules/names.ts';
import { NFT_FAMILY, printElement } from './rules/print.ts';
import { type Element, type Ruleset, slices, type TableSet } from './rules/table.ts';
import { elementReader } from './sets.ts';

type Count = Omit<ConnectionReading, 'family' | 'isCountedElsewhere'>;

const CONNECTIONS: ReadonlyMap<string, Protocol> = new Map(
  PROTOCOLS.flatMap((protocol) =>
    SCOPE_LIST.map((scope) => [connectionsSet(scope, protocol), protocol] as const),
  ),
);

const ELEMENTS_PER_STEP = 256;

/** With session affinity, a pool counts only connections of clients without an entry, and another set counts them all. */
export async function readConnections(
  channel: NetlinkChannel,
  family: Family,
  table: string,
  { sets }: Ruleset,
): Promise<readonly ConnectionReading[]> {
  const whole = new Set<string>();
  const result: ConnectionReading[] = [];
  const isPool = ({ name }: TableSet): boolean => !CONNECTIONS.has(name);
  const counting = sets.filter(({ counts }) => counts);
  for (const set of [...counting.filter((each) => !isPool(each)), ...counting.filter(isPool)]) {
    const place = { family: NFT_FAMILY[family], table, set: set.name };
    const read = elementReader(set, family);
    const add = (element: SetElement): void => {
      const count = countOf(set, element, read(element));
      if (!count) return;
      const owner = `${count.servicePort} ${count.protocol}`;
      if (!isPool(set)) whole.add(owner);
      result.push({
        ...count,
        family,
        element: `${table} ${count.element}`,
        isCountedElsewhere: isPool(set) && whole.has(owner),
      });
    };
    // A set that was deleted meanwhile has none.
    const elements = await readElements(channel, place);
    const steps = slices(elements, ELEMENTS_PER_STEP);
    await forEachSliced(steps, (some) => some.forEach(add), new TimeSlice(systemClock));
  }
  return result;
}

function countOf(
  { name }: TableSet,
  { counter }: SetElement,
  element: Element | undefined,
): Count | undefined {
  if (!counter || !element) return undefined;
  const { comment, ...plain } = element;
  const { address: ip, port, protocol = CONNECTIONS.get(name) } = element.key;
  const endpoint = element.endpoint ?? (ip === undefined || port === undefined ? undefined : { ip, port });
  if (comment === undefined || !endpoint || !protocol) return undefined;
  return {
    servicePort: comment,
    protocol,
    endpoint: hostPort(endpoint.ip, endpoint.port),
    element: `${name} ${printElement(plain)}`,
    connections: Number(counter.packets),
  };
}
