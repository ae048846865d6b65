/** The hooks of netfilter as a drawing: where each stands, and which lines a packet takes. */
import type { PacketExplanation } from '../../../src/explain/types.ts';
import type { Station, StationPoint } from './packetStations.ts';

type PlaceName = StationPoint | 'in' | 'out' | 'here' | 'routing';

interface MapPlace {
  readonly name: PlaceName;
  readonly label: string;
  readonly x: number;
  readonly y: number;
  readonly width: number;
  /** A hook, or where packets come from and go to. */
  readonly isHook: boolean;
}

const WIDTH = 892;
const UPPER = 62;
const LOWER = 142;
const LOWEST = 208;
export const PLACE_HEIGHT = 36;

const PLACES: readonly MapPlace[] = [
  { name: 'in', label: 'network', x: 56, y: UPPER, width: 88, isHook: false },
  { name: 'prerouting', label: 'prerouting', x: 206, y: UPPER, width: 116, isHook: true },
  { name: 'routing', label: 'routing', x: 352, y: UPPER, width: 84, isHook: false },
  { name: 'forward', label: 'forward', x: 506, y: UPPER, width: 96, isHook: true },
  { name: 'postrouting', label: 'postrouting', x: 680, y: UPPER, width: 120, isHook: true },
  { name: 'out', label: 'network', x: 836, y: UPPER, width: 88, isHook: false },
  { name: 'input', label: 'input', x: 352, y: LOWER, width: 84, isHook: true },
  { name: 'here', label: 'this node', x: 506, y: LOWER, width: 96, isHook: false },
  { name: 'output', label: 'output', x: 680, y: LOWER, width: 96, isHook: true },
];

const IPVS: MapPlace = { name: 'ipvs', label: 'IPVS', x: 506, y: LOWER, width: 96, isHook: true };

type Line = readonly [PlaceName, PlaceName];
const LINES: readonly Line[] = [
  ['in', 'prerouting'],
  ['prerouting', 'routing'],
  ['routing', 'forward'],
  ['routing', 'input'],
  ['forward', 'postrouting'],
  ['postrouting', 'out'],
  ['input', 'here'],
  ['here', 'output'],
  ['output', 'postrouting'],
];
const IPVS_LINES: readonly Line[] = [
  ['input', 'ipvs'],
  ['ipvs', 'output'],
];

interface MapLine {
  readonly key: string;
  /** Of an SVG path. */
  readonly path: string;
  readonly isTaken: boolean;
}

export interface HookDrawing {
  /** Of an SVG. */
  readonly viewBox: string;
  readonly places: readonly (MapPlace & { readonly isTaken: boolean; readonly station?: Station })[];
  /** Those that are taken last, so that they lie above the others. */
  readonly lines: readonly MapLine[];
  /** `network → prerouting → forward → postrouting → network` */
  readonly text: string;
}

export function mapOf(
  { packet, mode, verdict }: PacketExplanation,
  stations: readonly Station[],
): HookDrawing {
  const way = wayThrough(packet.inInterface === undefined, verdict, stations);
  const hasIpvs = mode === 'ipvs';
  const places = hasIpvs
    ? [...PLACES.map((place) => (place.name === 'here' ? { ...place, y: LOWEST } : place)), IPVS]
    : PLACES;
  const taken = new Set(way.slice(1).map((name, index) => `${way[index]} ${name}`));
  const isLoop = taken.has('postrouting prerouting');
  const lines = [
    ...LINES,
    ...(hasIpvs ? IPVS_LINES : []),
    ...(isLoop ? [['postrouting', 'prerouting'] as const] : []),
    ...(taken.has('output ipvs') ? [['output', 'ipvs'] as const] : []),
    ...(taken.has('ipvs here') ? [['ipvs', 'here'] as const] : []),
  ].map(([from, to]) => ({
    key: `${from} ${to}`,
    path: pathBetween(places, from, to),
    isTaken: taken.has(`${from} ${to}`),
  }));
  const byPoint = new Map(stations.map((station) => [station.point as string, station]));
  const onWay = new Set<string>(way);
  const top = isLoop ? 0 : UPPER - 24;
  return {
    viewBox: `0 ${top} ${WIDTH} ${(hasIpvs ? LOWEST : LOWER) + 24 - top}`,
    places: places.map((place) => {
      const station = byPoint.get(place.name);
      return { ...place, isTaken: onWay.has(place.name), ...(station && { station }) };
    }),
    lines: lines.toSorted((a, b) => Number(a.isTaken) - Number(b.isTaken)),
    text: way.map((name) => places.find((place) => place.name === name)?.label ?? name).join(' → '),
  };
}

/** Place by place. What is stopped ends where it is stopped. */
function wayThrough(
  isOwn: boolean,
  verdict: PacketExplanation['verdict'],
  stations: readonly Station[],
): readonly PlaceName[] {
  const way: PlaceName[] = [isOwn ? 'here' : 'in'];
  for (const { point } of stations) {
    const before = way.at(-1);
    if (before === point) continue;
    if (before === 'prerouting') way.push('routing');
    way.push(point);
  }
  const last = stations.at(-1);
  if (!last || last.isEnd) return way;
  if (last.point === 'postrouting') return [...way, 'out'];
  if (last.point === 'input' || last.point === 'ipvs') return [...way, 'here'];
  return last.point === 'prerouting' && verdict === 'passed' ? [...way, 'routing'] : way;
}

function pathBetween(places: readonly MapPlace[], from: PlaceName, to: PlaceName): string {
  const a = places.find(({ name }) => name === from);
  const b = places.find(({ name }) => name === to);
  if (!a || !b) return '';
  const half = PLACE_HEIGHT / 2;
  // Over the top: by the loopback interface.
  if (from === 'postrouting' && to === 'prerouting')
    return `M${a.x} ${a.y - half} C${a.x} 4 ${b.x} 4 ${b.x} ${b.y - half - GAP}`;
  if (from === 'output' && to === 'ipvs')
    return `M${a.x - a.width / 2} ${a.y + 8} L${b.x + b.width / 2 + GAP} ${b.y + 8}`;
  if (a.x === b.x) {
    const down = b.y > a.y ? 1 : -1;
    return `M${a.x} ${a.y + down * half} L${b.x} ${b.y - down * (half + GAP)}`;
  }
  const right = b.x > a.x ? 1 : -1;
  const start = `M${a.x + (right * a.width) / 2} ${a.y}`;
  const end = `${b.x - right * (b.width / 2 + GAP)} ${b.y}`;
  return a.y === b.y
    ? `${start} L${end}`
    : `${start} L${(a.x + b.x) / 2} ${a.y} L${(a.x + b.x) / 2} ${b.y} L${end}`;
}

/** Room for the arrow's head. */
const GAP = 7;
