/** Where each box stands and how each ribbon runs, for a given width. Pure: data in, places out. */
import { type Box, COLUMNS, type Graph, type Stream, type DrawnWay } from './graph.ts';
import { groupBy } from './groupBy.ts';

export interface PlacedBox {
  readonly box: Box;
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** A packet's way between two boxes: a line of one width. */
interface PlacedWay {
  readonly way: DrawnWay;
  /** From this column to the next. */
  readonly column: number;
  readonly from: Point;
  readonly to: Point;
}

/** From a pool to endpoints: as wide as its share. */
interface PlacedStream {
  readonly stream: Stream;
  /** The middle of its ends. */
  readonly from: Point;
  readonly to: Point;
  readonly width: number;
}

interface Point {
  readonly x: number;
  readonly y: number;
}

export interface Layout {
  readonly width: number;
  readonly height: number;
  /** Left edges and widths of the columns, for their titles. */
  readonly columns: readonly { readonly x: number; readonly width: number }[];
  readonly boxes: readonly PlacedBox[];
  readonly ways: readonly PlacedWay[];
  readonly streams: readonly PlacedStream[];
  readonly lineWidth: number;
}

/** Narrower than this, the same is shown as text. */
export const LEAST_WIDTH = 760;

const BOX_WIDTHS = [116, 156, 184, 122, 224];
/** Boxes grow no further: lines of text have an end. */
const MOST_GROWTH = 1.5;
const LEAST_GAP = 26;
const BOX_GAP = 10;
const PADDING = 8;
const LINE_HEIGHT = 17;
const INDENT = 14;
/** Columns beside a long list of endpoints stand where one begins to read. */
const MIDDLE_WITHIN = 460;
const MOST_STREAM = 120;
const LEAST_STREAM = 1.5;

export function layoutOf(graph: Graph, width: number): Layout {
  const pitch = graph.ways.length > 24 ? 4 : 7;
  const columns = columnsOf(width);
  const sizes = sizesOf(graph, pitch);
  const heights = columns.map((_, column) => columnHeight(graph.boxes, sizes, column));
  const height = Math.max(...heights, 0);
  const boxes = place(graph.boxes, { columns, sizes, heights, height });
  const byKey = new Map(boxes.map((each) => [each.box.key, each]));
  return {
    width,
    height,
    columns,
    boxes,
    ways: placeWays(graph.ways, byKey, pitch),
    streams: placeStreams(graph.streams, byKey),
    lineWidth: pitch - (pitch > 4 ? 3 : 1),
  };
}

function columnsOf(width: number): Layout['columns'] {
  const least = BOX_WIDTHS.reduce((sum, each) => sum + each, 0);
  const gaps = BOX_WIDTHS.length - 1;
  const room = width - gaps * LEAST_GAP;
  // Of what is more than needed, boxes and gaps have a half each.
  const growth = Math.min(MOST_GROWTH, room < least ? room / least : 1 + (room / least - 1) / 2);
  const widths = BOX_WIDTHS.map((each) => Math.floor(each * growth));
  const gap = (width - widths.reduce((sum, each) => sum + each, 0)) / gaps;
  let x = 0;
  return widths.map((each) => {
    const column = { x, width: each };
    x += each + gap;
    return column;
  });
}

function textHeight({ lines, kind }: Box): number {
  // A reason may need three lines.
  const count = 1 + lines.length + (kind === 'end' ? 2 : 0);
  return count * LINE_HEIGHT + 2 * PADDING;
}

/** A box is as high as its text, and as what runs through it. */
function sizesOf(graph: Graph, pitch: number): ReadonlyMap<string, number> {
  const sizes = new Map<string, number>();
  for (const box of graph.boxes) {
    const ways = graph.ways.filter(({ stops }) => stops.includes(box.key)).length;
    sizes.set(box.key, Math.max(textHeight(box), ways * pitch + PADDING));
  }
  const inflow = new Map<string, number>();
  for (const stream of graph.streams) {
    const width = streamWidth(stream, sizes);
    inflow.set(stream.to, (inflow.get(stream.to) ?? 0) + width);
  }
  for (const [key, width] of inflow) sizes.set(key, Math.max(sizes.get(key) ?? 0, width + PADDING));
  return sizes;
}

function streamWidth({ from, share }: Stream, sizes: ReadonlyMap<string, number>): number {
  const most = Math.min(MOST_STREAM, (sizes.get(from) ?? 0) - PADDING);
  return Math.max(LEAST_STREAM, share * most);
}

function columnHeight(boxes: readonly Box[], sizes: ReadonlyMap<string, number>, column: number): number {
  const own = boxes.filter((box) => box.column === column);
  const sum = own.reduce((total, { key }) => total + (sizes.get(key) ?? 0), 0);
  return sum + Math.max(0, own.length - 1) * BOX_GAP;
}

interface Measures {
  readonly columns: Layout['columns'];
  readonly sizes: ReadonlyMap<string, number>;
  readonly heights: readonly number[];
  readonly height: number;
}

function place(boxes: readonly Box[], { columns, sizes, heights, height }: Measures): readonly PlacedBox[] {
  const last = COLUMNS.length - 1;
  const next = heights.map((own, column) =>
    column === last
      ? Math.max(0, (height - own) / 2)
      : Math.max(0, (Math.min(height, Math.max(MIDDLE_WITHIN, own)) - own) / 2),
  );
  return boxes.map((box) => {
    const { x, width } = columns[box.column] ?? { x: 0, width: 0 };
    const y = next[box.column] ?? 0;
    const own = sizes.get(box.key) ?? 0;
    next[box.column] = y + own + BOX_GAP;
    const indent = Math.min(width / 3, (box.depth ?? 0) * INDENT);
    return { box, x: x + indent, y, width: width - indent, height: own };
  });
}

type Places = ReadonlyMap<string, PlacedBox>;

function placeWays(ways: readonly DrawnWay[], places: Places, pitch: number): readonly PlacedWay[] {
  const placed: PlacedWay[] = [];
  const steps = Math.max(0, ...ways.map(({ stops }) => stops.length - 1));
  for (let column = 0; column < steps; column++) {
    const leaving = slots(ways, places, pitch, { at: column, towards: column + 1, side: 'right' });
    const arriving = slots(ways, places, pitch, { at: column + 1, towards: column, side: 'left' });
    for (const way of ways) {
      const from = leaving.get(way);
      const to = arriving.get(way);
      if (from && to) placed.push({ way, column, from, to });
    }
  }
  return placed;
}

interface Side {
  readonly at: number;
  readonly towards: number;
  readonly side: 'left' | 'right';
}

/** Where each way leaves its box: in the order of the boxes that they lead to, so that few of them cross. */
function slots(
  ways: readonly DrawnWay[],
  places: Places,
  pitch: number,
  { at, towards, side }: Side,
): ReadonlyMap<DrawnWay, Point> {
  const found = new Map<DrawnWay, Point>();
  const byBox = groupBy(ways, ({ stops }) => stops[at] ?? '');
  for (const [key, some] of byBox) {
    const place = places.get(key);
    if (!place) continue;
    const sorted = some.toSorted(
      (a, b) => yOf(places, a.stops[towards]) - yOf(places, b.stops[towards]) || a.packet - b.packet,
    );
    const first = place.y + place.height / 2 - ((sorted.length - 1) * pitch) / 2;
    const x = side === 'right' ? place.x + place.width : place.x;
    for (const [index, way] of sorted.entries()) found.set(way, { x, y: first + index * pitch });
  }
  return found;
}

function yOf(places: Places, key = ''): number {
  return places.get(key)?.y ?? 0;
}

function placeStreams(streams: readonly Stream[], places: Places): readonly PlacedStream[] {
  const sizes = new Map([...places].map(([key, { height }]) => [key, height]));
  const starts = stack(streams, sizes, places, 'from');
  const ends = stack(streams, sizes, places, 'to');
  return streams.flatMap((stream) => {
    const [from, to] = [places.get(stream.from), places.get(stream.to)];
    const [start, end] = [starts.get(stream), ends.get(stream)];
    if (!from || !to || start === undefined || end === undefined) return [];
    return [
      {
        stream,
        from: { x: from.x + from.width, y: start },
        to: { x: to.x, y: end },
        width: streamWidth(stream, sizes),
      },
    ];
  });
}

/** The middles of streams at one of their ends, below each other in the middle of the box. */
function stack(
  streams: readonly Stream[],
  sizes: ReadonlyMap<string, number>,
  places: Places,
  end: 'from' | 'to',
): ReadonlyMap<Stream, number> {
  const found = new Map<Stream, number>();
  for (const [key, some] of groupBy(streams, (stream) => stream[end])) {
    const place = places.get(key);
    if (!place) continue;
    const widths = some.map((stream) => streamWidth(stream, sizes));
    const total = widths.reduce((sum, each) => sum + each, 0);
    const room = place.height - PADDING;
    // Streams of least width may be more than the box is high.
    const scale = total > room ? room / total : 1;
    let y = place.y + (place.height - total * scale) / 2;
    for (const [index, stream] of some.entries()) {
      const own = (widths[index] ?? 0) * scale;
      found.set(stream, y + own / 2);
      y += own;
    }
  }
  return found;
}

/** A curve from one box to the next, level at both ends. */
export function curve({ from, to }: { readonly from: Point; readonly to: Point }): string {
  const middle = round((from.x + to.x) / 2);
  return `M${round(from.x)} ${round(from.y)}C${middle} ${round(from.y)} ${middle} ${round(to.y)} ${round(to.x)} ${round(to.y)}`;
}

/** The same with a width, as a surface. */
export function ribbon({ from, to, width }: PlacedStream): string {
  const half = width / 2;
  const middle = round((from.x + to.x) / 2);
  const [x0, x1] = [round(from.x), round(to.x)];
  const [a, b, c, d] = [from.y - half, to.y - half, to.y + half, from.y + half].map(round);
  return `M${x0} ${a}C${middle} ${a} ${middle} ${b} ${x1} ${b}V${c}C${middle} ${c} ${middle} ${d} ${x0} ${d}Z`;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
