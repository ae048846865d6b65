/** Which events are asked for, and the address that says so. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  choicePath,
  chosen,
  EVENT_KINDS,
  RANGES,
  rangeNamed,
  readChoice,
} from '../../page/src/views/syncsChoice.ts';
import { EventLog } from '../../page/src/views/syncsLog.ts';
import { changeAt, syncAt } from './events.ts';

function choiceOf(address: string): ReturnType<typeof readChoice> {
  return readChoice(new URL(address, 'http://node').searchParams);
}

describe('the address', () => {
  test('says what is asked for', () => {
    const address = '/syncs?minutes=30&kind=change&kind=sync&family=IPv6&service=shop%2F*&latency=2-5';
    expect(choiceOf(address)).toEqual({
      range: '30',
      kinds: ['change', 'sync'],
      family: 'IPv6',
      service: 'shop/*',
      time: undefined,
      latency: { from: 2, to: 5 },
    });
    expect(choicePath(choiceOf(address))).toBe(address);
    expect(choicePath(choiceOf('/syncs?minutes=5'))).toBe('/syncs');
  });

  test('nonsense in it is left out', () => {
    const address = '/syncs?minutes=7&kind=evil&family=IPv5&time=9-1&latency=x-&latency=1';
    expect(choicePath(choiceOf(address))).toBe('/syncs');
    expect(rangeNamed('constructor')).toBe('5');
  });

  test('what is chosen comes back', () => {
    const range = fc
      .tuple(fc.nat(1e12), fc.option(fc.integer({ min: 1, max: 1e6 })))
      .map(([from, length]) => ({
        from,
        to: length === null ? Number.POSITIVE_INFINITY : from + length,
      }));
    const choice = fc.record({
      range: fc.constantFrom(...Object.keys(RANGES).map(rangeNamed)),
      kinds: fc.subarray([...EVENT_KINDS]),
      family: fc.constantFrom('IPv4' as const, 'IPv6' as const, undefined),
      service: fc.string(),
      time: fc.option(range, { nil: undefined }),
      latency: fc.option(range, { nil: undefined }),
    });
    fc.assert(
      fc.property(choice, (each) => {
        const latency = each.time ? undefined : each.latency;
        expect(choiceOf(choicePath(each))).toEqual({ ...each, latency });
      }),
    );
  });
});

describe('events', () => {
  const log = new EventLog();
  log.add([
    changeAt(10),
    syncAt(11),
    changeAt(20, { service: 'bank/db', family: 'IPv6', seenAt: 19 }),
    syncAt(21, { family: 'IPv6' }),
    { kind: 'refused', at: 22, family: 'IPv4', servicePort: 'shop/web:http/TCP', error: 'no' },
    { kind: 'lost', at: 23, events: 3 },
  ]);
  const timesFor = (query: string): readonly number[] =>
    chosen(log.entries, choiceOf(`/syncs?${query}`), 0).map(({ at }) => at);

  test('all of them, newest first', () => expect(timesFor('')).toEqual([23, 22, 21, 20, 11, 10]));
  test('by kind', () => expect(timesFor('kind=sync&kind=refused')).toEqual([22, 21, 11]));
  test('by family: what is lost may be of any', () => expect(timesFor('family=IPv6')).toEqual([23, 21, 20]));
  test('by service, as with watch', () => expect(timesFor('service=shop/*')).toEqual([23, 22, 10]));
  test('by time', () => expect(timesFor('time=11-21')).toEqual([20, 11]));
  test('by latency', () => expect(timesFor('latency=1-2')).toEqual([20]));
  test('by latency, only those in the drawing', () =>
    expect(chosen(log.entries, choiceOf('/syncs?latency=0-100'), 15).map(({ at }) => at)).toEqual([20]));
});
