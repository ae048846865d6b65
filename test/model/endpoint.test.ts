import { describe, expect, test } from 'vitest';
import { mergeSlices, portKey } from '../../src/model/endpointTracker.ts';
import { printEndpoints, slice } from '../plan/given.ts';

function merged(...slices: readonly string[]): readonly string[] {
  return printEndpoints(mergeSlices(slices.map(slice), 'node-a'));
}

describe('slices of one service are merged', () => {
  test('per port name and protocol, sorted as text', () => {
    expect(
      merged(
        'x/s1 of s http:80 http:80/udp | 10.0.1.1 | 10.0.1.10',
        'x/s2 of s http:80 | 10.0.1.2 node-a',
        'x/s3 of s 9000 | 10.0.1.3 node-b',
      ),
    ).toEqual([
      '/TCP: 10.0.1.3:9000',
      'http/TCP: 10.0.1.10:80, 10.0.1.1:80, 10.0.1.2:80 local',
      'http/UDP: 10.0.1.10:80, 10.0.1.1:80',
    ]);
  });

  test('the same address with different ports stays twice', () => {
    expect(merged('x/s1 of s http:80 | 10.0.0.1', 'x/s2 of s http:8080 | 10.0.0.1')).toEqual([
      'http/TCP: 10.0.0.1:80, 10.0.0.1:8080',
    ]);
  });

  test('a port without endpoints is absent, endpoints without ports too', () => {
    expect(merged('x/s1 of s http:80', 'x/s2 of s | 10.0.0.1')).toEqual([]);
  });

  test('all conditions are kept', () => {
    expect(
      merged('x/s of s 80 | 10.0.0.1 unready | 10.0.0.2 draining | 10.0.0.3 dead | 10.0.0.4 starting'),
    ).toEqual(['/TCP: 10.0.0.1:80 unready, 10.0.0.2:80 draining, 10.0.0.3:80 dead, 10.0.0.4:80 starting']);
  });

  test.each([
    [['draining', 'ready', 'dead'], 'a running pod that took over an address counts'],
    [['ready', 'draining', 'dead'], 'in any order'],
    [['dead', 'draining', 'ready'], 'also last'],
  ])('%j at one address: %s', (conditions) => {
    const words = conditions.map((each) => `| 10.0.0.1 ${each}`).join(' ');
    expect(merged(`x/s of s 80 ${words}`)).toEqual(['/TCP: 10.0.0.1:80']);
    expect(merged(...conditions.map((each, index) => `x/s${index} of s 80 | 10.0.0.1 ${each}`))).toEqual([
      '/TCP: 10.0.0.1:80',
    ]);
  });

  test.each([
    ['node-a', 'node-a', true],
    ['node-a', 'node-b', false],
    ['node-a', undefined, false],
    ['', undefined, false],
    ['', '', false],
  ])('this node is %j, the endpoint is on %j: local %s', (here, there, expected) => {
    const given = slice('x/s of s 80 | 10.0.0.1');
    const [only] = given.endpoints;
    const moved = { ...given, endpoints: only ? [{ ...only, nodeName: there }] : [] };
    expect(mergeSlices([moved], here).get('/TCP')?.[0]?.isLocal).toBe(expected);
  });
});

describe('limits', () => {
  const limited = (perPort: number, ...slices: readonly string[]): readonly string[] =>
    printEndpoints(mergeSlices(slices.map(slice), 'node-a', { perPort }));

  test('ready ones on this node come first, then other ready ones, by the names of their slices', () => {
    const slices = [
      'x/s1 of s 80 | 10.0.0.1 unready node-a | 10.0.0.2 | 10.0.0.3',
      'x/s2 of s 80 | 10.0.0.4 | 10.0.0.5 node-a',
    ];
    expect(limited(1, ...slices)).toEqual(['/TCP: 10.0.0.5:80 local']);
    expect(limited(2, ...slices)).toEqual(['/TCP: 10.0.0.2:80, 10.0.0.5:80 local']);
    expect(limited(4, ...slices)).toEqual(['/TCP: 10.0.0.2:80, 10.0.0.3:80, 10.0.0.4:80, 10.0.0.5:80 local']);
    expect(limited(5, ...slices)).toEqual(merged(...slices));
  });

  test('only the ports that are asked for', () => {
    const ports = new Set([portKey('b', 'TCP')]);
    const made = mergeSlices([slice('x/s1 of s a:80 b:81 | 10.0.0.1')], '', { ports });
    expect(printEndpoints(made)).toEqual(['b/TCP: 10.0.0.1:81']);
  });
});
