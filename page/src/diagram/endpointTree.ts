/** Endpoints by zone and node, so that three hundred can be looked at as three. */
import type { EndpointName, EndpointRow } from '../../../src/explain/types.ts';
import { groupBy } from './groupBy.ts';

export type Branch = EndpointLeaf | EndpointGroup;

interface EndpointLeaf {
  readonly kind: 'endpoint';
  readonly key: string;
  readonly row: EndpointRow;
}

export interface EndpointGroup {
  /** `reason`: left out for it. `more`: what a list that is too long does not show. */
  readonly kind: 'zone' | 'node' | 'reason' | 'more';
  readonly key: string;
  readonly name: string;
  /** All that are in it. */
  readonly rows: readonly EndpointRow[];
  readonly children: readonly Branch[];
}

/** So many stand below each other; the others are in a group of their own at the end. */
const MOST_CHILDREN = 24;
const MOST_OUTSIDE_GROUPS = 12;

/** Those that get something first, then those that are left out, by reason. */
export function endpointTree(rows: readonly EndpointRow[]): readonly Branch[] {
  const used = rows.filter(({ pools }) => pools.length > 0);
  const leftOut = rows.filter(({ pools }) => pools.length === 0);
  const reasons = [...groupBy(leftOut, ({ leftOut: why }) => why?.text ?? 'not used')];
  return [
    ...byZone(used),
    ...reasons.flatMap(([reason, some]): readonly Branch[] =>
      some.length === 1
        ? some.map((row) => leaf('', row))
        : [group('reason', `left out: ${reason}`, reason, some, (key) => some.map((row) => leaf(key, row)))],
    ),
  ];
}

function byZone(rows: readonly EndpointRow[]): readonly Branch[] {
  const zones = [...groupBy(rows, zoneOf)].sort(([a], [b]) => compareNames(a, b));
  if (zones.length < 2) return limited('', byNode('', rows), MOST_OUTSIDE_GROUPS);
  return limited(
    '',
    zones.flatMap(([zone, some]): readonly Branch[] =>
      some.length === 1
        ? some.map((row) => leaf('', row))
        : [group('zone', `zone ${zone}`, zone === '' ? 'no zone' : zone, some, (key) => byNode(key, some))],
    ),
    MOST_OUTSIDE_GROUPS,
  );
}

function byNode(parent: string, rows: readonly EndpointRow[]): readonly Branch[] {
  const nodes = [...groupBy(rows, ({ node = '' }) => node)].sort(
    ([a, [first]], [b, [second]]) =>
      Number(second?.isLocal ?? false) - Number(first?.isLocal ?? false) || compareNames(a, b),
  );
  if (nodes.length === 1) return rows.map((row) => leaf(parent, row));
  return nodes.flatMap(([node, some]): readonly Branch[] =>
    some.length === 1
      ? some.map((row) => leaf(parent, row))
      : [
          group('node', `${parent}/node ${node}`, nodeName(node, some), some, (key) =>
            some.map((row) => leaf(key, row)),
          ),
        ],
  );
}

function nodeName(node: string, [first]: readonly EndpointRow[]): string {
  return first?.isLocal === true ? `${node}, this node` : node || 'no known node';
}

function leaf(parent: string, row: EndpointRow): EndpointLeaf {
  return { kind: 'endpoint', key: `${parent}/endpoint ${row.address} ${row.pod ?? ''}`, row };
}

function group(
  kind: EndpointGroup['kind'],
  key: string,
  name: string,
  rows: readonly EndpointRow[],
  children: (key: string) => readonly Branch[],
): EndpointGroup {
  return { kind, key, name, rows, children: limited(key, children(key)) };
}

function limited(parent: string, branches: readonly Branch[], most = MOST_CHILDREN): readonly Branch[] {
  if (branches.length <= most) return branches;
  const shown = branches.slice(0, most - 1);
  const rest = branches.slice(most - 1);
  const rows = rest.flatMap(rowsOf);
  return [...shown, group('more', `${parent}/more`, 'more', rows, () => rest)];
}

export function rowsOf(branch: Branch): readonly EndpointRow[] {
  return branch.kind === 'endpoint' ? [branch.row] : branch.rows;
}

/** What is seen, from top to bottom. */
export interface SeenBranch {
  readonly branch: Branch;
  readonly depth: number;
  readonly isOpen: boolean;
}

export function seenBranches(
  branches: readonly Branch[],
  isOpen: (group: EndpointGroup) => boolean,
  depth = 0,
): readonly SeenBranch[] {
  return branches.flatMap((branch): readonly SeenBranch[] => {
    if (branch.kind === 'endpoint' || !isOpen(branch)) return [{ branch, depth, isOpen: false }];
    return [{ branch, depth, isOpen: true }, ...seenBranches(branch.children, isOpen, depth + 1)];
  });
}

/** So many boxes fit on a screen. */
const MOST_AT_FIRST = 14;

/** Groups that are open unless somebody closes them: level by level, while there is room. */
export function openAtFirst(branches: readonly Branch[], most = MOST_AT_FIRST): ReadonlySet<string> {
  const open = new Set<string>();
  for (;;) {
    const closed = seenBranches(branches, ({ key }) => open.has(key)).flatMap(({ branch, isOpen }) =>
      branch.kind === 'endpoint' || isOpen || branch.kind === 'more' ? [] : [branch],
    );
    const next = new Set([...open, ...closed.map(({ key }) => key)]);
    if (closed.length === 0 || seenBranches(branches, ({ key }) => next.has(key)).length > most) return open;
    for (const { key } of closed) open.add(key);
  }
}

/** Unset where nothing says it. */
function zoneOf({ zone = '' }: EndpointName): string {
  return zone;
}

/** node2 before node10. */
function compareNames(a: string, b: string): number {
  return a.localeCompare(b, 'en', { numeric: true });
}
