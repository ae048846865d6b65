import { describe, expect, test } from 'vitest';
import { Claims, frontendKey } from '../../src/plan/claims.ts';
import { ip } from './given.ts';

const KEY = frontendKey(ip('1.1.1.1'), 'TCP', 80);

function claims(...list: readonly (readonly [id: string, createdAt: number | undefined])[]): Claims {
  const made = new Claims();
  for (const [id, createdAt] of list) made.claim(KEY, { id, createdAt, isClusterIP: false });
  return made;
}

describe('who owns a frontend', () => {
  type List = readonly (readonly [string, number | undefined])[];
  const table: readonly (readonly [List, string, string])[] = [
    [[['a', 1]], 'a', 'who is alone'],
    [
      [
        ['a', 1],
        ['b', 2],
      ],
      'a',
      'the oldest',
    ],
    [
      [
        ['b', 2],
        ['a', 1],
      ],
      'a',
      'whoever came first',
    ],
    [
      [
        ['b', 1],
        ['a', 1],
      ],
      'a',
      'of the same age, the first by name',
    ],
    [
      [
        ['b', 5],
        ['a', undefined],
      ],
      'b',
      'an age is better than none',
    ],
    [
      [
        ['b', undefined],
        ['a', undefined],
      ],
      'a',
      'without ages, the first by name',
    ],
  ];
  test.each(table)('%j: %s (%s)', (list, owner) => expect(claims(...list).ownerOf(KEY)).toBe(owner));

  test('nobody, without a claim', () => expect(new Claims().ownerOf(KEY)).toBeUndefined());
});

describe('whose frontends a claim changes, besides the claimant’s', () => {
  test('an older newcomer takes it from the owner', () => {
    expect(claims(['b', 2]).claim(KEY, { id: 'a', createdAt: 1, isClusterIP: false })).toBe('b');
  });
  test('a younger one changes nothing', () => {
    expect(claims(['a', 1]).claim(KEY, { id: 'b', createdAt: 2, isClusterIP: false })).toBeUndefined();
  });
  test('claiming again changes nothing', () => {
    expect(
      claims(['a', 1], ['b', 2]).claim(KEY, { id: 'a', createdAt: 1, isClusterIP: false }),
    ).toBeUndefined();
  });
  test('an owner that is born again loses it to who waited', () => {
    expect(claims(['a', 1], ['b', 2]).claim(KEY, { id: 'a', createdAt: 3, isClusterIP: false })).toBe('b');
  });
});

describe('a release', () => {
  test('the next one takes over', () => {
    const made = claims(['a', 1], ['b', 2], ['c', 3]);
    expect(made.release(KEY, 'a')).toBe('b');
    expect(made.ownerOf(KEY)).toBe('b');
  });
  test('who only waited changes nothing by going', () => {
    expect(claims(['a', 1], ['b', 2]).release(KEY, 'b')).toBeUndefined();
  });
  test('the last one leaves nothing behind', () => {
    const made = claims(['a', 1]);
    expect(made.release(KEY, 'a')).toBeUndefined();
    expect(made.ownerOf(KEY)).toBeUndefined();
  });
});

test('node ports have one key for all addresses, apart from addresses and protocols', () => {
  expect(frontendKey(undefined, 'TCP', 80)).toBe('*/TCP/80');
  expect(new Set([KEY, frontendKey(undefined, 'TCP', 80), frontendKey(ip('1.1.1.1'), 'UDP', 80)]).size).toBe(
    3,
  );
});

test('a cluster IP is not claimed away by an older service that names it', () => {
  const made = claims(['a', 1]);
  expect(made.claim(KEY, { id: 'b', createdAt: 2, isClusterIP: true })).toBe('a');
  expect(made.ownerOf(KEY)).toBe('b');
});

test('a claim costs the same however many wait, and going one after the other costs one sorting', () => {
  let looks = 0;
  const made = new Claims();
  const claim = (number: number): void => {
    made.claim(KEY, {
      id: `s${number}`,
      isClusterIP: false,
      get createdAt() {
        looks++;
        return number;
      },
    });
  };
  for (let number = 0; number < 1000; number++) claim(number);
  expect(looks).toBeLessThanOrEqual(2 * 1000);
  looks = 0;
  for (let number = 0; number < 999; number++) expect(made.release(KEY, `s${number}`)).toBe(`s${number + 1}`);
  // One sorting for all of them.
  expect(looks).toBeLessThanOrEqual(2 * 1000 * 10);
});

test('everybody, the owner first and then by age', () => {
  const inOrder = (made: Claims): readonly (string | undefined)[] => {
    const order = [made.ownerOf(KEY)];
    for (let id = order[0]; id !== undefined; order.push(id)) id = made.release(KEY, id);
    return order;
  };
  expect(inOrder(claims(['c', 3], ['a', 1], ['b', 2]))).toEqual(['a', 'b', 'c', undefined]);
  const made = claims(['c', 3], ['a', 1], ['b', 2]);
  expect(made.release(KEY, 'b')).toBeUndefined();
  expect(made.release(KEY, 'c')).toBeUndefined();
  expect(inOrder(made)).toEqual(['a', undefined]);
});
