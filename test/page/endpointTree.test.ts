import { describe, expect, test } from 'vitest';
import {
  type Branch,
  endpointTree,
  openAtFirst,
  rowsOf,
  seenBranches,
} from '../../page/src/diagram/endpointTree.ts';
import { endpointRow } from './support/ports.ts';

const NOT_READY = { pools: [], ready: false, leftOut: { reason: 'not-ready', text: 'not ready' } } as const;

function names(branches: readonly Branch[]): readonly string[] {
  return branches.map((branch) => (branch.kind === 'endpoint' ? branch.row.address : branch.name));
}

describe('groups of endpoints', () => {
  test('few on one node stand alone', () => {
    expect(names(endpointTree([endpointRow(1), endpointRow(2)]))).toEqual([
      '10.244.0.1:8080',
      '10.244.0.2:8080',
    ]);
  });

  test('this node first, then others by number; one endpoint makes no group', () => {
    const rows = [
      ...[1, 2].map((number) => endpointRow(number, { node: 'node10' })),
      ...[3, 4].map((number) => endpointRow(number, { node: 'node9' })),
      ...[5, 6].map((number) => endpointRow(number, { node: 'zebra', isLocal: true })),
      endpointRow(7, { node: 'node11' }),
    ];
    expect(names(endpointTree(rows))).toEqual(['zebra, this node', 'node9', 'node10', '10.244.0.7:8080']);
  });

  test('left out: by reason, at the end', () => {
    const rows = [
      endpointRow(1, NOT_READY),
      endpointRow(2, NOT_READY),
      endpointRow(3, { pools: [], leftOut: { reason: 'other-zone', text: 'its hint is for zone b' } }),
      endpointRow(4),
    ];
    expect(names(endpointTree(rows))).toEqual(['10.244.0.4:8080', 'not ready', '10.244.0.3:8080']);
  });

  test('a list that is too long ends with the rest as a group, and nothing is lost', () => {
    const rows = Array.from({ length: 1000 }, (_, number) => endpointRow(number, { node: `node${number}` }));
    const tree = endpointTree(rows);
    expect(tree).toHaveLength(12);
    expect(tree.at(-1)).toMatchObject({ kind: 'more' });
    expect(tree.flatMap(rowsOf)).toHaveLength(1000);
    const all = seenBranches(tree, () => true).filter(({ branch }) => branch.kind === 'endpoint');
    expect(new Set(all.map(({ branch }) => branch.key)).size).toBe(1000);
  });

  test('at first open is what fits, level by level', () => {
    const zoned = (count: number) =>
      endpointTree(
        Array.from({ length: count }, (_, number) =>
          endpointRow(number, { zone: `z${number % 2}`, node: `n${number % 4}` }),
        ),
      );
    expect([...openAtFirst(zoned(8))]).toEqual([
      'zone z0',
      'zone z1',
      'zone z0/node n0',
      'zone z0/node n2',
      'zone z1/node n1',
      'zone z1/node n3',
    ]);
    expect([...openAtFirst(zoned(80))]).toEqual(['zone z0', 'zone z1']);
    expect([...openAtFirst(zoned(80), 3)]).toEqual([]);
  });
});
