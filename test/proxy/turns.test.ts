import { expect, test } from 'vitest';
import { Turns } from '../../src/proxy/writeOrder.ts';

/** Services are large whose name says so. */
function turns(): Turns {
  return new Turns({
    costOf: (service) => (service.includes('LARGE') ? 1_000_000 : service.startsWith('new-') ? 1000 : 1),
    isServed: (service) => !service.startsWith('new-'),
  });
}

/** One run: what is taken by each of its syncs. `arrivals`: what comes while a sync is under way. */
function run(
  made: Turns,
  waiting: Set<string>,
  ...arrivals: readonly (readonly string[])[]
): readonly string[] {
  const syncs: string[] = [];
  do {
    const taken = made.next(waiting, syncs.length === 0);
    for (const service of taken) waiting.delete(service);
    for (const service of arrivals[syncs.length] ?? []) waiting.add(service);
    syncs.push(taken.join(' '));
  } while (made.isUnfinished(waiting));
  return syncs;
}

test('small ones together', () => {
  expect(run(turns(), new Set(['a', 'b', 'c']))).toEqual(['a b c']);
});

test('a large one by itself, after the small ones', () => {
  expect(run(turns(), new Set(['a', 'LARGE', 'b']))).toEqual(['a b', 'LARGE']);
  expect(run(turns(), new Set(['LARGE']))).toEqual(['LARGE']);
});

test('what comes meanwhile waits for one large one at most', () => {
  expect(run(turns(), new Set(['1-LARGE', '2-LARGE', '3-LARGE']), ['a'], ['b'], ['c'])).toEqual([
    '1-LARGE',
    'a',
    '2-LARGE',
    'b c',
    '3-LARGE',
  ]);
});

test('a large one does not wait for small ones that come all the time', () => {
  expect(run(turns(), new Set(['a', 'LARGE']), ['b'], ['c'], ['d'])).toEqual(['a', 'LARGE', 'b c']);
});

test('a large one that changes all the time does not keep a run from its end', () => {
  const waiting = new Set(['LARGE']);
  expect(run(turns(), waiting, ['LARGE', 'a'], ['LARGE', 'b'])).toEqual(['LARGE', 'a']);
  expect([...waiting]).toEqual(['LARGE', 'b']);
});

test('one that is gone, or small by now, is not waited for', () => {
  const made = turns();
  expect(made.next(['a', '1-LARGE', '2-LARGE'], true)).toEqual(['a']);
  expect(made.isUnfinished([])).toBe(false);
  expect(made.next([], false)).toEqual([]);
});

test('of thousands that are new a sync takes some; one that is served does not wait for all of them', () => {
  const many = Array.from({ length: 50 }, (_, index) => `new-${index}`);
  const syncs = run(turns(), new Set(many), ['a'], ['b', 'new-50', 'LARGE']);
  expect(syncs.map((taken) => taken.split(' ').length)).toEqual([20, 21, 12]);
  expect(syncs[1]).toMatch(/ a$/);
  expect(syncs[2]).toBe([...many.slice(40), 'b', 'new-50'].join(' '));
});

test('large ones come between, and new ones all the time do not keep a run from its end', () => {
  const many = Array.from({ length: 30 }, (_, index) => `new-${index}`);
  const more = Array.from({ length: 30 }, (_, index) => `new-more-${index}`);
  const waiting = new Set([...many, '1-LARGE', '2-LARGE']);
  const syncs = run(turns(), waiting, more);
  expect(syncs.map((taken) => taken.split(' ').length)).toEqual([20, 1, 20, 1, 20]);
  expect(waiting.size).toBe(0);
});
