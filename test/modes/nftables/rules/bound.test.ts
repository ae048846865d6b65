/** How often a packet asks a set: so often at most, whatever the number of services. */
import { describe, expect, test } from 'vitest';
import type { Scope, View } from '../../../../src/modes/nftables/rules/names.ts';
import { rulesetOf, type TableShape } from '../../../../src/modes/nftables/rules/ruleset.ts';
import { walkNftables } from '../../../../src/modes/nftables/rules/walk.ts';
import { mostLookups } from './bound.ts';
import { ip, VIEW } from '../../../plan/given.ts';
import { CLIENT } from './clients.ts';
import { Harness, SETTINGS } from './harness.ts';

const upTo = (size: number): readonly number[] => Array.from({ length: size }, (_, index) => index + 1);

function shapeOf(sizes: readonly number[], affinity: TableShape['affinity'] = []): TableShape {
  const views: Readonly<Record<View, readonly number[]>> = { any: sizes, outside: sizes };
  const all: Readonly<Record<Scope, typeof views>> = { address: views, nodePort: views };
  return { sizes: all, affinity, hasServiceCidrs: false };
}

const boundOf = (shape: TableShape, counters = false): number =>
  mostLookups(rulesetOf(shape, { family: 'IPv4', view: VIEW, masqueradeMark: 0x4000, counters }));

describe('the bound', () => {
  test('pools of one endpoint alone', () => expect(boundOf(shapeOf([1]))).toBe(20));
  test('each size more is asked in four places', () => {
    for (const size of upTo(15))
      expect(boundOf(shapeOf(upTo(size + 1))) - boundOf(shapeOf(upTo(size)))).toBe(4);
  });
  test('all sizes up to 16', () => expect(boundOf(shapeOf(upTo(16)))).toBe(80));
  test('larger ones are two questions more in each of four places, however many sizes there are', () => {
    expect(boundOf(shapeOf([...upTo(16), 17]))).toBe(88);
    expect(boundOf(shapeOf([...upTo(16), 17, 100, 1000]))).toBe(88);
  });
  test('with affinity: whether, where to, for how long and noting it down, for any number of time-outs', () => {
    const hour = { protocol: 'TCP', seconds: 3600 } as const;
    expect(boundOf(shapeOf([1], [hour]))).toBe(20 + 2 * 2 + 2);
    const many = upTo(5000).map((seconds) => ({ protocol: 'TCP', seconds }) as const);
    expect(boundOf(shapeOf([1], many))).toBe(20 + 2 * 2 + 2);
  });
  test('counting costs two for each protocol with affinity', () => {
    const minute = { protocol: 'TCP', seconds: 60 } as const;
    const shape = shapeOf([1], [minute, { protocol: 'TCP', seconds: 90 }, { protocol: 'UDP', seconds: 60 }]);
    expect(boundOf(shape, true)).toBe(boundOf(shape) + 4);
    expect(boundOf(shapeOf([1]), true)).toBe(boundOf(shapeOf([1])));
  });
});

describe.each([1, 10, 1000])('among %i services', (count) => {
  test('a packet asks as often', async () => {
    const harness = new Harness({ settings: SETTINGS });
    const lines = Array.from({ length: count }, (_, n) => [
      `a/s${n} 10.96.${n >> 8}.${n & 255} 80@${20_000 + n}`,
      `a/s${n}-1 of s${n} 80 | 10.1.0.1 node-b | 10.1.0.2 node-b`,
    ]);
    await harness.sync(...lines.flat());
    const { ruleset, walkable } = harness.kernel;
    const ask = (destination: string, port: number): readonly number[] => {
      const packet = { ...CLIENT, destination: ip(destination), port };
      const host = { addresses: [ip('192.0.2.10')] };
      return [...new Set(walkNftables(walkable, packet, host).outcomes.map(({ lookups }) => lookups))];
    };
    expect(mostLookups(ruleset)).toBe(18);
    expect(ask('10.96.0.0', 80)).toEqual([7]);
    expect(ask('10.96.0.0', 81)).toEqual([9]);
    expect(ask('192.0.2.10', 20_000)).toEqual([5]);
    expect(ask('192.0.2.10', 22)).toEqual([7]);
    expect(ask('203.0.113.77', 80)).toEqual([2]);
  });
});
