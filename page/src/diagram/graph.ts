/** A service port as boxes and ways: sources → frontends → policies → pools or ends → endpoints. No sizes, no places. */
import { fateOf, frontendWords } from '../../../src/explain/serviceWords.ts';
import { countOf, group as grouped } from '../../../src/explain/finding.ts';
import { percent } from '../../../src/explain/words.ts';
import type { EndpointRow, PacketExplanation, ServicePortExplanation } from '../../../src/explain/types.ts';
import type { PoolName, SourceClass } from '../../../src/plan/types.ts';
import { rowsOf, type SeenBranch } from './endpointTree.ts';
import { groupBy } from './groupBy.ts';
import { shareOf, type Weights } from './weights.ts';

type BoxKind = 'source' | 'frontend' | 'policy' | 'pool' | 'end' | 'group' | 'endpoint';

export interface Box {
  readonly key: string;
  readonly kind: BoxKind;
  /** From 0, from left to right. */
  readonly column: number;
  readonly title: string;
  readonly lines: readonly string[];
  /** Which packets come through it: indices of the port's. */
  readonly packets: readonly number[];
  readonly sourceClass?: SourceClass;
  readonly isLeftOut?: boolean;
  /** Of a group: whether its members are shown. */
  readonly isOpen?: boolean;
  readonly depth?: number;
  /** Of a group or an endpoint: those that it stands for. */
  readonly rows?: readonly EndpointRow[];
  readonly shares?: readonly Share[];
  /** Its title is no address. */
  readonly isPlain?: boolean;
}

/** Of all traffic; where nothing is counted, of a pool's. */
export interface Share {
  readonly pool?: PoolName;
  /** `33 %` */
  readonly text: string;
}

type Masquerading = 'none' | 'some' | 'all';

/** One packet's way, as far as a pool or an end. */
export interface DrawnWay {
  readonly packet: number;
  readonly sourceClass: SourceClass;
  /** Keys of boxes, one in each column. */
  readonly stops: readonly string[];
  readonly masquerading: Masquerading;
  readonly isStopped: boolean;
  /** The kernel does something else. */
  readonly isWrong: boolean;
}

/** From a pool to an endpoint or a group of them. */
export interface Stream {
  readonly pool: PoolName;
  readonly from: string;
  readonly to: string;
  /** Of the pool's traffic, from 0 to 1. */
  readonly share: number;
}

export interface Graph {
  readonly boxes: readonly Box[];
  readonly ways: readonly DrawnWay[];
  readonly streams: readonly Stream[];
}

export const COLUMNS = ['Sources', 'Frontends', 'Policy', 'Pools', 'Endpoints'] as const;
const POOLS: readonly PoolName[] = ['cluster', 'local'];

export function graphOf(port: ServicePortExplanation, seen: readonly SeenBranch[], weights: Weights): Graph {
  const ways = port.packets.map((packet, index) => wayOf(packet, index, port.packets));
  const boxes = [
    ...sourceBoxes(port.packets, ways),
    ...frontendBoxes(port, ways),
    ...policyBoxes(port.packets, ways),
    ...poolBoxes(port, ways),
    ...endBoxes(port.packets, ways),
    ...seen.map((each) => endpointBox(each, port.packets, weights)),
  ];
  return { boxes, ways, streams: streamsOf(seen, ways, weights) };
}

function wayOf(packet: PacketExplanation, index: number, all: readonly PacketExplanation[]): DrawnWay {
  const { verdict, source, kernel, pool } = packet;
  const isStopped = verdict !== 'forwarded' || pool === undefined;
  return {
    packet: index,
    sourceClass: source.class,
    stops: [
      sourceKey(packet, all),
      `frontend ${frontendWords(packet)}`,
      policyKey(packet, all),
      isStopped ? `end ${fateOf(packet)}` : `pool ${pool}`,
    ],
    masquerading: masqueradingOf(packet),
    isStopped,
    isWrong: kernel?.asPlanned === false,
  };
}

