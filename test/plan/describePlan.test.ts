import { expect, test } from 'vitest';
import { describePlanChange } from '../../src/plan/describePlan.ts';
import { cluster } from './cluster.ts';

const ONE = 'shop/web-1 of web 80 | 10.244.0.1 node-a';
const NONE = 'shop/web-1 of web 80';

/** What the second lines change, after the first. */
function effects(before: readonly string[], after: readonly string[]): readonly string[] {
  return cluster(...before)
    .tell(...after)
    .replan()
    .flatMap(describePlanChange);
}

const WEB = 'shop/web NodePort 10.96.0.1 80@30080';

test.each([
  ['a service port that is added', [], [WEB, ONE], ['added with 2 frontends and 1 endpoint']],
  ['one that is removed', [WEB, ONE], ['- shop/web'], ['removed']],
  [
    'an endpoint more',
    [WEB, ONE],
    ['shop/web-1 of web 80 | 10.244.0.1 node-a | 10.244.0.2 node-b'],
    ['endpoint 10.244.0.2:80 added to cluster'],
  ],
  [
    'the last endpoint',
    [WEB, ONE],
    [NONE],
    [
      'traffic to the cluster IP: forward to cluster → reject',
      'external traffic: forward to cluster, masqueraded → reject',
      'endpoint 10.244.0.1:80 removed from cluster',
    ],
  ],
  [
    'an external IP',
    [WEB, ONE],
    ['shop/web NodePort 10.96.0.1 80@30080 ext=203.0.113.1'],
    ['external IP 203.0.113.1:80 added'],
  ],
  [
    'another node port',
    [WEB, ONE],
    ['shop/web NodePort 10.96.0.1 80@30081'],
    ['node port 30081 added', 'node port 30080 removed'],
  ],
])('%s', (_, before, after, expected) => {
  expect(effects(before, after)).toEqual(expected.map((text) => `shop/web/TCP: ${text}`));
});

test('of very many endpoints the first few are named, and how many more', () => {
  const many = Array.from({ length: 100 }, (_, index) => ` | 10.244.1.${index} node-a`).join('');
  const words = effects([WEB, ONE], [`shop/web-1 of web 80${many}`]);
  expect(words).toHaveLength(7);
  expect(words.at(-1)).toBe('shop/web/TCP: and 95 more');
});
