/** After the first sync, only what changed is written, and nothing is read. */
import { describe, expect, test } from 'vitest';
import { chainName, Harness } from './harness.ts';
import { LAYOUT_NAMES } from './layoutNames.ts';

const WORLD = `
  shop/web 10.96.0.1 http:80
  shop/web-1 of web http:8080 | 10.244.0.1 node-a
  shop/db  10.96.0.2 5432
  shop/db-1 of db 5432 | 10.244.0.2 node-a
  shop/idle 10.96.0.3 80
`;

async function started(layout: (typeof LAYOUT_NAMES)[number] = 'current'): Promise<Harness> {
  const harness = new Harness({ layout });
  await harness.sync(WORLD);
  return harness;
}

const SVC = chainName('SVC', 'shop/web:http');
const ONE = chainName('SEP', 'shop/web:http', '10.244.0.1:8080');
const TWO = chainName('SEP', 'shop/web:http', '10.244.0.2:8080');
const PORTAL = '-m comment --comment "shop/web:http cluster IP" -m tcp -p tcp -d 10.96.0.1 --dport 80';
const MARK = `${PORTAL} ! -s 10.244.0.0/16 -j KUBE-MARK-MASQ`;

describe('an endpoint', () => {
  test('comes: its chain and the one that chooses, and no shared chain', async () => {
    const harness = await started();
    const report = await harness.sync('shop/web-1 of web http:8080 | 10.244.0.1 node-a | 10.244.0.2');
    expect(harness.kernel.sent).toEqual([
      `nat :${TWO} - [0:0]`,
      `nat :${SVC} - [0:0]`,
      `nat -A ${TWO} -m comment --comment shop/web:http -s 10.244.0.2 -j KUBE-MARK-MASQ`,
      `nat -A ${TWO} -m comment --comment shop/web:http -m tcp -p tcp -j DNAT --to-destination 10.244.0.2:8080`,
      `nat -A ${SVC} ${MARK}`,
      `nat -A ${SVC} -m comment --comment "shop/web:http -> 10.244.0.1:8080" -m statistic --mode random --probability 0.5000000000 -j ${ONE}`,
      `nat -A ${SVC} -m comment --comment "shop/web:http -> 10.244.0.2:8080" -j ${TWO}`,
    ]);
    expect(report).toMatchObject({ kind: 'incremental', commits: 1, objects: 5, counts: { chains: 2 } });
    expect(harness.kernel.saves).toBe(0);
  });

  test('goes: its chain is deleted', async () => {
    const harness = await started();
    await harness.sync('shop/web-1 of web http:8080 | 10.244.0.1 node-a | 10.244.0.2');
    await harness.sync('shop/web-1 of web http:8080 | 10.244.0.1 node-a');
    expect(harness.kernel.sent).toEqual([
      `nat :${SVC} - [0:0]`,
      `nat :${TWO} - [0:0]`,
      `nat -A ${SVC} ${MARK}`,
      `nat -A ${SVC} -m comment --comment "shop/web:http -> 10.244.0.1:8080" -j ${ONE}`,
      `nat -X ${TWO}`,
    ]);
  });

  test('that may not serve changes no rule', async () => {
    const harness = await started();
    const report = await harness.sync('shop/web-2 of web http:8080 | 10.244.0.9 unready');
    expect(report.kind).toBe('nothing');
    expect(harness.kernel.attempts).toEqual([]);
  });

  test('is the last that goes: refused in filter first, then the way is taken away', async () => {
    const harness = await started();
    await harness.sync('- shop/web-1');
    expect(harness.kernel.sent).toEqual([
      'filter -A KUBE-SERVICES -m comment --comment "shop/web:http has no endpoints" -m tcp -p tcp -d 10.96.0.1 --dport 80 -j REJECT',
      `nat :${SVC} - [0:0]`,
      `nat :${ONE} - [0:0]`,
      `nat -D KUBE-SERVICES ${PORTAL} -j ${SVC}`,
      `nat -X ${SVC}`,
      `nat -X ${ONE}`,
    ]);
  });

  test('is the first that comes', async () => {
    const harness = await started();
    const before = harness.meaning;
    await harness.sync('- shop/web-1');
    await harness.sync('shop/web-1 of web http:8080 | 10.244.0.1 node-a');
    expect(harness.kernel.sent).toEqual([
      'filter -D KUBE-SERVICES -m comment --comment "shop/web:http has no endpoints" -m tcp -p tcp -d 10.96.0.1 --dport 80 -j REJECT',
      `nat :${ONE} - [0:0]`,
      `nat :${SVC} - [0:0]`,
      `nat -A ${ONE} -m comment --comment shop/web:http -s 10.244.0.1 -j KUBE-MARK-MASQ`,
      `nat -A ${ONE} -m comment --comment shop/web:http -m tcp -p tcp -j DNAT --to-destination 10.244.0.1:8080`,
      `nat -A ${SVC} ${MARK}`,
      `nat -A ${SVC} -m comment --comment "shop/web:http -> 10.244.0.1:8080" -j ${ONE}`,
      `nat -I KUBE-SERVICES ${PORTAL} -j ${SVC}`,
    ]);
    expect(harness.meaning).toEqual(before);
  });
});

