import { expect, test } from 'vitest';
import { describeNode, describeService, describeSlice } from '../../src/model/describeChange.ts';
import type { Ip } from '../../src/model/ip.ts';
import type { EndpointSlice, SliceEndpoint } from '../../src/model/objects.ts';
import { servicePorts } from '../../src/model/serviceTracker.ts';
import { node, service } from '../plan/given.ts';

const STATES = {
  ready: { ready: true, serving: true, terminating: false },
  'not ready': { ready: false, serving: false, terminating: false },
  draining: { ready: false, serving: true, terminating: true },
  dying: { ready: false, serving: false, terminating: true },
};

function slice(
  endpoints: Readonly<Record<string, keyof typeof STATES>>,
  options: Partial<EndpointSlice> = {},
): EndpointSlice {
  return {
    namespace: 'shop',
    name: 'cart-1',
    service: 'cart',
    family: 'IPv4',
    ports: [{ name: '', protocol: 'TCP', port: 8080 }],
    endpoints: Object.entries(endpoints).map(
      ([ip, state]): SliceEndpoint => ({
        ip: ip as Ip,
        nodeName: 'node1',
        ...STATES[state],
        zoneHints: [],
        nodeHints: [],
      }),
    ),
    triggerTime: undefined,
    ...options,
  };
}

const ONE = slice({ '10.1.0.1': 'ready' });
const MANY = slice(Object.fromEntries(Array.from({ length: 40 }, (_, n) => [`10.1.1.${n}`, 'ready'])));

test.each([
  ['added', undefined, ONE, 'EndpointSlice shop/cart-1 added (1 endpoint)'],
  ['removed', MANY, undefined, 'EndpointSlice shop/cart-1 removed'],
  [
    'one more and one less',
    slice({ '10.1.0.1': 'ready', '10.1.0.2': 'ready' }),
    slice({ '10.1.0.1': 'ready', '10.1.0.7': 'ready' }),
    'EndpointSlice shop/cart-1: endpoint 10.1.0.7 added, endpoint 10.1.0.2 removed',
  ],
  [
    'not ready',
    ONE,
    slice({ '10.1.0.1': 'not ready' }),
    'EndpointSlice shop/cart-1: endpoint 10.1.0.1 not ready',
  ],
  ['ready', slice({ '10.1.0.1': 'not ready' }), ONE, 'EndpointSlice shop/cart-1: endpoint 10.1.0.1 ready'],
  [
    'draining',
    ONE,
    slice({ '10.1.0.1': 'draining' }),
    'EndpointSlice shop/cart-1: endpoint 10.1.0.1 terminating',
  ],
  [
    'dying',
    ONE,
    slice({ '10.1.0.1': 'dying' }),
    'EndpointSlice shop/cart-1: endpoint 10.1.0.1 terminating, not serving',
  ],
  [
    'another port',
    ONE,
    { ...ONE, ports: [{ name: '', protocol: 'TCP', port: 8081 }] },
    'EndpointSlice shop/cart-1: ports changed',
  ],
  [
    'very many',
    slice({}),
    MANY,
    'EndpointSlice shop/cart-1: endpoint 10.1.1.0 added, endpoint 10.1.1.1 added, endpoint 10.1.1.2 added and 37 more',
  ],
  ['nothing but the time', ONE, { ...ONE, triggerTime: 7 }, undefined],
] as const)('a slice: %s', (_, previous, current, text) => {
  expect(describeSlice(previous, current)).toBe(text);
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
