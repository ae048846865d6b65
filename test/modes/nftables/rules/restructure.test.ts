import { describe, expect, it } from 'vitest';
import { removal, restructure } from '../../../../src/modes/nftables/rules/resync.ts';
import { poolChain } from '../../../../src/modes/nftables/rules/names.ts';
import type { Ruleset } from '../../../../src/modes/nftables/rules/table.ts';
import {
  rulesetOf,
  type RulesetOptions,
  type TableShape,
} from '../../../../src/modes/nftables/rules/ruleset.ts';
import { nodeView } from '../../../../src/plan/view.ts';

const OPTIONS: RulesetOptions = {
  family: 'IPv4',
  masqueradeMark: 0x4000,
  counters: false,
  view: nodeView(
    {
      nodeName: 'node1',
      bindAddress: undefined,
      detectLocal: { mode: 'ClusterCIDR', cidrs: [] },
      masqueradeAll: false,
      nodePortAddresses: [],
      localhostNodePorts: true,
    },
    undefined,
    'IPv4',
  ),
};

function withSizes(...sizes: readonly number[]): Ruleset {
  const shape: TableShape = {
    sizes: { address: { any: sizes, outside: [] }, nodePort: { any: [], outside: [] } },
    affinity: [],
    hasServiceCidrs: false,
  };
  return rulesetOf(shape, OPTIONS);
}

describe('a pool of a size that no pool had', () => {
  it('brings one map before the elements, and one rule after them', () => {
    const { first, last } = restructure(withSizes(1, 10), withSizes(1, 3, 10));
    expect(first.map(({ kind }) => kind)).toEqual(['addSet']);
    expect(last).toHaveLength(1);
    expect(last[0]).toMatchObject({
      kind: 'addRule',
      chain: poolChain('address', 'any'),
      rule: { statements: [{ kind: 'dnatByMap', map: 'any-3' }] },
    });
  });

  it('leaves the rules that are there alone, since the kernel would look at all of their elements again', () => {
    const { last } = restructure(withSizes(2), withSizes(1, 2));
    expect(last.map(({ kind }) => kind)).not.toContain('flushChain');
  });
});

describe('rules that are not wanted any more', () => {
  it('go by themselves, and the others stay', () => {
    const gone = removal(withSizes(1, 2, 3), withSizes(2));
    expect(gone.map(({ kind }) => kind)).toEqual(['deleteRule', 'deleteRule', 'deleteSet', 'deleteSet']);
  });

  it('take the chains of large pools along', () => {
    const gone = removal(withSizes(1, 20, 30), withSizes(1, 20));
    expect(gone).toEqual([
      { kind: 'flushChain', chain: 'any-large-30' },
      { kind: 'deleteChain', chain: 'any-large-30' },
      { kind: 'deleteSet', set: 'any-30' },
    ]);
  });
});