describe('a frontend', () => {
  const EXT = chainName('EXT', 'shop/web:http');

  test('comes and goes: its rules alone, and the rest of the shared chain stays', async () => {
    const harness = await started();
    const before = harness.kernel.text;
    await harness.sync('shop/web 10.96.0.1 http:80@30080');
    expect(harness.kernel.sent).toEqual([
      `nat :${EXT} - [0:0]`,
      `nat -A ${EXT} -m comment --comment "masquerade traffic for shop/web:http external destinations" -j KUBE-MARK-MASQ`,
      `nat -A ${EXT} -j ${SVC}`,
      `nat -A KUBE-NODEPORTS -m comment --comment shop/web:http -m tcp -p tcp --dport 30080 -j ${EXT}`,
    ]);
    await harness.sync('shop/web 10.96.0.1 http:80');
    expect(harness.kernel.sent).toEqual([
      `nat :${EXT} - [0:0]`,
      `nat -D KUBE-NODEPORTS -m comment --comment shop/web:http -m tcp -p tcp --dport 30080 -j ${EXT}`,
      `nat -X ${EXT}`,
    ]);
    expect(harness.kernel.text).toBe(before);
  });

  test('that two services claim changes hands in one restore', async () => {
    const harness = await started();
    await harness.sync(
      'shop/web 10.96.0.1 http:80 ext=1.1.1.1 born=1',
      'shop/db 10.96.0.2 80 ext=1.1.1.1 born=2',
    );
    await harness.sync('shop/web 10.96.0.1 http:80 born=1');
    const edits = harness.kernel.sent.filter((line) => /-[DIA] KUBE-SERVICES/.test(line));
    expect(edits.filter((line) => line.includes('external IP'))).toEqual([
      expect.stringMatching(/-D KUBE-SERVICES .*shop\/web:http external IP/),
      expect.stringMatching(/-I KUBE-SERVICES .*shop\/db external IP/),
    ]);
    expect(harness.kernel.restores).toHaveLength(1);
    expect(harness.meaning).toEqual(await harness.fromScratch());
  });
});

describe('a service', () => {
  test('comes before the last rule of KUBE-SERVICES', async () => {
    const harness = await started();
    await harness.sync('shop/new 10.96.0.9 80', 'shop/new-1 of new 80 | 10.244.0.9');
    const rules = harness.kernel.rulesOf('nat', 'KUBE-SERVICES');
    expect(rules[0]).toContain('shop/new cluster IP');
    expect(rules.at(-1)).toContain('this must be the last rule');
  });

  test('goes with all its chains', async () => {
    const harness = await started();
    await harness.sync('- shop/web', '- shop/web-1');
    expect(harness.kernel.text).not.toContain('shop/web');
    expect(harness.kernel.chains('nat')).not.toContain(SVC);
    expect(harness.kernel.chains('nat')).not.toContain(ONE);
    expect(harness.meaning).toEqual(await harness.fromScratch());
  });

  test('goes and comes between two syncs: nothing is written', async () => {
    const harness = await started();
    const report = await harness.sync('- shop/db', 'shop/db  10.96.0.2 5432');
    expect(report.kind).toBe('nothing');
  });
});

test('rules keep their order when a service has several in one shared chain', async () => {
  const harness = new Harness();
  await harness.sync(WORLD, 'a/b 10.96.0.9 80 ext=1.1.1.1,2.2.2.2 lb=3.3.3.3', 'a/b-1 of b 80 | 10.244.0.9');
  await harness.sync('a/b 10.96.0.9 80 ext=1.1.1.1,2.2.2.2,4.4.4.4 lb=3.3.3.3');
  const own = harness.kernel.rulesOf('nat', 'KUBE-SERVICES').filter((rule) => rule.includes('"a/b '));
  expect(own.map((rule) => /-d (\S+)/.exec(rule)?.[1])).toEqual([
    '10.96.0.9',
    '1.1.1.1',
    '2.2.2.2',
    '4.4.4.4',
    '3.3.3.3',
  ]);
});

