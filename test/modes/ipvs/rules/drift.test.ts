/** What other programs change is found by the next look, repaired, and named; what we change ourselves is not. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { hostPort } from '../../../../src/model/ip.ts';
import { ip } from '../../../plan/given.ts';
import { syncStep } from '../../anySteps.ts';
import { type FakeIpvsKernel, type FakeServer } from './fakeKernel.ts';
import { Harness } from './harness.ts';

const X = ['a/x 10.96.0.1 80', 'a/x-1 of x 80 | 10.244.0.1 node-b | 10.244.0.2 node-b'];
const SERVER = 'virtual server TCP 10.96.0.1:80';

function serverOf(kernel: FakeIpvsKernel): FakeServer {
  const [server] = kernel.servers.values();
  if (!server) throw new Error('no virtual server');
  return server;
}

const DEEDS: readonly (readonly [string, (kernel: FakeIpvsKernel) => void, readonly string[]])[] = [
  ['virtual servers cleared', (kernel) => kernel.servers.clear(), [SERVER]],
  [
    'a weight',
    (kernel) => {
      for (const each of serverOf(kernel).destinations.values()) each.weight = 0;
    },
    [SERVER],
  ],
  ['an endpoint deleted', (kernel) => serverOf(kernel).destinations.delete('10.244.0.1:80'), [SERVER]],
  [
    'an endpoint added',
    (kernel) => {
      const destination = { ip: ip('10.9.9.9'), port: 9, key: hostPort(ip('10.9.9.9'), 9) };
      const server = serverOf(kernel).attributes;
      kernel.tamper({ kind: 'newDestination', server, destination, weight: 1 });
    },
    [SERVER],
  ],
  [
    'a scheduler',
    (kernel) => {
      const server = serverOf(kernel);
      server.attributes = { ...server.attributes, scheduler: 'sh' };
    },
    [SERVER],
  ],
  ['a set flushed', (kernel) => kernel.sets.get('KUBE-CLUSTER-IP')?.entries.clear(), ['set KUBE-CLUSTER-IP']],
  [
    'an address',
    (kernel) => kernel.device?.addresses.delete(ip('10.96.0.1')),
    ['address 10.96.0.1 on kube-ipvs0'],
  ],
  [
    'the device',
    (kernel) => (kernel.device = undefined),
    ['link kube-ipvs0', 'address 10.96.0.1 on kube-ipvs0'],
  ],
];

describe.each(DEEDS)('%s', (_, deed, objects) => {
  test('is repaired by the next look, and named', async () => {
    const harness = new Harness();
    await harness.sync(...X);
    const before = harness.everything;
    deed(harness.kernel);
    const report = await harness.syncFull();
    expect(report).toMatchObject({ kind: 'full', repaired: objects });
    expect(report.objects).toBeGreaterThan(0);
    expect(harness.everything).toEqual(before);
    expect(await harness.syncFull()).toMatchObject({ kind: 'full', repaired: [], objects: 0 });
  });

  test('together with a change of our own, which is not named', async () => {
    const harness = new Harness();
    await harness.sync(...X);
    deed(harness.kernel);
    const report = await harness.syncFull('b/y 10.96.0.2 80', 'b/y-1 of y 80 | 10.244.0.3 node-b');
    expect(report.repaired).toEqual(objects);
    await harness.endConnections();
    expect(harness.everything).toEqual(await harness.fromScratch());
  });
});

test('what a change runs into is repaired by the same sync, and the rest with it', async () => {
  const harness = new Harness();
  await harness.sync(...X, 'b/y 10.96.0.2 80', 'b/y-1 of y 80 | 10.244.0.3 node-b');
  harness.kernel.servers.clear();
  const report = await harness.sync('a/x-1 of x 80 | 10.244.0.1 node-b | 10.244.0.9 node-b');
  expect(report).toMatchObject({ kind: 'full', repaired: [SERVER, 'virtual server TCP 10.96.0.2:80'] });
  expect(harness.everything).toEqual(await harness.fromScratch());
});

test('at a start nothing was left by us that could have been changed', async () => {
  const harness = new Harness();
  await harness.sync(...X);
  harness.kernel.servers.clear();
  expect((await harness.restarted().sync()).repaired).toEqual([]);
});

test('our own change during a look is not named, also where the old rule has no owner in its comment', async () => {
  const harness = new Harness();
  await harness.sync('b/z 10.96.0.1 80 lb=1.1.1.1 ranges=9.9.9.0/24');
  const report = await harness.syncFull('b/z 10.96.0.1 80 lb=2.2.2.2 ranges=9.9.9.0/24');
  expect(report.repaired).toEqual([]);
  expect(harness.everything).toEqual(await harness.fromScratch());
});

test('a look that finds nothing costs no compiling, and nothing of ours is ever named', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(syncStep(), { minLength: 1, maxLength: 10 }), async (steps) => {
      const harness = new Harness();
      await harness.sync();
      for (const { lines } of steps) {
        for (const { destinations } of harness.kernel.servers.values())
          for (const each of destinations.values()) each.connections = 1;
        expect((await harness.syncFull(...lines)).repaired).toEqual([]);
        expect(await harness.syncFull()).toMatchObject({ repaired: [], objects: 0 });
      }
    }),
  );
});
