import { describe, expect, test } from 'vitest';
import { FAMILIES } from '../../src/model/ip.ts';
import { TimeSlice } from '../../src/time/timeSlice.ts';
import { SyncRunner } from '../../src/proxy/syncRunner.ts';
import { Proxier } from '../../src/proxy/proxier.ts';
import { DualStackProxier } from '../../src/proxy/dualStackProxier.ts';
import { MemorySource } from '../sources/memorySource.ts';
import { node, service, SETTINGS, slice } from '../plan/given.ts';
import { FakeClock, settle } from '../time/fakeClock.ts';
import { FakeWriter, FakeLog } from './fakes.ts';

class Stage {
  readonly clock = new FakeClock();
  readonly log = new FakeLog();
  readonly four = new FakeWriter();
  readonly six = new FakeWriter();
  readonly proxy: DualStackProxier;
  readonly runners: readonly SyncRunner[];

  constructor() {
    this.runners = FAMILIES.map((family) => {
      const writer = family === 'IPv4' ? this.four : this.six;
      const timeSlice = new TimeSlice(this.clock);
      const proxy = new Proxier({ family, settings: SETTINGS, writer, timeSlice });
      return new SyncRunner({
        proxier: proxy,
        log: this.log.log,
        clock: this.clock,
        minSyncPeriodMs: 1000,
        syncPeriodMs: 30_000,
      });
    });
    this.proxy = new DualStackProxier({ nodeName: 'node-a', runners: this.runners, log: this.log.log });
    for (const runner of this.runners) runner.start();
  }
}

describe('events go to the families that they concern', () => {
  test('services and slices', async () => {
    const stage = new Stage();
    stage.proxy.synced();
    await stage.clock.advance(5000);
    stage.proxy.service('a/four', service('a/four 10.96.0.1 80'));
    stage.proxy.service('a/both', service('a/both 10.96.0.2 fd00::2 80'));
    await stage.clock.advance(5000);
    expect(stage.four.syncs.slice(1).flat().toSorted()).toEqual(['a/both/TCP', 'a/four/TCP']);
    expect(stage.six.syncs.slice(1).flat()).toEqual(['a/both/TCP']);
    const six = stage.six.syncs.length;
    stage.proxy.endpointSlice('a/four-1', slice('a/four-1 of four 80 | 10.244.0.1'));
    await stage.clock.advance(5000);
    expect(stage.four.syncs.at(-1)).toEqual(['a/four/TCP']);
    expect(stage.six.syncs).toHaveLength(six);
  });

  test('only this node', async () => {
    const stage = new Stage();
    stage.proxy.synced();
    await stage.clock.advance(5000);
    stage.proxy.node('node-b', node('node-b', '192.0.2.11', 'zone=b'));
    await stage.clock.advance(5000);
    expect(stage.four.syncs).toHaveLength(1);
    stage.proxy.node('node-a', node('node-a', '192.0.2.10', 'zone=b'));
    await stage.clock.advance(5000);
    expect(stage.four.syncs).toHaveLength(2);
    expect(stage.runners[0]?.proxier.plan.view).toMatchObject({ zone: 'b', nodeIp: '192.0.2.10' });
  });
});

test('nothing is written before the source has told everything', async () => {
  const stage = new Stage();
  const source = new MemorySource();
  source.setService(service('a/one 10.96.0.1 80'));
  source.setService(service('a/two 10.96.0.2 80'));
  source.setEndpointSlice(slice('a/one-1 of one 80 | 10.244.0.1'));
  await stage.clock.advance(5000);
  expect(stage.four.syncs).toEqual([]);
  await source.start(stage.proxy);
  await settle();
  expect(stage.four.syncs).toEqual([['a/one/TCP', 'a/two/TCP']]);
  expect(stage.four.plan?.servicePorts.get('a/one/TCP')?.pools.cluster).toHaveLength(1);
  source.deleteService('a/one');
  await stage.clock.advance(5000);
  expect(stage.four.syncs.at(-1)).toEqual(['a/one/TCP']);
  await Promise.all(stage.runners.map((runner) => runner.stop()));
});

test('one family that fails does not hold up the other', async () => {
  const stage = new Stage();
  stage.four.report = () => Promise.reject(new Error('lock'));
  stage.proxy.synced();
  await stage.clock.advance(100);
  stage.proxy.service('a/both', service('a/both 10.96.0.2 fd00::2 80'));
  await stage.clock.advance(5000);
  expect(stage.six.syncs.at(-1)).toEqual(['a/both/TCP']);
});

test('problems of the source are logged', () => {
  const stage = new Stage();
  stage.proxy.report({ severity: 'error', where: 'a.yaml:7:3', object: 'Service a/b', message: 'is odd' });
  stage.proxy.report({
    severity: 'warning',
    where: 'a.yaml:8:3',
    message: 'is empty',
    expected: 'something',
  });
  expect(stage.log.lines).toEqual([
    '{"level":"error","msg":"a.yaml:7:3: error: Service a/b: is odd"}\n',
    '{"level":"warning","msg":"a.yaml:8:3: warning: is empty (expected something)"}\n',
  ]);
});
