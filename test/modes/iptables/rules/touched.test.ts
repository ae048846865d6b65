/** What another program changed is repaired by looking at it alone. */
import { describe, expect, test } from 'vitest';
import { LAYOUT_NAMES } from './layoutNames.ts';
import type { Table } from '../../../../src/modes/iptables/rules/rule.ts';
import type { Touch, Touched } from '../../../../src/modes/iptables/rules/touched.ts';
import { ip } from '../../../plan/given.ts';
import { EMPTY, FakeKernel, refusal } from './fakeKernel.ts';
import { FOREIGN } from './foreign.ts';
import { WORLD_4 } from './goldenCluster.ts';
import { Harness } from './harness.ts';

function touched(table: Table, chains: Readonly<Record<string, Touch>>, isGone = false): Touched {
  return new Map([[table, { isGone, chains: new Map(Object.entries(chains)) }]]);
}

async function started(layout: Harness['layout'], kernel = new FakeKernel()): Promise<Harness> {
  const harness = new Harness({ layout, kernel });
  await harness.sync(WORLD_4);
  return harness;
}

function serviceChain({ kernel }: Harness, prefix: string): string {
  const chain = kernel.chains('nat').find((name) => name.startsWith(prefix));
  if (chain === undefined) throw new Error(`no chain ${prefix}`);
  return chain;
}

