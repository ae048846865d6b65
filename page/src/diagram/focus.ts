/** What is highlighted while a box is pointed at, and where the arrow keys lead. */
import type { Box, Graph } from './graph.ts';
import type { PlacedBox } from './layout.ts';

export interface Focus {
  readonly boxes: ReadonlySet<string>;
  readonly packets: ReadonlySet<number>;
}

/** The ways through a box, and every box on them. */
export function focusOn({ boxes, ways, streams }: Graph, key: string): Focus | undefined {
  const chosen = boxes.find((box) => box.key === key);
  if (!chosen) return undefined;
  const packets = new Set(chosen.packets);
  const stops = new Set(ways.flatMap((way) => (packets.has(way.packet) ? way.stops : [])));
  const own = new Set(chosen.rows);
  const reached =
    chosen.column === 4
      ? boxes.filter(({ rows }) => rows?.some((row) => own.has(row)))
      : boxes.filter((box) => streams.some(({ from, to }) => stops.has(from) && isIn(box, boxes, to)));
  return { boxes: new Set([key, ...stops, ...reached.map((box) => box.key)]), packets };
}

/** An open group stands for its members. */
function isIn(box: Box, boxes: readonly Box[], key: string): boolean {
  if (box.key === key) return true;
  if (box.isOpen !== true) return false;
  const member = boxes.find((each) => each.key === key)?.rows?.[0];
  return member !== undefined && (box.rows?.includes(member) ?? false);
}

const STEPS: Readonly<Record<string, readonly [columns: number, boxes: number]>> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
  Home: [0, -Infinity],
  End: [0, Infinity],
};

/** `undefined`: no key that moves. At an edge it stays. */
export function nextBox(places: readonly PlacedBox[], from: string, key: string): string | undefined {
  const step = STEPS[key];
  const start = places.find(({ box }) => box.key === from);
  if (!step || !start) return undefined;
  const [columns, rows] = step;
  if (columns === 0) {
    const same = places.filter(({ box }) => box.column === start.box.column);
    const index = Math.min(same.length - 1, Math.max(0, same.indexOf(start) + rows));
    return same[index]?.box.key ?? from;
  }
  for (let column = start.box.column + columns; column >= 0 && column <= 4; column += columns) {
    const there = places.filter(({ box }) => box.column === column);
    const shared = there.filter(({ box }) => box.packets.some((each) => start.box.packets.includes(each)));
    const [nearest] = (shared.length > 0 ? shared : there).toSorted(
      (a, b) => Math.abs(middleOf(a) - middleOf(start)) - Math.abs(middleOf(b) - middleOf(start)),
    );
    if (nearest) return nearest.box.key;
  }
  return from;
}

function middleOf({ y, height }: PlacedBox): number {
  return y + height / 2;
}
