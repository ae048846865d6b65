/** A table that is there already: what a process without memory makes of it. */
import { describe, expect, test } from 'vitest';
import type { TableTransaction } from '../../../../src/modes/nftables/rules/table.ts';
import { cidr, ip, VIEW } from '../../../plan/given.ts';
import { Harness } from './harness.ts';
import { printPlain } from './cluster.ts';

const X = ['a/x 10.96.0.1 80@30080 ext=1.1.1.1', 'a/x-1 of x 80 | 10.1.0.1 node-b | 10.1.0.2 node-b'];
const Y = ['b/y 10.96.0.2 80', 'b/y-1 of y 80 | 10.1.0.3 node-b'];

async function started(...lines: readonly string[]): Promise<Harness> {
  const harness = new Harness();
  await harness.sync(...lines);
  return harness;
}

test('a restart finds everything in place, and writes nothing', async () => {
  const harness = (await started(...X, ...Y)).restarted();
  expect(await harness.sync()).toMatchObject({ kind: 'full', commits: 0, objects: 0 });
  expect((await harness.sync()).kind).toBe('nothing');
});

test('what changed meanwhile is changed, and nothing else', async () => {
  const before = await started(...X, ...Y);
  before.cluster.tell('b/y-1 of y 80 | 10.1.0.4 node-b');
  const harness = before.restarted();
  await harness.sync();
  expect(harness.sent.flat()).toEqual([
    '- any-1 { 10.96.0.2 . tcp . 80 : 10.1.0.3 . 80 }',
    '+ any-1 { 10.96.0.2 . tcp . 80 : 10.1.0.4 . 80 }',
  ]);
});

test('a service that went meanwhile leaves nothing', async () => {
  const before = await started(...X, ...Y);
  before.cluster.tell('- b/y', '- b/y-1');
  const harness = before.restarted();
  await harness.sync();
  expect(harness.world).toEqual(await harness.fromScratch());
  expect(harness.kernel.elements.filter(({ comment }) => comment === 'b/y')).toEqual([]);
});

test('an address that went to another service meanwhile has its name', async () => {
  const before = await started('a/x 10.96.0.1 80 ext=1.1.1.1 born=1', 'a/y 10.96.0.2 80 ext=1.1.1.1 born=2');
  before.cluster.tell('a/x 10.96.0.1 80 born=1');
  const harness = before.restarted();
  await harness.sync();
  const owners = harness.kernel.elements.filter(
    ({ key }) => key.address === ip('1.1.1.1') && key.port === 80,
  );
  expect(new Set(owners.map(({ comment }) => comment))).toEqual(new Set(['a/y']));
});

test('sizes that nobody has any more go', async () => {
  const before = await started(...X, ...Y);
  before.cluster.tell('a/x-1 of x 80 | 10.1.0.1 node-b');
  const harness = before.restarted();
  await harness.sync();
  expect([...(harness.kernel.table?.sets.keys() ?? [])].filter((name) => name.endsWith('-2'))).toEqual([]);
});

const TAMPERINGS: readonly (readonly [string, TableTransaction])[] = [
  ['the table is gone', [{ kind: 'deleteTable' }]],
  ['a chain has no rules', [{ kind: 'flushChain', chain: 'services' }]],
  ['a hook is gone', [{ kind: 'deleteChain', chain: 'prerouting' }]],
  [
    'a hook is elsewhere',
    [
      { kind: 'deleteChain', chain: 'output' },
      { kind: 'addChain', chain: 'output', hook: { point: 'output', priority: 7 } },
    ],
  ],
  ['a rule too many', [{ kind: 'addRule', chain: 'services', rule: { statements: [{ kind: 'drop' }] } }]],
  [
    'a chain and a set too many, which are in use',
    [
      { kind: 'addSet', set: { name: 'theirs', key: ['address'] } },
      { kind: 'addChain', chain: 'theirs' },
      {
        kind: 'addRule',
        chain: 'theirs',
        rule: {
          statements: [{ kind: 'inSet', key: ['source'], set: 'theirs', not: false }, { kind: 'drop' }],
        },
      },
      { kind: 'addRule', chain: 'services', rule: { statements: [{ kind: 'jump', chain: 'theirs' }] } },
    ],
  ],
  [
    'a set of another kind',
    [
      { kind: 'flushChain', chain: 'service-addresses' },
      { kind: 'deleteSet', set: 'masquerade-node' },
      { kind: 'addSet', set: { name: 'masquerade-node', key: ['address'] } },
    ],
  ],
];

describe('somebody was at the table', () => {
  test.each(TAMPERINGS)('%s', async (_, transaction) => {
    const harness = await started(...X, ...Y);
    harness.kernel.tamper(...transaction);
    await harness.syncFull();
    expect(harness.world).toEqual(await harness.fromScratch());
    expect((await harness.syncFull()).commits).toBe(0);
  });
});

describe('settings change at run time', () => {
  test('addresses for node ports come and go', async () => {
    const view = { ...VIEW, nodePorts: { ranges: [cidr('192.0.2.0/24')], loopback: false } };
    const harness = new Harness({ view });
    await harness.sync(...X);
    harness.settings = { ...harness.settings, nodePortIps: [ip('192.0.2.11'), ip('192.0.2.12')] };
    await harness.sync();
    expect(
      harness.kernel.elements
        .filter(({ set }) => set === 'node-port-ips')
        .map(printPlain)
        .sort(),
    ).toEqual(['node-port-ips { 192.0.2.11 }', 'node-port-ips { 192.0.2.12 }']);
    expect(harness.world).toEqual(await harness.fromScratch());
  });

  test('node ports are restricted, and are not any more', async () => {
    const harness = await started(...X);
    harness.cluster.setView({ ...VIEW, nodePorts: { ranges: [cidr('192.0.2.10/32')], loopback: false } });
    harness.settings = { ...harness.settings, nodePortIps: [ip('192.0.2.10')] };
    await harness.sync();
    expect(harness.world).toEqual(await harness.fromScratch());
    harness.cluster.setView(VIEW);
    await harness.sync();
    expect(harness.world).toEqual(await harness.fromScratch());
    expect(harness.kernel.table?.sets.has('node-port-ips')).toBe(false);
  });

  test.each([
    [['10.96.0.0/12'], ['10.96.0.0/16']],
    [['10.96.0.0/16'], ['10.96.0.0/12']],
    [['10.96.0.0/16', '10.97.0.0/16'], ['10.97.0.0/16']],
    [[], ['10.96.0.0/12', '10.96.0.0/16']],
  ])('service CIDRs go from %j to %j', async (before, after) => {
    const harness = new Harness({ settings: { serviceCidrs: before.map(cidr) } });
    await harness.sync(...X);
    harness.settings = { ...harness.settings, serviceCidrs: after.map(cidr) };
    await harness.sync();
    expect(harness.world).toEqual(await harness.fromScratch());
  });
});