function masqueradingOf({ endpoints }: PacketExplanation): Masquerading {
  const count = endpoints.filter(({ masquerade }) => masquerade).length;
  return count === 0 ? 'none' : count === endpoints.length ? 'all' : 'some';
}

function sameFrontend(packet: PacketExplanation, all: readonly PacketExplanation[]) {
  const words = frontendWords(packet);
  return all.filter((other) => frontendWords(other) === words);
}

/** Where source ranges count, a class has a second packet, from within them. */
function sourceKey(packet: PacketExplanation, all: readonly PacketExplanation[]): string {
  const same = sameFrontend(packet, all).filter(({ source }) => source.class === packet.source.class);
  return `source ${packet.source.class} ${same.indexOf(packet)}`;
}

function sourceBoxes(packets: readonly PacketExplanation[], ways: readonly DrawnWay[]): readonly Box[] {
  return keysAt(ways, 0).map(([key, some]): Box => {
    const addresses = new Set(some.map(({ packet }) => packets[packet]?.packet.source ?? ''));
    const [first] = some;
    return {
      ...common(key, 'source', 0, some),
      title: first?.sourceClass ?? '',
      lines: addresses.size === 1 ? [...addresses] : [`${addresses.size} addresses`],
      ...(first && { sourceClass: first.sourceClass }),
    };
  });
}

function frontendBoxes(
  { packets, moreFrontends = 0 }: ServicePortExplanation,
  ways: readonly DrawnWay[],
): readonly Box[] {
  const boxes = keysAt(ways, 1).map(([key, some]): Box => {
    const words = key.slice('frontend '.length);
    const at = words.lastIndexOf(' ');
    return { ...common(key, 'frontend', 1, some), title: words.slice(at + 1), lines: [words.slice(0, at)] };
  });
  if (moreFrontends === 0) return boxes;
  const more: Box = {
    key: 'frontend more',
    kind: 'frontend',
    column: 1,
    title: `and ${countOf(moreFrontends, 'more frontend')}`,
    lines: ['with the same routes'],
    packets: packets.map((_, index) => index),
    isPlain: true,
  };
  return [...boxes, more];
}

/** What a frontend's policy is, whether it has source ranges, and affinity. */
function policyKey(packet: PacketExplanation, all: readonly PacketExplanation[]): string {
  const same = sameFrontend(packet, all);
  const policy = same.find(({ frontend }) => frontend)?.frontend?.policy ?? 'no policy';
  const hasRanges = same.some(({ findings }) => findings.some(({ code }) => code === 'source-not-allowed'));
  return `policy ${policy}${hasRanges ? ' with ranges' : ''}`;
}

function policyBoxes(packets: readonly PacketExplanation[], ways: readonly DrawnWay[]): readonly Box[] {
  return keysAt(ways, 2).map(([key, some]): Box => {
    const hasRanges = key.endsWith(' with ranges');
    const policy = key.slice('policy '.length, hasRanges ? -' with ranges'.length : undefined);
    const [name, value] = policy.split(': ');
    const affinity = some.map(({ packet }) => packets[packet]?.affinitySeconds).find((each) => each);
    return {
      ...common(key, 'policy', 2, some),
      title: value ?? policy,
      lines: [
        ...(value === undefined || name === undefined ? [] : [name]),
        ...(hasRanges ? ['loadBalancerSourceRanges'] : []),
        ...(affinity === undefined ? [] : [`affinity ${grouped(affinity)} s`]),
      ],
    };
  });
}

function poolBoxes({ endpoints }: ServicePortExplanation, ways: readonly DrawnWay[]): readonly Box[] {
  return POOLS.flatMap((pool): readonly Box[] => {
    const key = `pool ${pool}`;
    const some = ways.filter(({ stops }) => stops[3] === key);
    if (some.length === 0) return [];
    const members = endpoints.filter(({ pools }) => pools.includes(pool));
    return [{ ...common(key, 'pool', 3, some), title: pool, lines: [countOf(members.length, 'endpoint')] }];
  });
}

