/** Each line of the log about a write says why it was made. */
import { expect, test } from 'vitest';
import type { SyncReport } from '../../src/proxy/report.ts';
import { Causes } from '../../src/proxy/report.ts';
import { SyncRunner } from '../../src/proxy/syncRunner.ts';
import { Proxier } from '../../src/proxy/proxier.ts';
import { TimeSlice } from '../../src/time/timeSlice.ts';
import { node, service, SETTINGS, slice } from '../plan/given.ts';
import { FakeClock, settle } from '../time/fakeClock.ts';
import { FakeWriter, FakeLog, REPORT } from './fakes.ts';

class Stage {
  readonly clock = new FakeClock();
  readonly writer = new FakeWriter();
  readonly log = new FakeLog();
  readonly proxy: Proxier;
  readonly loop: SyncRunner;

  constructor() {
    const timeSlice = new TimeSlice(this.clock);
    this.proxy = new Proxier({ family: 'IPv4', settings: SETTINGS, writer: this.writer, timeSlice });
    this.loop = new SyncRunner({
      proxier: this.proxy,
      log: this.log.log,
      clock: this.clock,
      minSyncPeriodMs: 1000,
      syncPeriodMs: 30_000,
    });
    this.loop.start();
  }

  /** Serves one service, and has said so. */
  async serve(): Promise<void> {
    this.proxy.onService('a/b', service('a/b 10.96.0.1 80'));
    this.proxy.onEndpointSlice('a/b-1', slice('a/b-1 of b 8080 | 10.1.0.1'));
    this.proxy.onSynced();
    this.loop.request();
    await settle();
  }

  /** Asks for a sync, and gives it the time that it needs. */
  async sync(request: () => void = () => this.loop.request()): Promise<string> {
    request();
    await this.clock.advance(1000);
    return this.last;
  }

  get causes(): readonly string[] {
    return this.log.lines
      .map((line) => JSON.parse(line) as { readonly msg: string; readonly cause?: string })
      .flatMap(({ msg, cause }) => (msg === 'Synced rules' ? [cause ?? ''] : []));
  }

  get last(): string {
    return this.causes.at(-1) ?? '';
  }
}

test('the first sync is the start, whatever there was', async () => {
  const stage = new Stage();
  stage.proxy.onNode(node('node1'));
  await stage.serve();
  expect(stage.causes).toEqual(['start']);
});

test('objects that changed, each once', async () => {
  const stage = new Stage();
  await stage.serve();
  stage.proxy.onEndpointSlice('a/b-1', slice('a/b-1 of b 8080 | 10.1.0.1 | 10.1.0.2'));
  stage.proxy.onEndpointSlice('a/b-1', slice('a/b-1 of b 8080 | 10.1.0.1 | 10.1.0.7'));
  stage.proxy.onService('a/c', service('a/c 10.96.0.2 80'));
  expect(await stage.sync()).toBe('Service a/c added; EndpointSlice a/b-1: endpoint 10.1.0.7 added');
  stage.proxy.onService('a/c', undefined);
  expect(await stage.sync()).toBe('Service a/c removed');
});

test('a few of very many', async () => {
  const stage = new Stage();
  await stage.serve();
  for (let number = 0; number < 40; number++)
    stage.proxy.onService(`a/s${number}`, service(`a/s${number} 10.96.1.${number} 80`));
  expect(await stage.sync()).toBe('Service a/s0 added; Service a/s1 added; Service a/s2 added; and 37 more');
});

test('a sync that failed keeps its causes for the next one', async () => {
  const stage = new Stage();
  await stage.serve();
  stage.writer.report = () => Promise.reject(new Error('lock'));
  stage.proxy.onEndpointSlice('a/b-1', undefined);
  await stage.sync(() => stage.loop.request('addresses of this node changed'));
  stage.writer.report = () => REPORT;
  await stage.clock.advance(30_000);
  expect(stage.causes).toEqual([
    'start',
    'EndpointSlice a/b-1 removed; addresses of this node changed; again after a sync that failed',
  ]);
});

test('what a sync did not write is no cause of the next', async () => {
  const stage = new Stage();
  await stage.serve();
  stage.writer.report = (): SyncReport => ({ ...REPORT, kind: 'nothing', commits: 0 });
  await stage.sync(() => stage.loop.request('addresses of this node changed'));
  stage.writer.report = () => REPORT;
  stage.proxy.onNode(node('node1', '10.0.0.1'));
  expect(await stage.sync()).toBe('Node node1 added');
  expect(stage.causes).toHaveLength(2);
});

test('another program, as far as the kernel says who and what', async () => {
  const stage = new Stage();
  await stage.serve();
  const changedBy = { processId: 99, processName: 'iptables' };
  const objects = ['chain nat KUBE-SERVICES'];
  expect(await stage.sync(() => stage.loop.foreignChanges.noticed({ objects, changedBy }))).toBe(
    'iptables (pid 99) changed chain nat KUBE-SERVICES',
  );
  stage.writer.report = (): SyncReport => ({ ...REPORT, kind: 'full', repaired: ['set service-ips'] });
  expect(await stage.sync(() => stage.loop.verify())).toBe(
    'verification of what is in the kernel; found changed: set service-ips',
  );
});

test('the rest of a large change has the cause of the change', async () => {
  const stage = new Stage();
  await stage.serve();
  stage.writer.writesPerSync = 4;
  stage.proxy.onService('a/many', service('a/many 10.96.0.9 p:80 q:81 r:82 s:83'));
  stage.proxy.onService('a/more', service('a/more 10.96.0.10 p:80 q:81 r:82 s:83'));
  await stage.sync();
  const [, ...written] = stage.causes;
  expect(written.length).toBeGreaterThan(1);
  expect(new Set(written)).toEqual(new Set(['Service a/many added; Service a/more added']));
});

test('no text is made that nobody will read', () => {
  const causes = new Causes();
  let made = 0;
  for (let number = 0; number < 1000; number++) causes.add(() => `cause ${++made}`);
  expect([made, causes.print()]).toEqual([3, 'cause 1; cause 2; cause 3; and 997 more']);
  expect(causes.take().print()).toBe('cause 1; cause 2; cause 3; and 997 more');
  expect(causes.print()).toBe('');
});
