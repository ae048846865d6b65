/**
 * The rules of one service of every kind, line by line. The files were made once and then read against the
 * specification; a change in them is a change of what operators see, and has to be meant.
 */
import { describe, expect, test } from 'vitest';
import { applyRestore } from './restore.ts';
import { FAMILIES } from '../../../../src/model/ip.ts';
import { APPENDIX_A, APPENDIX_WORLD } from './golden/workedExample.ts';
import { printByChain, restoreText, rulesByChain } from './goldenCluster.ts';

for (const layout of ['current', 'classic'] as const) {
  for (const family of FAMILIES) {
    test(`layout ${layout}, ${family}`, async () => {
      const text = printByChain(rulesByChain(restoreText({ layout, family })));
      await expect(text).toMatchFileSnapshot(`golden/${layout}.${family}.txt`);
    });

    test(`a kernel takes layout ${layout}, ${family}`, () => {
      expect(() => applyRestore(new Map(), restoreText({ layout, family }))).not.toThrow();
    });
  }
}

describe('the worked example of the specification', () => {
  const expected = rulesByChain(APPENDIX_A);
  const actual = rulesByChain(restoreText({ world: APPENDIX_WORLD }));

  test.each([...expected.keys()])('%s', (chain) => {
    const ours = actual.get(chain) ?? [];
    const theirs = expected.get(chain) ?? [];
    // Among services the order is free.
    const isShared = chain.endsWith('SERVICES') || chain.endsWith('NODEPORTS');
    expect(isShared ? ours.toSorted() : ours).toEqual(isShared ? theirs.toSorted() : theirs);
  });

  test('no other chain', () => {
    const own = [...actual.keys()].filter((chain) => chain.includes('KUBE-'));
    expect(own.toSorted()).toEqual([...expected.keys()].toSorted());
  });
});
