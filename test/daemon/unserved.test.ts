/** What of Services is not served, from their objects to the log. */
import { expect, test } from 'vitest';
import { UnservedReports } from '../../src/daemon/unserved.ts';
import { Proxier } from '../../src/proxy/proxier.ts';
import { EventRecorder } from '../../src/telemetry/events/recorder.ts';
import { SETTINGS } from '../plan/given.ts';
import { FakeLog, FakeWriter } from '../proxy/fakes.ts';
import { tell } from '../proxy/given.ts';
import { FakeClock } from '../time/fakeClock.ts';

function stage(): (...lines: readonly string[]) => Promise<readonly Record<string, unknown>[]> {
  const log = new FakeLog();
  const proxier = new Proxier({ family: 'IPv4', settings: SETTINGS, writer: new FakeWriter() });
  const recorder = new EventRecorder({ nodeName: 'node-a', clock: new FakeClock() });
  const reports = new UnservedReports({
    family: 'IPv4',
    nodeName: 'node-a',
    plan: proxier.plan,
    recorder,
    log: log.log,
  });
  proxier.onSynced();
  return async (...lines) => {
    tell(proxier, ...lines);
    const from = log.lines.length;
    reports.report((await proxier.sync())?.changes ?? []);
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
    return log.lines.slice(from).map((line) => JSON.parse(line) as Record<string, unknown>);
  };
}

const OLD = 'shop/old 10.96.0.1 80 ext=203.0.113.1,203.0.113.2 born=1';
const WEB = 'shop/web 10.96.0.2 80 ext=203.0.113.1 born=2';

test('who does not get an address is named once, until that changes', async () => {
  const told = stage();
  const denied = { servicePort: 'shop/web/TCP', address: '203.0.113.1/TCP/80', servedBy: 'shop/old/TCP' };
  expect(await told(OLD, WEB)).toEqual([expect.objectContaining(denied)]);
  // An endpoint is no news about addresses.
  expect(await told('shop/web-1 of web 80 | 10.244.0.1')).toEqual([]);
  const both = [WEB.replace('ext=', 'ext=203.0.113.2,'), 'shop/web-1 of web 80 | 10.244.0.2'];
  expect(await told(...both)).toEqual([
    expect.objectContaining({ ...denied, address: '203.0.113.2/TCP/80' }),
  ]);
  // Over, and back.
  expect(await told('- shop/old')).toEqual([]);
  const back = await told(OLD.replace('born=1', 'born=3'));
  expect(back).toEqual([expect.objectContaining({ servicePort: 'shop/old/TCP', servedBy: 'shop/web/TCP' })]);
  expect(back[0]).toMatchObject({ moreAddresses: 1 });
});

test('of many that come at once, the first are named and the others counted', async () => {
  const told = stage();
  const many = Array.from({ length: 2000 }, (_, index) => {
    const clusterIp = `10.97.${index >> 8}.${index & 255}`;
    return `shop/s${index} ${clusterIp} 80 ext=203.0.113.1 born=2`;
  });
  const lines = await told(OLD, ...many);
  expect(lines).toHaveLength(21);
  expect(lines[20]).toMatchObject({ servicePorts: 1980 });
});
