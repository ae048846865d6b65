/** An ordinary change costs what changed, whatever the number of services. */
import { describe, expect, test } from 'vitest';
import { Harness } from './harness.ts';

function world(count: number): readonly string[] {
  return Array.from({ length: count }, (_, n) => [
    `a/s${n} 10.96.${n >> 8}.${n & 255} 80@${20_000 + n}`,
    `a/s${n}-1 of s${n} 80 ${pool(2 + (n % 3), n)}`,
  ]).flat();
}

function pool(size: number, n = 0): string {
  return Array.from({ length: size }, (_, index) =>
    `| 10.244.${n >> 8}.${n & 255} node-b`.replace('10.244', `10.${index + 1}`),
  ).join(' ');
}

describe.each([3, 200, 2000])('among %i services', (count) => {
  test('an endpoint that is replaced is one transaction of its own elements, and nothing is read', async () => {
    const harness = new Harness();
    await harness.sync(...world(count));
    const report = await harness.sync('a/s0-1 of s0 80 | 10.1.0.0 node-b | 10.9.9.9 node-b');
    expect(report).toMatchObject({ kind: 'incremental', commits: 1, objects: 4 });
    expect(harness.sent).toEqual([
      [
        '- any-2 { 10.96.0.0 . tcp . 80 . 1 : 10.2.0.0 . 80 }',
        '- ports-any-2 { tcp . 20000 . 1 : 10.2.0.0 . 80 }',
        '+ any-2 { 10.96.0.0 . tcp . 80 . 1 : 10.9.9.9 . 80 }',
        '+ ports-any-2 { tcp . 20000 . 1 : 10.9.9.9 . 80 }',
      ],
    ]);
    expect(harness.kernel.inspections + harness.kernel.clientReads).toBe(0);
  });

  test('a pool that grows from 3 to 4 is in both maps for a moment', async () => {
    const harness = new Harness();
    await harness.sync(...world(count));
    await harness.sync(`a/s1-1 of s1 80 ${pool(4, 1)}`);
    expect(harness.sent.map((lines) => lines.filter((line) => /^[-+] any/.test(line)))).toEqual([
      [
        '+ any-4 { 10.96.0.1 . tcp . 80 . 0 : 10.1.0.1 . 80 }',
        '+ any-4 { 10.96.0.1 . tcp . 80 . 1 : 10.2.0.1 . 80 }',
        '+ any-4 { 10.96.0.1 . tcp . 80 . 2 : 10.3.0.1 . 80 }',
        '+ any-4 { 10.96.0.1 . tcp . 80 . 3 : 10.4.0.1 . 80 }',
      ],
      [
        '- any-3 { 10.96.0.1 . tcp . 80 . 0 : 10.1.0.1 . 80 }',
        '- any-3 { 10.96.0.1 . tcp . 80 . 1 : 10.2.0.1 . 80 }',
        '- any-3 { 10.96.0.1 . tcp . 80 . 2 : 10.3.0.1 . 80 }',
      ],
    ]);
    expect(harness.sent.map((lines) => lines.length)).toEqual([8, 6]);
    expect(harness.kernel.inspections + harness.kernel.clientReads).toBe(0);
  });

  test('a size that nobody had before comes with its map and its rule', async () => {
    const harness = new Harness();
    await harness.sync(...world(count));
    await harness.sync(`a/s1-1 of s1 80 ${pool(6, 1)}`);
    const [sent = [], left = []] = harness.sent;
    expect(sent.filter((line) => !/^[-+]/.test(line))).toEqual([
      'set any-6',
      'set ports-any-6',
      'rule any',
      'rule ports-any',
    ]);
    expect(sent.filter((line) => line.startsWith('+'))).toHaveLength(2 * 6);
    expect(left.filter((line) => line.startsWith('-'))).toHaveLength(2 * 3);
    expect(harness.kernel.attempts).toBe(2);
  });

  test('a service more is its own elements', async () => {
    const harness = new Harness();
    await harness.sync(...world(count));
    await harness.sync('b/y 10.97.0.1 80', 'b/y-1 of y 80 | 10.1.9.9 node-a | 10.2.9.9 node-b');
    expect(harness.sent.map((lines) => [...lines].sort())).toEqual([
      [
        '+ any-2 { 10.97.0.1 . tcp . 80 . 0 : 10.1.9.9 . 80 }',
        '+ any-2 { 10.97.0.1 . tcp . 80 . 1 : 10.2.9.9 . 80 }',
        '+ cluster-ips { 10.97.0.1 }',
        '+ hairpin { 10.1.9.9 . tcp . 10.1.9.9 . 80 }',
        '+ masquerade-others { 10.97.0.1 . tcp . 80 }',
        '+ service-ips { 10.97.0.1 }',
      ],
    ]);
    expect(harness.kernel.inspections).toBe(0);
  });
});