describe.each(LAYOUT_NAMES)('layout %s', (layout) => {
  test('a table made dormant is woken by the next sync, and found by a look at everything', async () => {
    const harness = await started(layout);
    harness.kernel.dormant.add('nat');
    const noted = harness.noteForeign(
      new Map([['nat', { isGone: false, isDormant: true, chains: new Map() }]]),
    );
    expect(noted).toEqual(['table nat (made dormant)']);
    expect(await harness.sync()).toMatchObject({ commits: 0, repaired: noted });
    expect(harness.kernel.dormant.size).toBe(0);
    harness.kernel.dormant.add('filter');
    harness.requestFull();
    expect(await harness.sync()).toMatchObject({ repaired: ['table filter (made dormant)'] });
    expect(harness.kernel.dormant.size).toBe(0);
  });

  test('a flushed chain of a service is written again, and nothing is read', async () => {
    const harness = await started(layout);
    const whole = harness.kernel.text;
    const chain = serviceChain(harness, 'KUBE-SVC-');
    harness.kernel.tamper('nat', `-F ${chain}`);
    expect(harness.noteForeign(touched('nat', { [chain]: 'deleted' }))).toEqual([`chain nat ${chain}`]);
    const report = await harness.sync();
    expect(harness.kernel.text).toBe(whole);
    expect(harness.kernel).toMatchObject({ saves: 0, lists: [] });
    expect(report).toMatchObject({
      kind: 'incremental',
      commits: 1,
      counts: { chains: 1 },
      repaired: [`chain nat ${chain}`],
    });
  });

  test('a deleted jump comes back; only its chain is read', async () => {
    const harness = await started(layout);
    const meaning = harness.meaning;
    const [jump = ''] = harness.kernel.rulesOf('nat', 'PREROUTING');
    harness.kernel.tamper('nat', `-D PREROUTING ${jump}`);
    harness.noteForeign(touched('nat', { PREROUTING: 'deleted' }));
    expect(await harness.sync()).toMatchObject({ commits: 1, objects: 1, counts: { chains: 0 } });
    expect(harness.kernel).toMatchObject({ saves: 0, lists: ['nat PREROUTING'] });
    expect(harness.meaning).toEqual(meaning);
  });

  test('rules of a shared chain: the missing come back, the foreign go, the others stay', async () => {
    const harness = await started(layout);
    const meaning = harness.meaning;
    const [first = ''] = harness.kernel.rulesOf('nat', 'KUBE-SERVICES');
    harness.kernel.tamper('nat', `-D KUBE-SERVICES ${first}`, '-I KUBE-SERVICES -s 192.0.2.7 -j RETURN');
    harness.noteForeign(touched('nat', { 'KUBE-SERVICES': 'deleted' }));
    await harness.sync();
    expect(harness.kernel.lists).toEqual(['nat KUBE-SERVICES']);
    expect(harness.kernel.sent.length).toBeLessThan(6);
    expect(harness.meaning).toEqual(meaning);
  });

  test('a table that is gone is written from memory, and the other is left alone', async () => {
    const harness = await started(layout);
    const meaning = harness.meaning;
    const { tables } = harness.kernel;
    const empty = new FakeKernel(EMPTY).tables.get('nat') ?? new Map();
    harness.kernel.tables = new Map([...tables, ['nat', empty]]);
    expect(harness.kernel.chains('nat')).not.toContain('KUBE-SERVICES');
    expect(harness.noteForeign(touched('nat', {}, true))).toEqual(['table nat']);
    const report = await harness.sync();
    expect(harness.meaning).toEqual(meaning);
    expect(harness.kernel.saves).toBe(0);
    expect(report.counts['written.filter'] ?? 0).toBe(0);
  });

  test('what does not concern us is not looked at', async () => {
    const harness = await started(layout);
    const others = {
      PREROUTING: 'added',
      'KUBE-KUBELET-CANARY': 'deleted',
      'KUBE-FOO': 'added',
      DOCKER: 'deleted',
    } as const;
    expect(harness.noteForeign(touched('nat', others))).toEqual([]);
    expect(harness.noteForeign(touched('mangle', { 'KUBE-PROXY-CANARY': 'deleted' }))).toEqual([]);
    expect(await harness.sync()).toMatchObject({ kind: 'nothing', commits: 0 });
    expect(harness.kernel).toMatchObject({ saves: 0, lists: [] });
  });

  test('a chain with a name like ours that nobody needs is deleted', async () => {
    const harness = await started(layout);
    const whole = harness.meaning;
    const name = 'KUBE-SVC-AAAAAAAAAAAAAAAA';
    harness.kernel.tamper('nat', `:${name} - [0:0]`, `-A ${name} -j ACCEPT`);
    harness.noteForeign(touched('nat', { [name]: 'added' }));
    await harness.sync();
    expect(harness.meaning).toEqual(whole);
  });

  test('a change of a service in the same sync is written, too', async () => {
    const harness = await started(layout);
    const chain = serviceChain(harness, 'KUBE-SEP-');
    harness.kernel.tamper('nat', `-F ${chain}`);
    harness.noteForeign(touched('nat', { [chain]: 'deleted' }));
    const report = await harness.sync('shop/new 10.96.99.1 80', '- shop/cache', '- shop/cache-1');
    expect(report.repaired).toEqual([`chain nat ${chain}`]);
    expect(harness.meaning).toEqual(await harness.fromScratch());
  });

  test('a repair that is refused is a look at everything, which names what it found', async () => {
    const harness = await started(layout);
    const whole = harness.meaning;
    const chain = serviceChain(harness, 'KUBE-SVC-');
    harness.kernel.tamper('nat', `-F ${chain}`);
    harness.noteForeign(touched('nat', { [chain]: 'deleted' }));
    let isFirst = true;
    harness.kernel.fault = () => {
      const fault = isFirst ? refusal() : undefined;
      isFirst = false;
      return fault;
    };
    expect(await harness.sync()).toMatchObject({ kind: 'full', repaired: [`chain nat ${chain}`] });
    expect(harness.meaning).toEqual(whole);
  });

  test('the base-chain jumps can be looked at alone', async () => {
    const harness = await started(layout, new FakeKernel(FOREIGN));
    harness.requestJumps();
    expect(await harness.sync()).toMatchObject({ kind: 'nothing' });
    expect(harness.kernel.saves).toBe(0);
    expect(harness.kernel.lists).not.toContain('nat KUBE-SERVICES');
    const meaning = harness.meaning;
    const jump = harness.kernel.rulesOf('nat', 'OUTPUT').find((rule) => rule.includes('KUBE-SERVICES')) ?? '';
    harness.kernel.tamper('nat', `-D OUTPUT ${jump}`);
    harness.requestJumps();
    expect((await harness.sync()).repaired).toEqual(['chain nat OUTPUT']);
    expect(harness.meaning).toEqual(meaning);
  });

  test('other addresses of the node change the end of one chain, without a look at everything', async () => {
    const harness = await started(layout);
    harness.setNodePortIps([ip('192.168.0.1')]);
    const report = await harness.sync();
    expect(report.repaired).toEqual([]);
    expect(harness.kernel).toMatchObject({ saves: 0, lists: ['nat KUBE-SERVICES'] });
    expect(harness.meaning).toEqual(await harness.fromScratch());
    harness.setNodePortIps([ip('192.168.0.1'), ip('192.168.0.2')]);
    await harness.sync();
    expect(harness.kernel.sent.length).toBeLessThan(6);
    expect(harness.meaning).toEqual(await harness.fromScratch());
  });
});

test('a look at everything names what another program changed, and not what a service did', async () => {
  const harness = await started('current');
  const chain = serviceChain(harness, 'KUBE-SVC-');
  harness.kernel.tamper('nat', `-F ${chain}`);
  harness.requestFull();
  const report = await harness.sync('shop/new 10.96.99.1 80', 'shop/new-1 of new 8080 | 10.244.0.99 node-a');
  expect(report.repaired).toEqual([`chain nat ${chain}`]);
  expect((await harness.syncFull()).repaired).toEqual([]);
});

test('nor what a service waits for that is written in the next sync', async () => {
  const harness = await started('current');
  const chain = serviceChain(harness, 'KUBE-SVC-');
  harness.kernel.tamper('nat', `-F ${chain}`);
  harness.requestFull();
  harness.plan('shop/new 10.96.99.1 80', 'shop/new-1 of new 8080 | 10.244.0.99 node-a');
  expect((await harness.syncOnly([])).repaired).toEqual([`chain nat ${chain}`]);
  expect(harness.meaning).toEqual(await harness.fromScratch());
});
