/** Whatever a service has, its boxes lie beside each other, in one order, and ribbons end where boxes are. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { endpointTree, openAtFirst, seenBranches } from '../../page/src/diagram/endpointTree.ts';
import { type Graph, graphOf } from '../../page/src/diagram/graph.ts';
import { curve, layoutOf, LEAST_WIDTH, type PlacedBox, ribbon } from '../../page/src/diagram/layout.ts';
import { weightsOf } from '../../page/src/diagram/weights.ts';
import type { EndpointRow, PacketExplanation, ServicePortExplanation } from '../../src/explain/types.ts';
import type { SourceClass } from '../../src/plan/types.ts';
import { endpointRow, packetTo, servicePort } from './support/ports.ts';

const POOLS = [['cluster'], ['cluster', 'local'], ['local'], []] as const;

const endpoints: fc.Arbitrary<readonly EndpointRow[]> = fc
  .array(
    fc.record({
      node: fc.integer({ min: 1, max: 30 }),
      zone: fc.constantFrom(undefined, 'a', 'b', 'c'),
      pools: fc.constantFrom(...POOLS),
      rate: fc.constantFrom(undefined, 0, 3, 5000),
    }),
    { maxLength: 320 },
  )
  .map((all) =>
    all.map(({ node, zone, pools, rate }, index) =>
      endpointRow(index, {
        node: `node${node}`,
        isLocal: node === 1,
        pools,
        ...(zone !== undefined && { zone }),
        ...(rate !== undefined && { rate }),
        ...(pools.length === 0 && { leftOut: { reason: 'not-ready', text: 'not ready' } }),
      }),
    ),
  );

const CLASSES: readonly SourceClass[] = ['pod', 'node', 'outside'];

const packets: fc.Arbitrary<readonly PacketExplanation[]> = fc
  .array(
    fc.record({
      fates: fc.array(fc.constantFrom('cluster', 'local', 'dropped', 'rejected', 'passed'), {
        minLength: 3,
        maxLength: 3,
      }),
      policy: fc.constantFrom('externalTrafficPolicy: Local', 'internalTrafficPolicy: Cluster'),
    }),
    { maxLength: 12 },
  )
  .map((frontends) =>
    frontends.flatMap(({ fates, policy }, index) =>
      CLASSES.map((sourceClass, at) => {
        const packet = packetTo(`10.96.0.${index + 1}`, sourceClass);
        const fate = fates[at];
        const frontend = packet.frontend && { ...packet.frontend, policy };
        if (fate === 'cluster' || fate === 'local')
          return { ...packet, ...(frontend && { frontend }), pool: fate };
        const { pool: _, ...stopped } = packet;
        return { ...stopped, verdict: fate === 'dropped' || fate === 'rejected' ? fate : 'passed' };
      }),
    ),
  );

const ports = fc.tuple(packets, endpoints).map(([some, rows]) => servicePort(some, rows));
const width = fc.integer({ min: LEAST_WIDTH, max: 2400 });

function graphAtFirst(port: ServicePortExplanation): Graph {
  const tree = endpointTree(port.endpoints);
  const open = openAtFirst(tree);
  return graphOf(
    port,
    seenBranches(tree, ({ key }) => open.has(key)),
    weightsOf(port.endpoints),
  );
}

function graphOpen(port: ServicePortExplanation): Graph {
  return graphOf(
    port,
    seenBranches(endpointTree(port.endpoints), () => true),
    weightsOf(port.endpoints),
  );
}

function overlaps(a: PlacedBox, b: PlacedBox): boolean {
  return a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
}

describe('layout', () => {
  test('no box overlaps another, and all are inside', () => {
    fc.assert(
      fc.property(ports, width, fc.boolean(), (port, room, isOpen) => {
        const layout = layoutOf(isOpen ? graphOpen(port) : graphAtFirst(port), room);
        for (const [index, place] of layout.boxes.entries()) {
          expect(place.x).toBeGreaterThanOrEqual(0);
          expect(place.y).toBeGreaterThanOrEqual(0);
          expect(place.x + place.width).toBeLessThanOrEqual(room + 0.001);
          expect(place.y + place.height).toBeLessThanOrEqual(layout.height + 0.001);
          expect(layout.boxes.slice(index + 1).filter((other) => overlaps(place, other))).toEqual([]);
        }
      }),
      { numRuns: 60 },
    );
  });

  test('every way and every stream begins and ends at the edge of its box', () => {
    fc.assert(
      fc.property(ports, width, (port, room) => {
        const graph = graphOpen(port);
        const layout = layoutOf(graph, room);
        const places = new Map(layout.boxes.map((place) => [place.box.key, place]));
        const isWithin = (y: number, place: PlacedBox | undefined): boolean =>
          place !== undefined && y >= place.y - 0.01 && y <= place.y + place.height + 0.01;
        expect(layout.ways).toHaveLength(graph.ways.length * 3);
        for (const { way, column, from, to } of layout.ways) {
          const [start, end] = [places.get(way.stops[column] ?? ''), places.get(way.stops[column + 1] ?? '')];
          expect([from.x, to.x]).toEqual([(start?.x ?? NaN) + (start?.width ?? NaN), end?.x]);
          expect([isWithin(from.y, start), isWithin(to.y, end)]).toEqual([true, true]);
        }
        expect(layout.streams).toHaveLength(graph.streams.length);
        for (const { stream, from, to, width: wide } of layout.streams) {
          expect(wide).toBeGreaterThan(0);
          expect([isWithin(from.y, places.get(stream.from)), isWithin(to.y, places.get(stream.to))]).toEqual([
            true,
            true,
          ]);
        }
      }),
      { numRuns: 40 },
    );
  });

  test('the shares of a pool are one in all, and wider streams have more', () => {
    fc.assert(
      fc.property(ports, (port) => {
        const { streams } = graphOpen(port);
        for (const pool of ['cluster', 'local'] as const) {
          const own = streams.filter((stream) => stream.pool === pool);
          const sum = own.reduce((total, { share }) => total + share, 0);
          if (own.length > 0 && sum > 0) expect(sum).toBeCloseTo(1);
        }
        const layout = layoutOf(graphOpen(port), 1200);
        for (const a of layout.streams)
          for (const b of layout.streams)
            if (a.stream.from === b.stream.from && a.stream.share > b.stream.share)
              expect(a.width).toBeGreaterThanOrEqual(b.width);
      }),
      { numRuns: 20 },
    );
  });

  test('another endpoint leaves the others in their order', () => {
    fc.assert(
      fc.property(ports, (port) => {
        const added = servicePort(port.packets, [
          ...port.endpoints,
          endpointRow(400, { node: 'node3', zone: 'b' }),
        ]);
        const order = (one: ServicePortExplanation): readonly string[] =>
          endpointTree(one.endpoints).flatMap((branch) => (branch.kind === 'more' ? [] : [branch.key]));
        const before = order(port);
        const after = order(added);
        const common = new Set(before.filter((key) => after.includes(key)));
        expect(after.filter((key) => common.has(key))).toEqual(before.filter((key) => common.has(key)));
      }),
      { numRuns: 60 },
    );
  });

  test('the same data gives the same picture', () => {
    fc.assert(
      fc.property(ports, width, (port, room) => {
        expect(layoutOf(graphAtFirst(port), room)).toEqual(layoutOf(graphAtFirst(port), room));
      }),
      { numRuns: 10 },
    );
  });

  test('three hundred endpoints in three zones are three boxes, and few of them are drawn at once', () => {
    const rows = Array.from({ length: 300 }, (_, index) =>
      endpointRow(index, {
        zone: `zone-${'abc'[index % 3] ?? ''}`,
        node: `worker-${'abc'[index % 3] ?? ''}${Math.floor(index / 3) % 20}`,
      }),
    );
    const port = servicePort([packetTo('10.96.0.20', 'pod')], rows);
    const graph = graphAtFirst(port);
    const shown = graph.boxes.filter(({ column }) => column === 4);
    expect(
      shown.map(({ title, lines, shares }) => [title, ...lines, ...(shares ?? []).map(({ text }) => text)]),
    ).toEqual([
      ['zone-a', '100 endpoints, all ready', '33 %'],
      ['zone-b', '100 endpoints, all ready', '33 %'],
      ['zone-c', '100 endpoints, all ready', '33 %'],
    ]);
    expect(layoutOf(graph, 900).height).toBeLessThan(400);
  });

  test('curves and ribbons are finite', () => {
    const layout = layoutOf(
      graphAtFirst(servicePort([packetTo('10.96.0.20', 'pod')], [endpointRow(1)])),
      900,
    );
    expect(layout.ways.map(curve).join('')).toMatch(/^[MC\d. ]+$/);
    expect(layout.streams.map(ribbon).join('')).toMatch(/^[MCVZ\d. ]+$/);
  });
});