describe.each(LAYOUT_NAMES)('layout %s', (layout) => {
  test('a change in one of many services touches that one', async () => {
    const harness = new Harness({ layout });
    const services = Array.from({ length: 50 }, (_, n) => [
      `x/s${n} 10.96.1.${n} 80@${30100 + n}`,
      `x/s${n}-1 of s${n} 80 | 10.244.1.${n}`,
    ]).flat();
    await harness.sync(...services);
    await harness.sync('x/s7-1 of s7 80 | 10.244.1.7 | 10.244.2.7');
    expect(harness.kernel.restores).toHaveLength(1);
    for (const line of harness.kernel.sent) {
      expect(line).not.toMatch(/x\/s(?!7\b)/);
      expect(line).not.toMatch(/KUBE-(SERVICES|NODEPORTS|FORWARD|POSTROUTING|EXTERNAL-SERVICES)/);
    }
    expect(harness.meaning).toEqual(await harness.fromScratch());
  });

  test('many changes at once go in restores of some hundred chains', async () => {
    const harness = new Harness({ layout });
    await harness.sync(WORLD);
    const services = Array.from({ length: 400 }, (_, n) => [
      `x/s${n} 10.97.${n >> 8}.${n & 255} 80@${20000 + n} etp=Local`,
      `x/s${n}-1 of s${n} 80 | 10.244.${n >> 8}.${n & 255} node-a`,
    ]).flat();
    const report = await harness.sync(...services);
    expect(report.kind).toBe('incremental');
    expect(largest(harness)).toBeLessThanOrEqual(500);
    expect(harness.meaning).toEqual(await harness.fromScratch());

    const gone = await harness.sync(...services.map((line) => `- ${line.split(' ')[0]}`));
    expect(gone.kind).toBe('incremental');
    expect(largest(harness)).toBeLessThanOrEqual(500);
    expect(harness.meaning).toEqual(await harness.fromScratch());
  });
});

function largest({ kernel }: Harness): number {
  return Math.max(
    ...kernel.attempts.map(({ text }) => text.split('\n').filter((line) => line.startsWith(':')).length),
  );
}

describe.each(LAYOUT_NAMES)('many services go at once, layout %s', (layout) => {
  const names = Array.from({ length: 150 }, (_, index) => `shop/s${index}`);

  async function crowded(idle: boolean): Promise<Harness> {
    const harness = await started(layout);
    for (const [index, name] of names.entries()) {
      harness.plan(`${name} 10.96.1.${index} 80@${31_000 + index} ext=192.0.2.${index}`);
      if (!idle) harness.plan(`${name}-1 of s${index} 8080 | 10.244.1.${index} node-a`);
    }
    await harness.sync();
    return harness;
  }

  test.each([false, true])(
    'shared chains are written once, without them (no endpoints: %s)',
    async (idle) => {
      const harness = await crowded(idle);
      const report = await harness.sync(
        ...names.slice(0, 130).map((name) => `- ${name}`),
        'shop/web-1 of web http:8080 | 10.244.0.7',
        'shop/new 10.96.2.1 80',
      );
      expect(report.kind).toBe('incremental');
      expect(harness.kernel.sent.filter((line) => line.includes(' -D '))).toEqual([]);
      expect(harness.kernel.saves).toBe(0);
      expect(harness.meaning).toEqual(await harness.fromScratch());
      // Nothing differs from what it should be, and what is added later has its place.
      expect((await harness.syncFull()).commits).toBe(0);
      await harness.sync('shop/last 10.96.2.2 80@31999', 'shop/last-1 of last 8080 | 10.244.2.2');
      expect(harness.meaning).toEqual(await harness.fromScratch());
    },
  );

  test('what waits for another sync keeps its rules', async () => {
    const harness = await crowded(false);
    harness.plan(...names.slice(0, 130).map((name) => `- ${name}`), '- shop/web', 'shop/new 10.96.2.1 80');
    await harness.syncOnly(names.slice(0, 130).map((name) => `${name}/TCP`));
    expect(harness.meaning.join('\n')).toContain('shop/web:http cluster IP');
    await harness.sync();
    expect(harness.meaning).toEqual(await harness.fromScratch());
  });
});
