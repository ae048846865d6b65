/** The kernel refuses something: who is told, who is served all the same, and when it is tried again. */
import { describe, expect, test } from 'vitest';
import type { TableTransaction } from '../../../../src/modes/nftables/rules/table.ts';
import { ip } from '../../../plan/given.ts';
import type { Fault } from './fakeKernel.ts';
import { Harness } from './harness.ts';
import { CLIENT } from './clients.ts';
import { printPlain } from './cluster.ts';

const X = ['a/x 10.96.0.1 80@30080 ext=198.51.100.1', 'a/x-1 of x 80 | 10.1.0.1 node-b'];
const Y = ['b/y 10.96.0.2 80', 'b/y-1 of y 80 | 10.1.0.2 node-b | 10.2.0.2 node-b'];

/** A transaction that adds such an element. */
function refusing(pattern: RegExp, name = 'ENOMEM'): Fault {
  return (transaction: TableTransaction) =>
    transaction.some(
      (operation) =>
        operation.kind === 'addElements' &&
        operation.elements.some((element) => pattern.test(printPlain(element))),
    )
      ? name
      : undefined;
}

const elementsOf = ({ kernel }: Harness, pattern: RegExp): readonly string[] =>
  kernel.elements.map(printPlain).filter((line) => pattern.test(line));

describe('a service port whose elements are refused', () => {
  test('at a start: it is named, and all others are served', async () => {
    const harness = new Harness();
    harness.kernel.fault = refusing(/10\.1\.0\.1/);
    const report = await harness.sync(...X, ...Y);
    expect([...report.refused]).toEqual([
      [
        'a/x/TCP',
        expect.objectContaining({ code: 'NFTABLES_REFUSED', message: expect.stringContaining('ENOMEM') }),
      ],
    ]);
    expect(elementsOf(harness, /^any/)).toEqual([
      'any-2 { 10.96.0.2 . tcp . 80 . 0 : 10.1.0.2 . 80 }',
      'any-2 { 10.96.0.2 . tcp . 80 . 1 : 10.2.0.2 . 80 }',
    ]);
  });

  test('in a change: what it had stays, and the others change', async () => {
    const harness = new Harness();
    await harness.sync(...X, ...Y);
    harness.kernel.fault = refusing(/10\.9\.9\.9/);
    const report = await harness.sync(
      'a/x-1 of x 80 | 10.1.0.1 node-b | 10.9.9.9 node-b | 10.9.9.8 node-b',
      'b/y-1 of y 80 | 10.1.0.3 node-b | 10.1.0.4 node-b | 10.1.0.5 node-b | 10.1.0.6 node-b',
    );
    expect([...report.refused.keys()]).toEqual(['a/x/TCP']);
    expect(harness.kernel.connect({ ...CLIENT, destination: ip('10.96.0.1') })).toBe('10.1.0.1');
    expect(elementsOf(harness, / 10\.96\.0\.2 .*:/)).toEqual([
      'any-4 { 10.96.0.2 . tcp . 80 . 0 : 10.1.0.3 . 80 }',
      'any-4 { 10.96.0.2 . tcp . 80 . 1 : 10.1.0.4 . 80 }',
      'any-4 { 10.96.0.2 . tcp . 80 . 2 : 10.1.0.5 . 80 }',
      'any-4 { 10.96.0.2 . tcp . 80 . 3 : 10.1.0.6 . 80 }',
    ]);
  });

  test('others that go are gone', async () => {
    const harness = new Harness();
    await harness.sync(...X, ...Y);
    harness.kernel.fault = refusing(/10\.9\.9\.9/);
    await harness.sync('a/x-1 of x 80 | 10.9.9.9 node-b', '- b/y', '- b/y-1');
    expect(elementsOf(harness, /^any/)).toEqual([
      'any-1 { 10.96.0.1 . tcp . 80 : 10.1.0.1 . 80 }',
      'any-1 { 198.51.100.1 . tcp . 80 : 10.1.0.1 . 80 }',
    ]);
  });

  test('it is tried again by every sync, and named until the kernel relents', async () => {
    const harness = new Harness();
    harness.kernel.fault = refusing(/10\.1\.0\.1/);
    await harness.sync(...X, ...Y);
    expect([...(await harness.sync()).refused.keys()]).toEqual(['a/x/TCP']);
    expect([...(await harness.sync('c/z 10.96.0.3 80')).refused.keys()]).toEqual(['a/x/TCP']);
    harness.kernel.fault = () => undefined;
    expect((await harness.sync()).refused.size).toBe(0);
    expect(harness.world).toEqual(await harness.fromScratch());
    expect((await harness.sync(...Y)).kind).toBe('nothing');
  });

  test('when it is deleted all is well', async () => {
    const harness = new Harness();
    harness.kernel.fault = refusing(/10\.1\.0\.1/);
    await harness.sync(...X, ...Y);
    expect((await harness.sync('- a/x', '- a/x-1')).refused.size).toBe(0);
    expect(harness.world).toEqual(await harness.fromScratch());
  });

  test('one of a thousand is found in few tries', async () => {
    const harness = new Harness();
    harness.kernel.fault = refusing(/10\.1\.0\.1/);
    const many = Array.from({ length: 1000 }, (_, n) => `c/s${n} 10.97.${n >> 8}.${n & 255} 80`);
    const report = await harness.sync(...X, ...many);
    expect([...report.refused.keys()]).toEqual(['a/x/TCP']);
    expect(harness.kernel.attempts).toBeLessThan(40);
  });
});

