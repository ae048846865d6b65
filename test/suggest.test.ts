import { expect, test } from 'vitest';
import { nearest } from '../src/text/suggest.ts';

const KNOWN = ['mode', 'masqueradeAll', 'masqueradeBit', 'clusterCIDR', 'minSyncPeriod', 'syncPeriod'];

test.each<[string, string | undefined]>([
  ['mod', 'mode'],
  ['MODE', 'mode'],
  ['modle', 'mode'],
  ['mdoe', 'mode'],
  ['masqueradeAl', 'masqueradeAll'],
  ['clusterCidr', 'clusterCIDR'],
  ['minSyncPeriods', 'minSyncPeriod'],
  ['x', undefined],
  ['', undefined],
  ['somethingElse', undefined],
])('%j was meant to be %j', (word, expected) => {
  expect(nearest(word, KNOWN)).toBe(expected);
});
