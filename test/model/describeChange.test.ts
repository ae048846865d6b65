import { expect, test } from 'vitest';
import { describeNode, describeService, describeSlice } from '../../src/model/describeChange.ts';
import { servicePorts } from '../../src/model/serviceTracker.ts';
import { node, service, slice } from '../plan/given.ts';

const cart = (...endpoints: readonly string[]) =>
  slice(['shop/cart-1 of cart 8080', ...endpoints].join(' | '));
const ONE = cart('10.1.0.1');
const MANY = cart(...Array.from({ length: 40 }, (_, n) => `10.1.1.${n}`));

test.each([
  ['added', undefined, ONE, ' added (1 endpoint)'],
  ['removed', MANY, undefined, ' removed'],
  [
    'one more and one less',
    cart('10.1.0.1', '10.1.0.2'),
    cart('10.1.0.1', '10.1.0.7'),
    ': endpoint 10.1.0.7 added, endpoint 10.1.0.2 removed',
  ],
  ['not ready', ONE, cart('10.1.0.1 unready'), ': endpoint 10.1.0.1 not ready'],
  ['ready', cart('10.1.0.1 unready'), ONE, ': endpoint 10.1.0.1 ready'],
  ['draining', ONE, cart('10.1.0.1 draining'), ': endpoint 10.1.0.1 terminating'],
  ['dying', ONE, cart('10.1.0.1 dead'), ': endpoint 10.1.0.1 terminating, not serving'],
  ['another port', ONE, { ...ONE, ports: [] }, ': ports changed'],
  [
    'very many',
    cart(),
    MANY,
    ': endpoint 10.1.1.0 added, endpoint 10.1.1.1 added, endpoint 10.1.1.2 added and 37 more',
  ],
  ['nothing but the time', ONE, { ...ONE, triggerTime: 7 }, undefined],
] as const)('a slice: %s', (_, previous, current, text) => {
  expect(describeSlice(previous, current)).toBe(text && `EndpointSlice shop/cart-1${text}`);
});

test.each([
  ['added', undefined, 'shop/web 10.96.0.1 80', 'Service shop/web added'],
  ['removed', 'shop/web 10.96.0.1 80', undefined, 'Service shop/web removed'],
  ['another port', 'shop/web 10.96.0.1 80', 'shop/web 10.96.0.1 81', 'Service shop/web: port changed'],
  [
    'another address',
    'shop/web 10.96.0.1 80',
    'shop/web 10.96.0.9 80',
    'Service shop/web: clusterIP changed',
  ],
] as const)('a Service: %s', (_, previous, current, text) => {
  const portsOf = (words: string | undefined) =>
    words === undefined ? [] : servicePorts(service(words), 'IPv4');
  expect(describeService('shop/web', { previous: portsOf(previous), current: portsOf(current) })).toBe(text);
});

test('a Node', () => {
  const one = node('node1');
  expect([describeNode(undefined, one), describeNode(one, one), describeNode(one, undefined)]).toEqual([
    `Node ${one.name} added`,
    `Node ${one.name} changed`,
    `Node ${one.name} removed`,
  ]);
  expect(describeNode(undefined, undefined)).toBeUndefined();
});
