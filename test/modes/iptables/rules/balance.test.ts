import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  balancingRules,
  endpointChainNames,
  match,
  probability,
} from '../../../../src/modes/iptables/rules/layouts/common.ts';
import { printRule } from '../../../../src/modes/iptables/rules/print.ts';
import { planServicePort } from '../../../../src/plan/servicePortPlan.ts';
import { endpoints, servicePort, VIEW } from '../../../plan/given.ts';
import { chainName } from '../compiled.ts';

describe('1/n in ten decimals', () => {
  test.each([
    [1, '1.0000000000'],
    [2, '0.5000000000'],
    [3, '0.3333333333'],
    [6, '0.1666666667'],
    [7, '0.1428571429'],
    [64, '0.0156250000'],
    [1024, '0.0009765625'],
    // The only exact tie among pools of so many: to the even digit, where toFixed would say …813.
    [2048, '0.0004882812'],
    [100_001, '0.0000099999'],
  ])('n = %d: %s', (n, expected) => expect(probability(n, 10)).toBe(expected));

  test('everywhere but at the tie it is what toFixed says', () => {
    fc.assert(
      // More endpoints than that no service port has in this mode; 10,240 would be another tie of decimals.
      fc.property(fc.integer({ min: 1, max: 5000 }), (n) => {
        fc.pre(n !== 2048);
        expect(probability(n, 10)).toBe((1 / n).toFixed(10));
      }),
    );
  });
});

test.each([
  [2, '0.50000'],
  [3, '0.33333'],
  [6, '0.16667'],
  [7, '0.14286'],
])('n = %d in five decimals: %s', (n, expected) => expect(probability(n, 5)).toBe(expected));

const STYLE = {
  decimals: 10,
  affinityComment: () => [match.comment('again')],
  choiceComment: () => [match.comment('choice')],
};

function rules(port: string, list: string): readonly string[] {
  const plan = planServicePort(servicePort(`a/b 10.96.0.1 ${port}`), endpoints(list), VIEW);
  const pool = plan.pools.cluster ?? [];
  return balancingRules(plan, pool, endpointChainNames(plan), STYLE).map(printRule);
}

describe('one of the pool is chosen', () => {
  const [one, two, three] = ['10.0.0.1:80', '10.0.0.2:80', '10.0.0.3:80'].map((key) =>
    chainName('SEP', 'a/b', key),
  );

  test('a single one without a draw', () => {
    expect(rules('80', '10.0.0.1:80')).toEqual([`-m comment --comment choice -j ${one}`]);
  });

  test('three, each with a third', () => {
    expect(rules('80', '10.0.0.1:80, 10.0.0.2:80, 10.0.0.3:80')).toEqual([
      `-m comment --comment choice -m statistic --mode random --probability 0.3333333333 -j ${one}`,
      `-m comment --comment choice -m statistic --mode random --probability 0.5000000000 -j ${two}`,
      `-m comment --comment choice -j ${three}`,
    ]);
  });

  test('with affinity, first whoever it was before', () => {
    expect(rules('80 affinity=180', '10.0.0.1:80, 10.0.0.2:80')).toEqual([
      `-m comment --comment again -m recent --name ${one} --rcheck --seconds 180 --reap -j ${one}`,
      `-m comment --comment again -m recent --name ${two} --rcheck --seconds 180 --reap -j ${two}`,
      `-m comment --comment choice -m statistic --mode random --probability 0.5000000000 -j ${one}`,
      `-m comment --comment choice -j ${two}`,
    ]);
  });

  test.each([2, 3, 10, 100, 1000])('fairly, of %d', (count) => {
    let rest = 1;
    for (let remaining = count; remaining >= 1; remaining--) {
      const taken = remaining === 1 ? rest : rest * Number(probability(remaining, 10));
      expect(taken).toBeCloseTo(1 / count, 6);
      rest -= taken;
    }
  });
});
