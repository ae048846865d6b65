import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readLine, type ServiceLine } from '../../page/src/views/services/line.ts';
import { isFound, isNarrower, termsOf } from '../../page/src/views/services/search.ts';
import { Selector } from '../../page/src/views/services/selection.ts';
import {
  NO_CHOICE,
  parseTableState,
  printTableState,
  SORTS,
  sortedBy,
  type TableState,
  withStateToggled,
} from '../../page/src/views/services/viewState.ts';

const LINES: readonly ServiceLine[] = [
  'shop/api\tClusterIP\t10.96.0.10\t\t80/TCP\t3/3 (1 here)\t\t\tok',
  'shop/cart\tNodePort\t10.96.0.40\t\t80:30040/TCP\t0/2\t\t\tno endpoints: http has no usable endpoint',
  'shop/dns\tClusterIP\t10.96.0.53,fd00:96::53\t\t53/UDP,53/TCP\t2/2\tinternal Local\t\tok',
  'shop/web\tLoadBalancer\t10.96.0.20\t203.0.113.10\t8080:30020/TCP\t9/9\texternal Local, internal Local\t\trefused: why',
].map(readLine);
const NONE = new Map<string, ReadonlySet<string>>();

function found(state: Partial<TableState>, endpoints = NONE): readonly string[] {
  const { lines } = new Selector().select(LINES, { ...NO_CHOICE, ...state }, endpoints);
  return lines.map(({ service }) => service.slice('shop/'.length));
}

describe('search', () => {
  test.each<[search: string, services: readonly string[]]>([
    ['', ['api', 'cart', 'dns', 'web']],
    ['CART', ['cart']],
    ['shop/a', ['api']],
    ['10.96.0.', ['api', 'cart', 'dns', 'web']],
    ['fd00:96::53', ['dns']],
    ['203.0.113.10:8080', ['web']],
    ['203.0.113.10:80', []],
    ['[fd00:96::53]:53', ['dns']],
    [':80', ['api', 'cart', 'web']],
    [':80/', ['api', 'cart']],
    [':300', ['cart', 'web']],
    ['53/udp', ['dns']],
    ['shop 10.96 :30020', ['web']],
    ['nothing', []],
    ['<img onerror=alert(1)>', []],
  ])('"%s"', (search, services) => expect(found({ search })).toEqual(services));

  test('services by their endpoints, with what else is typed', () => {
    const endpoints = new Map([['10.244.1.', new Set(['shop/web', 'shop/api'])]]);
    expect(found({ search: '10.244.1.' }, endpoints)).toEqual(['api', 'web']);
    expect(found({ search: '10.244.1. web' }, endpoints)).toEqual(['web']);
    expect(found({ search: '10.244.2.' }, endpoints)).toEqual([]);
  });

  test.each([
    ['10.244.', true],
    ['10.244.1.7', true],
    ['fd00:244::7', true],
    ['10', false],
    ['10.2', false],
    ['web', false],
    [':80', false],
    ['fd00', false],
  ])('%s is the beginning of an address: %s', (text, isAddress) => {
    expect(termsOf(text)).toEqual([{ text, isAddress }]);
  });

  test('key by key finds what a search for the whole finds', () => {
    const typed = fc.stringMatching(/^[a-z0-9 .:/]{0,12}$/);
    fc.assert(
      fc.property(fc.array(typed, { maxLength: 6 }), (searches) => {
        const selector = new Selector();
        for (const search of searches.flatMap(prefixesOf)) {
          const state = { ...NO_CHOICE, search };
          expect(selector.select(LINES, state, NONE)).toEqual(new Selector().select(LINES, state, NONE));
        }
      }),
    );
  });

  test('what is narrower finds nothing else', () => {
    const typed = fc.stringMatching(/^[a-z0-9 .:/]{0,8}$/);
    fc.assert(
      fc.property(typed, typed, (before, more) => {
        const [wide, narrow] = [termsOf(before), termsOf(before + more)];
        if (!isNarrower(narrow, wide)) return;
        for (const line of LINES)
          expect(isFound(line, narrow, NONE) && !isFound(line, wide, NONE)).toBe(false);
      }),
    );
  });
});

function prefixesOf(text: string): readonly string[] {
  return Array.from({ length: text.length + 1 }, (_, length) => text.slice(0, length));
}

describe('filters', () => {
  test('by state, type and policy', () => {
    expect(found({ states: ['refused', 'no endpoints'] })).toEqual(['cart', 'web']);
    expect(found({ type: 'ClusterIP' })).toEqual(['api', 'dns']);
    expect(found({ policy: 'internal Local' })).toEqual(['dns', 'web']);
    expect(found({ policy: 'Cluster' })).toEqual(['api', 'cart']);
    expect(found({ policy: 'internal Local', states: ['ok'], type: 'ClusterIP', search: ':53' })).toEqual([
      'dns',
    ]);
  });

  test('a count is what choosing it would leave', () => {
    const choices = fc.record({
      search: fc.constantFrom('', '10.96', ':80'),
      states: fc.subarray(['ok', 'refused', 'no endpoints']),
      type: fc.constantFrom('', 'ClusterIP', 'NodePort'),
      policy: fc.constantFrom('', 'Cluster', 'external Local'),
    });
    fc.assert(
      fc.property(choices, (choice) => {
        const state = { ...NO_CHOICE, ...choice };
        const { states, types, policies } = new Selector().select(LINES, state, NONE);
        for (const [value, count] of states)
          expect(found({ ...choice, states: [value] })).toHaveLength(count);
        for (const [type, count] of types) expect(found({ ...choice, type })).toHaveLength(count);
        for (const [policy, count] of policies) expect(found({ ...choice, policy })).toHaveLength(count);
      }),
    );
  });
});

describe('order', () => {
  test.each<[state: Partial<TableState>, services: readonly string[]]>([
    [{ isDescending: true }, ['web', 'dns', 'cart', 'api']],
    [{ sort: 'endpoints' }, ['cart', 'dns', 'api', 'web']],
    [{ sort: 'type' }, ['api', 'dns', 'web', 'cart']],
    [{ sort: 'state', isDescending: true }, ['web', 'cart', 'api', 'dns']],
    [{ problemsFirst: true }, ['web', 'cart', 'api', 'dns']],
    [{ problemsFirst: true, sort: 'type' }, ['web', 'cart', 'api', 'dns']],
  ])('%j', (state, services) => expect(found(state)).toEqual(services));

  test('a column is sorted by its most first, then turned', () => {
    const once = sortedBy(NO_CHOICE, 'endpoints');
    expect([once.isDescending, sortedBy(once, 'endpoints').isDescending]).toEqual([true, false]);
    expect(sortedBy(once, 'type').isDescending).toBe(false);
  });
});

describe('the address', () => {
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

  test('has all that is chosen', () => {
    fc.assert(
      fc.property(states, (state) => {
        const query = new URLSearchParams(printTableState(state).split('?')[1] ?? '');
        expect(parseTableState(query)).toEqual(state);
      }),
    );
  });

  test('is short where nothing is', () => expect(printTableState(NO_CHOICE)).toBe('/services'));

  test('with what is not known is as without it', () => {
    expect(parseTableState(new URLSearchParams('sort=-nothing&first=x'))).toEqual(NO_CHOICE);
  });

  test('a state chosen twice is not chosen', () => {
    const once = withStateToggled(NO_CHOICE, 'refused');
    expect(once.states).toEqual(['refused']);
    expect(withStateToggled(once, 'refused')).toEqual(NO_CHOICE);
  });
});
