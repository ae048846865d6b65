/** Lines of the log about writes, each with its cause, and about what another program changed. */
import { createLog } from '../../src/log/log.ts';
import { SyncRunner } from '../../src/proxy/syncRunner.ts';
import { Proxier } from '../../src/proxy/proxier.ts';
import { TimeSlice } from '../../src/time/timeSlice.ts';
import { service, SETTINGS, slice } from '../../test/plan/given.ts';
import { FakeWriter, REPORT } from '../../test/proxy/fakes.ts';
import { FakeClock } from '../../test/time/fakeClock.ts';

/** Without the numbers, of which a made-up kernel has none. */
export async function causes(): Promise<string> {
  const lines = (await logLines()).filter((line) => line.startsWith('"Synced rules"'));
  return lines.map((line) => line.replace(/ changedServicePorts=.* cause=/, ' … cause=')).join('');
}

export async function repaired(): Promise<string> {
  return (await logLines()).filter((line) => line.startsWith('"Another program')).join('');
}

/** Without the time and place of each line. */
async function logLines(): Promise<readonly string[]> {
  const clock = new FakeClock();
  const writer = new FakeWriter();
  const lines: string[] = [];
  const log = createLog({ verbosity: 1, format: 'text', write: (line) => lines.push(line) });
  const proxy = new Proxier({
    family: 'IPv4',
    settings: SETTINGS,
    writer,
    timeSlice: new TimeSlice(clock),
  });
  const loop = new SyncRunner({ proxier: proxy, log, clock, minSyncPeriodMs: 1000, syncPeriodMs: 30_000 });
  const sync = async (request = (): void => loop.request()): Promise<void> => {
    request();
    await clock.advance(1000);
  };
  loop.start();
  proxy.onService('shop/cart', service('shop/cart 10.96.0.40 80'));
  proxy.onEndpointSlice('shop/cart-1', slice('shop/cart-1 of cart 8080 | 10.1.0.5 | 10.1.0.6 | 10.1.0.8'));
  proxy.onSynced();
  writer.report = () => ({ ...REPORT, kind: 'full' });
  await sync();
  writer.report = () => REPORT;
  proxy.onEndpointSlice(
    'shop/cart-1',
    slice('shop/cart-1 of cart 8080 | 10.1.0.5 | 10.1.0.6 draining | 10.1.0.7'),
  );
  await sync();
  const changedBy = { processId: 8288, processName: 'iptables' };
  await sync(() => loop.foreignChanges.noticed({ objects: ['chain nat KUBE-SERVICES'], changedBy }));
  for (let number = 0; number < 40; number++)
    proxy.onService(`shop/s${number}`, service(`shop/s${number} 10.96.1.${number} 80`));
  await sync();
  await loop.stop();
  return lines.map((line) => line.replace(/^[^\]]*\] /, ''));
}