describe('what belongs to no service', () => {
  test('the table itself: the sync fails by its name, and the next one succeeds', async () => {
    const harness = new Harness();
    harness.kernel.fault = (transaction) =>
      transaction.some(({ kind }) => kind === 'addSet') ? 'ENOMEM' : undefined;
    await expect(harness.sync(...X)).rejects.toThrow(expect.objectContaining({ code: 'NFTABLES_REFUSED' }));
    harness.kernel.fault = () => undefined;
    expect((await harness.sync()).refused.size).toBe(0);
    expect(harness.world).toEqual(await harness.fromScratch());
  });

  test('what should go stays refused: the next sync finishes', async () => {
    const harness = new Harness();
    await harness.sync(...X, ...Y);
    harness.kernel.fault = (transaction) =>
      transaction.some(({ kind }) => kind === 'deleteElements') ? 'ENOMEM' : undefined;
    await expect(harness.sync('- a/x', '- a/x-1')).rejects.toThrow('ENOMEM');
    harness.kernel.fault = () => undefined;
    await harness.sync();
    expect(harness.world).toEqual(await harness.fromScratch());
  });
});

describe('ranges that nest, while nobody looked', () => {
  test.each([
    ['9.9.0.0/16', '9.9.9.0/24'],
    ['9.9.9.0/24', '9.9.0.0/16'],
    ['9.9.9.1/32,9.9.9.2/32', '9.9.9.0/24'],
  ])('from %s to %s', async (before, after) => {
    const harness = new Harness();
    await harness.sync(`a/x 10.96.0.1 80 lb=1.1.1.1 ranges=${before}`, 'a/x-1 of x 80 | 10.1.0.1 node-b');
    harness.cluster.tell(`a/x 10.96.0.1 80 lb=1.1.1.1 ranges=${after}`);
    const next = harness.restarted();
    expect((await next.sync()).refused.size).toBe(0);
    expect(next.world).toEqual(await next.fromScratch());
  });
});

test('a look that is asked for during a sync is not forgotten', async () => {
  const harness = new Harness();
  harness.kernel.before = () => harness.requestFull();
  await harness.sync(...X);
  harness.kernel.before = () => {};
  expect((await harness.sync()).kind).toBe('full');
  expect((await harness.sync()).kind).toBe('nothing');
});

describe('what is left of another time', () => {
  test('a set that will not go is no failure, and goes with the next sync', async () => {
    const harness = new Harness();
    await harness.sync(...Y);
    const restarted = harness.restarted();
    restarted.kernel.fault = (transaction) =>
      transaction.some(({ kind }) => kind === 'deleteSet') ? 'EBUSY' : undefined;
    const report = await restarted.sync('b/y-1 of y 80 | 10.1.0.2 node-b');
    expect([report.counts['cleanup.failures'], report.refused.size]).toEqual([1, 0]);
    expect(restarted.kernel.table?.sets.has('any-2')).toBe(true);
    restarted.kernel.fault = () => undefined;
    expect((await restarted.sync()).counts['cleanup.failures']).toBeUndefined();
    expect(restarted.kernel.table?.sets.has('any-2')).toBe(false);
  });
});

describe('the table goes while it is being written', () => {
  const MANY = Array.from({ length: 3000 }, (_, n) => [
    `a/s${n} 10.96.${n >> 8}.${n & 255} 80`,
    `a/s${n}-1 of s${n} 80 | 10.1.${n >> 8}.${n & 255} node-b`,
  ]).flat();

  test('it is begun anew at once, and nobody is blamed', async () => {
    const harness = new Harness();
    let flushes = 3;
    harness.kernel.after = () => {
      if (harness.kernel.taken.length % 2 === 0 && flushes-- > 0) harness.kernel.table = undefined;
    };
    const report = await harness.sync(...MANY);
    expect(report.refused.size).toBe(0);
    expect(flushes).toBeLessThan(0);
    expect(harness.kernel.attempts).toBeLessThan(30);
    expect(harness.world).toEqual(await harness.fromScratch());
  });

  test('for ever: the sync fails, and says so', async () => {
    const harness = new Harness();
    harness.kernel.after = () => {
      if (harness.kernel.taken.length % 2 === 0) harness.kernel.table = undefined;
    };
    await expect(harness.sync(...MANY)).rejects.toMatchObject({ code: 'NFTABLES_CHANGED' });
    expect(harness.kernel.attempts).toBeLessThan(30);
    harness.kernel.after = () => {};
    await harness.sync();
    expect(harness.world).toEqual(await harness.fromScratch());
  });

  test('a kernel that takes nothing is not asked about everybody', async () => {
    const harness = new Harness();
    harness.kernel.fault = refusing(/./);
    await expect(harness.sync(...MANY)).rejects.toMatchObject({ code: 'NFTABLES_REFUSED' });
    expect(harness.kernel.attempts).toBeLessThan(1000);
  });
});
