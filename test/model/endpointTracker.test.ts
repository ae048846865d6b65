import { describe, expect, test } from 'vitest';
import { EndpointTracker } from '../../src/model/endpointTracker.ts';
import { applyAll, printEndpoints, slice } from '../plan/given.ts';

/** `+ slice` sets one, `- ns/name` removes it; each answers whether it was a change. */
function tell(tracker: EndpointTracker, line: string): boolean {
  const text = line.slice(2);
  if (line.startsWith('+')) {
    const given = slice(text);
    return tracker.update(`${given.namespace}/${given.name}`, given);
  }
  return tracker.update(text, undefined);
}

/** The endpoints of each service that has others than before. */
function play(tracker: EndpointTracker, ...lines: readonly string[]): readonly string[] {
  for (const line of lines) tell(tracker, line);
  const print = (service: string): string => printEndpoints(tracker.endpointsOf(service)).join('; ');
  const before = new Map(tracker.pendingServices().map((service) => [service, print(service)]));
  return [...applyAll(tracker)]
    .filter((service) => print(service) !== before.get(service))
    .map((service) => `${service}: ${before.get(service)} => ${print(service)}`);
}

function tracker(...lines: readonly string[]): EndpointTracker {
  const made = new EndpointTracker('IPv4', 'node-a');
  play(made, ...lines);
  return made;
}

const ONE = '+ x/s1 of s 80 | 10.0.0.1 node-a';
const TWO = '+ x/s2 of s 80 | 10.0.0.2 node-b';

describe('what a sync is told', () => {
  const table: readonly (readonly [string, readonly string[], readonly string[], readonly string[]])[] = [
    ['a new slice', [], [ONE], ['x/s:  => /TCP: 10.0.0.1:80 local']],
    ['two slices of one service', [], [ONE, TWO], ['x/s:  => /TCP: 10.0.0.1:80 local, 10.0.0.2:80']],
    ['added and removed', [], [ONE, '- x/s1'], []],
    ['an unknown slice is removed', [ONE], ['- x/other'], []],
    [
      'one of two slices is removed',
      [ONE, TWO],
      ['- x/s1'],
      ['x/s: /TCP: 10.0.0.1:80 local, 10.0.0.2:80 => /TCP: 10.0.0.2:80'],
    ],
    ['both are removed', [ONE, TWO], ['- x/s1', '- x/s2'], ['x/s: /TCP: 10.0.0.1:80 local, 10.0.0.2:80 => ']],
    ['changed and changed back', [ONE], ['+ x/s1 of s 80 | 10.0.0.9', ONE], []],
    ['removed and put back', [ONE], ['- x/s1', ONE], []],
    [
      'only the last version before a sync counts',
      [ONE],
      ['+ x/s1 of s 80 | 10.0.0.8', '+ x/s1 of s 80 | 10.0.0.9 unready'],
      ['x/s: /TCP: 10.0.0.1:80 local => /TCP: 10.0.0.9:80 unready'],
    ],
    [
      'a slice moves to another service',
      [ONE],
      ['+ x/s1 of t 80 | 10.0.0.1 node-a'],
      ['x/s: /TCP: 10.0.0.1:80 local => ', 'x/t:  => /TCP: 10.0.0.1:80 local'],
    ],
    [
      'it moves twice between syncs',
      [ONE],
      ['+ x/s1 of t 80 | 10.0.0.1 node-a', '+ x/s1 of u 80 | 10.0.0.1 node-a'],
      ['x/s: /TCP: 10.0.0.1:80 local => ', 'x/u:  => /TCP: 10.0.0.1:80 local'],
    ],
    ['it moves away and back', [ONE], ['+ x/s1 of t 80 | 10.0.0.1 node-a', ONE], []],
    [
      'an endpoint moves between slices',
      [ONE, TWO],
      ['- x/s1', '+ x/s2 of s 80 | 10.0.0.1 node-a | 10.0.0.2 node-b'],
      [],
    ],
    [
      'another order of the same',
      ['+ x/s1 of s 80 | 10.0.0.1 | 10.0.0.2'],
      ['+ x/s1 of s 80 | 10.0.0.2 | 10.0.0.1'],
      [],
    ],
    ['a slice of the other family', [ONE], ['+ x/six of s 80 | fd00::1'], []],
    [
      'a slice becomes one of the other family',
      [ONE],
      ['+ x/s1 of s 80 | fd00::1'],
      ['x/s: /TCP: 10.0.0.1:80 local => '],
    ],
    [
      'the same slice name in another namespace',
      [ONE],
      ['+ y/s1 of s 80 | 10.0.0.3'],
      ['y/s:  => /TCP: 10.0.0.3:80'],
    ],
    [
      'a condition changes',
      [ONE],
      ['+ x/s1 of s 80 | 10.0.0.1 node-a draining'],
      ['x/s: /TCP: 10.0.0.1:80 local => /TCP: 10.0.0.1:80 local draining'],
    ],
  ];
  test.each(table)('%s', (_, before, lines, expected) => {
    expect(play(tracker(...before), ...lines)).toEqual(expected);
  });
});

test.each([
  [ONE, false, 'the same again'],
  ['+ x/s1 of s 80 | 10.0.0.9', true, 'another endpoint'],
  ['+ x/s1 of t 80 | 10.0.0.1 node-a', true, 'another service'],
  ['- x/s1', true, 'removed'],
  ['- x/nobody', false, 'an unknown one removed'],
  ['+ x/six of s 80 | fd00::1', false, 'the other family'],
])('%s: a change: %s (%s)', (line, expected) => expect(tell(tracker(ONE), line)).toBe(expected));

test('a service without slices is forgotten', () => {
  const made = tracker(ONE, TWO);
  play(made, '- x/s1', '- x/s2');
  expect(made.endpointsOf('x/s').size).toBe(0);
  expect(made.pendingCount).toBe(0);
  expect(play(made, ONE)).toEqual(['x/s:  => /TCP: 10.0.0.1:80 local']);
});

test('a time stamp alone is no change of endpoints', () => {
  const made = tracker(ONE);
  const stamped = { ...slice(ONE.slice(2)), triggerTime: 5 };
  expect(made.update('x/s1', stamped)).toBe(true);
  expect(applyAll(made).size).toBe(0);
});
