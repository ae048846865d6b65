/** What is chosen in a view stands in its address, and comes back from there. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  NO_CHOICE,
  parseTableState,
  printTableState,
  SORTS,
  type TableState,
} from '../../page/src/views/services/viewState.ts';
import { choicePath, EVENT_KINDS, RANGES, rangeNamed, readChoice } from '../../page/src/views/syncsChoice.ts';

const queryOf = (address: string): URLSearchParams => new URL(address, 'http://node').searchParams;
const tableOf = (address: string): TableState => parseTableState(queryOf(address));
const choiceOf = (address: string): ReturnType<typeof readChoice> => readChoice(queryOf(address));

test('of services', () => {
  const text = fc.string({ unit: 'grapheme' });
  const states = fc.record<TableState>({
    search: text,
    states: fc.array(text),
    type: text,
    policy: text,
    sort: fc.constantFrom(...SORTS),
    isDescending: fc.boolean(),
    problemsFirst: fc.boolean(),
    row: text,
  });
  fc.assert(
    fc.property(states, (state) => {
      expect(tableOf(printTableState(state))).toEqual(state);
    }),
  );
});

test('of events', () => {
  const range = fc
    .tuple(fc.nat(1e12), fc.option(fc.integer({ min: 1, max: 1e6 })))
    .map(([from, length]) => ({ from, to: length === null ? Number.POSITIVE_INFINITY : from + length }));
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

test('nonsense in it is left out, and what is not chosen is not in it', () => {
  expect(printTableState(NO_CHOICE)).toBe('/services');
  expect(tableOf('/services?sort=-nothing&first=x')).toEqual(NO_CHOICE);
  const address = '/syncs?minutes=7&kind=evil&family=IPv5&time=9-1&latency=x-&latency=1';
  expect(choicePath(choiceOf(address))).toBe('/syncs');
  expect(rangeNamed('constructor')).toBe('5');
});