function endBoxes(packets: readonly PacketExplanation[], ways: readonly DrawnWay[]): readonly Box[] {
  const stopped = ways.filter(({ isStopped }) => isStopped);
  return keysAt(stopped, 3).map(([key, some]): Box => {
    const first = packets[some[0]?.packet ?? -1];
    const [title = '', ...why] = key.slice('end '.length).split(': ');
    return {
      ...common(key, 'end', 3, some),
      title,
      lines: why.length > 0 ? [why.join(': ')] : first ? [first.reason] : [],
    };
  });
}

function endpointBox(
  { branch, depth, isOpen }: SeenBranch,
  packets: readonly PacketExplanation[],
  weights: Weights,
): Box {
  const rows = rowsOf(branch);
  const used = rows.filter(({ pools }) => pools.length > 0);
  const through = packets.flatMap(({ pool }, index) =>
    pool !== undefined && used.some(({ pools }) => pools.includes(pool)) ? [index] : [],
  );
  const head = {
    key: branch.key,
    column: 4,
    packets: through,
    depth,
    rows,
    isLeftOut: used.length === 0,
    ...(used.length > 0 && { shares: sharesOf(used, weights) }),
  };
  if (branch.kind === 'endpoint') {
    const { row } = branch;
    return {
      ...head,
      kind: 'endpoint',
      title: row.address,
      lines: [row.leftOut?.text ?? placeLine(row, depth)],
    };
  }
  return {
    ...head,
    kind: 'group',
    isOpen,
    title: branch.kind === 'more' ? `and ${grouped(rows.length)} more` : branch.name,
    lines: [groupLine(rows)],
  };
}

/** The zone, where no group says it. */
function placeLine({ pod, node, isLocal, zone }: EndpointRow, depth: number): string {
  return [pod, isLocal ? 'this node' : node, depth === 0 ? zone : undefined]
    .filter((each) => each !== undefined)
    .join(', ');
}

/** `100 endpoints, 98 ready` */
function groupLine(rows: readonly EndpointRow[]): string {
  const ready = rows.filter((row) => row.ready).length;
  const count = countOf(rows.length, 'endpoint');
  return ready === rows.length ? `${count}, all ready` : `${count}, ${ready} ready`;
}

function sharesOf(used: readonly EndpointRow[], weights: Weights): readonly Share[] {
  if (weights.isCounted) return [{ text: percent(weights.totalShare(used)) }];
  const pools = POOLS.filter((pool) => used.some((row) => row.pools.includes(pool)));
  const shares = pools.map((pool) => ({ pool, text: percent(shareOf(weights, used, pool)) }));
  return new Set(shares.map(({ text }) => text)).size > 1
    ? shares
    : shares.slice(0, 1).map(({ text }) => ({ text }));
}

/** An open group's traffic is drawn to its members. */
function streamsOf(
  seen: readonly SeenBranch[],
  ways: readonly DrawnWay[],
  weights: Weights,
): readonly Stream[] {
  return POOLS.filter((pool) => ways.some(({ stops }) => stops[3] === `pool ${pool}`)).flatMap((pool) =>
    seen.flatMap(({ branch, isOpen }): readonly Stream[] => {
      const share = isOpen ? 0 : shareOf(weights, rowsOf(branch), pool);
      const isMember = !isOpen && rowsOf(branch).some(({ pools }) => pools.includes(pool));
      return isMember ? [{ pool, from: `pool ${pool}`, to: branch.key, share }] : [];
    }),
  );
}

function common(key: string, kind: BoxKind, column: number, ways: readonly DrawnWay[]) {
  return { key, kind, column, packets: ways.map(({ packet }) => packet) };
}

/** In the order in which they come first. */
function keysAt(
  ways: readonly DrawnWay[],
  column: number,
): readonly (readonly [string, readonly DrawnWay[]])[] {
  return [...groupBy(ways, ({ stops }) => stops[column] ?? '')];
}