test('nothing changed: nothing is sent, and nothing read', async () => {
  const harness = new Harness();
  await harness.sync(...world(3));
  expect((await harness.sync()).kind).toBe('nothing');
  expect(harness.kernel.attempts + harness.kernel.inspections + harness.kernel.clientReads).toBe(0);
});

test('a change that means nothing here sends nothing', async () => {
  const harness = new Harness();
  await harness.sync('a/x 10.96.0.1 80', 'a/x-1 of x 80 | 10.244.0.1 node-b');
  await harness.sync('a/x-1 of x 80 | 10.244.0.1 node-b | 10.244.0.2 node-b unready');
  expect(harness.sent).toEqual([]);
});

test('an address that goes from one service to another at once', async () => {
  const harness = new Harness();
  await harness.sync(
    'a/x 10.96.0.1 80 ext=1.1.1.1 born=1',
    'a/x-1 of x 80 | 10.1.0.1 node-b',
    'a/y 10.96.0.2 80 ext=1.1.1.1 born=5',
    'a/y-1 of y 80 | 10.1.0.2 node-b',
  );
  const report = await harness.sync('a/x 10.96.0.1 80 ext=1.1.1.1 born=9');
  expect(report).toMatchObject({ kind: 'incremental', commits: 1 });
  expect(harness.world).toEqual(await harness.fromScratch());
});

describe('a cold start', () => {
  test('comes in transactions of about one size, and the hooks come last', async () => {
    const harness = new Harness();
    harness.tick = 15;
    const report = await harness.sync(...world(2000));
    const sizes = harness.kernel.taken.map((transaction) =>
      transaction.reduce(
        (sum, operation) => sum + ('elements' in operation ? operation.elements.length : 0),
        0,
      ),
    );
    // One service's elements: four endpoints at two frontends, and two sets for each of these.
    expect(Math.max(...sizes)).toBeLessThanOrEqual(2000 + 12);
    expect(report.commits).toBe(harness.kernel.taken.length);
    const hooked = harness.kernel.taken.map((transaction) =>
      transaction.some((operation) => operation.kind === 'addChain' && operation.hook !== undefined),
    );
    expect(hooked.indexOf(true)).toBe(hooked.length - 1);
    expect(sizes.at(-1)).toBe(0);
  });

  test('until the last transaction nobody is refused', async () => {
    const harness = new Harness();
    harness.kernel.after = (transaction) => {
      const isLast = transaction.some((each) => each.kind === 'addChain' && each.hook !== undefined);
      expect([...(harness.kernel.table?.chains.values() ?? [])].some(({ hook }) => hook)).toBe(isLast);
    };
    await harness.sync(...world(400));
  });
});

describe('somebody else was at the table', () => {
  async function served(): Promise<Harness> {
    const harness = new Harness();
    await harness.sync(...world(5));
    return harness;
  }

  test('rules that are gone come back, and no element is read or written', async () => {
    const harness = await served();
    harness.kernel.tamper({ kind: 'flushChain', chain: 'services' }, { kind: 'flushChain', chain: 'any' });
    harness.noteStructure([]);
    const report = await harness.sync();
    expect(report).toMatchObject({ kind: 'incremental', commits: 1, objects: 0 });
    expect(harness.kernel.read).toEqual([]);
    expect(harness.world).toEqual(await harness.fromScratch());
  });

  test('a set that was made anew is filled, and no other is read', async () => {
    const harness = await served();
    const { kernel } = harness;
    const set = kernel.table?.sets.get('any-2')?.set;
    if (!set) throw new Error('no such set');
    kernel.tamper(
      { kind: 'flushChain', chain: 'any' },
      { kind: 'deleteSet', set: 'any-2' },
      { kind: 'addSet', set },
    );
    harness.noteStructure(['any-2']);
    await harness.sync();
    expect(kernel.read).toEqual(['any-2']);
    expect(harness.world).toEqual(await harness.fromScratch());
  });

  test('together with a change of a service', async () => {
    const harness = await served();
    harness.kernel.tamper({ kind: 'flushChain', chain: 'services' });
    harness.noteStructure([]);
    await harness.sync('a/s0-1 of s0 80 | 10.1.0.0 node-b | 10.9.9.9 node-b');
    expect(harness.kernel.read).toEqual([]);
    expect(harness.world).toEqual(await harness.fromScratch());
  });

  test('a table that sleeps is woken', async () => {
    const harness = await served();
    const { kernel } = harness;
    kernel.table = kernel.table && { ...kernel.table, isDormant: true };
    harness.noteStructure([]);
    await harness.sync();
    expect(kernel.table?.isDormant).toBe(false);
    expect(kernel.read).toEqual([]);
  });
});
