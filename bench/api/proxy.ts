/** The process that is measured: source, trackers, planner and compiler, with a client that swallows the rules' text. */
import { readFileSync } from 'node:fs';
import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import { IptablesRules } from '../../src/modes/iptables/reconcile.ts';
import { printStep } from '../../src/modes/iptables/rules/edit.ts';
import { LAYOUTS } from '../../src/modes/iptables/rules/layouts/index.ts';
import type { TableClient } from '../../src/modes/iptables/rules/sender.ts';
import { limitMemory } from '../../src/daemon/memory.ts';
import { createLog } from '../../src/log/log.ts';
import { FAMILIES, type Family } from '../../src/model/ip.ts';
import { SyncRunner } from '../../src/proxy/syncRunner.ts';
import { Proxier } from '../../src/proxy/proxier.ts';
import { DualStackProxier } from '../../src/proxy/dualStackProxier.ts';
import { ApiSource } from '../../src/sources/api/apiSource.ts';
import { ApiClient } from '../../src/sources/api/client.ts';
import type { ApiAccess } from '../../src/sources/api/credentials/identity.ts';
import type { SourceEvents } from '../../src/sources/source.ts';
import { systemClock } from '../../src/time/systemClock.ts';
import { VIEW } from '../cluster.ts';
import { OPTIONS } from '../iptables.ts';
import { BlockMeter, cpuMs, liveMemory, memory, peakResident } from './meters.ts';
import { type FromProxy, NODE_NAME, type ProxyOptions, type StartReport, type ToProxy } from './messages.ts';
import { Stopwatch } from './stopwatch.ts';

const SETTLE_MS = 10_000;
const LAST_EVENTS_MS = 500;
const log = createLog({ verbosity: 0, format: 'text' });

async function main(options: ProxyOptions): Promise<void> {
  limitMemory(); // as the daemon does
  const stopwatch = new Stopwatch();
  let answeredAt: number | undefined;
  stopwatch.onFirstPlan = () => tell({ kind: 'planned', cpuMs: cpuMs() - (answeredAt ?? 0) });
  const blocks = new BlockMeter();
  const runners = FAMILIES.map((family) => makeLoop(family, stopwatch, options.minSyncPeriodMs));
  const proxy = new DualStackProxier({ nodeName: NODE_NAME, runners, log });
  const client = new ApiClient({
    access: accessTo(options),
    clock: systemClock,
    encoding: options.encoding,
    onDiagnostic: ({ kind }) => {
      if (kind === 'request') answeredAt ??= cpuMs();
    },
  });
  const source = new ApiSource({ client, nodeName: NODE_NAME, clock: systemClock });
  blocks.start();
  for (const runner of runners) runner.start();
  await source.start(timed(proxy, stopwatch));
  await stopwatch.started;
  tell({ kind: 'started', ...(await startReport(stopwatch, blocks)) });
  await told('begin');
  blocks.start();
  stopwatch.reset();
  const begun = { at: performance.now(), cpu: cpuMs() };
  await told('end');
  await sleep(LAST_EVENTS_MS);
  const times = stopwatch.churned();
  stopwatch.reset(); // what was noted down is no memory of the proxy's
  tell({
    kind: 'ended',
    ...times,
    cpuMs: cpuMs() - begun.cpu,
    seconds: (performance.now() - begun.at) / 1000,
    blockMs: blocks.stop(),
    end: memory(),
    live: liveMemory(),
  });
}

async function startReport(stopwatch: Stopwatch, blocks: BlockMeter): Promise<StartReport> {
  const used = cpuMs();
  // Collections that the start made necessary belong to it.
  await sleep(1000);
  const blockMs = blocks.stop();
  await sleep(SETTLE_MS);
  const settled = memory();
  const idleFrom = cpuMs();
  await sleep(SETTLE_MS);
  const idleShare = (cpuMs() - idleFrom) / SETTLE_MS;
  const peak = peakResident();
  return { ...stopwatch.start(), cpuMs: used, blockMs, peak, settled, idleShare, live: liveMemory() };
}

function makeLoop(family: Family, stopwatch: Stopwatch, minSyncPeriodMs: number): SyncRunner {
  const client: TableClient = {
    save: async () => '',
    // A real restore takes its time too, and meanwhile the event loop turns.
    commit: async (step) => {
      const bytes = Buffer.from(printStep(step));
      if (family === 'IPv4') stopwatch.printed();
      await setImmediate();
      return bytes.length;
    },
  };
  const writer = new IptablesRules(LAYOUTS.current, client, { now: () => performance.now() });
  const telemetry = {
    serviceEvent: () => {},
    endpointEvent: () => {},
    planned: () => (family === 'IPv4' ? stopwatch.planned() : undefined),
  };
  const proxy = new Proxier({
    family,
    settings: { ...VIEW, nodeName: NODE_NAME },
    writer: {
      sync: (plan, dirty) => writer.sync(plan, dirty, OPTIONS),
      requestFull: () => writer.requestFull(),
    },
    telemetry,
    startedAt: Date.now(),
  });
  return new SyncRunner({
    proxier: proxy,
    log,
    clock: systemClock,
    minSyncPeriodMs,
    syncPeriodMs: 30_000,
    onSynced: (outcome) => {
      if (family === 'IPv4') stopwatch.written(outcome);
    },
  });
}

function timed(proxy: DualStackProxier, stopwatch: Stopwatch): SourceEvents {
  return {
    service: (key, current) => proxy.service(key, current),
    endpointSlice: (key, current) => {
      stopwatch.received();
      proxy.endpointSlice(key, current);
    },
    node: (name, current) => proxy.node(name, current),
    synced: () => {
      stopwatch.listed();
      proxy.synced();
    },
    report: (problem) => proxy.report(problem),
  };
}

function accessTo({ port, ca }: ProxyOptions): ApiAccess {
  const identity = {
    authorization: 'Bearer benchmark',
    ca: readFileSync(ca, 'utf8'),
    certificate: undefined,
    key: undefined,
  };
  return {
    origin: 'the benchmark',
    server: new URL(`https://127.0.0.1:${port}`),
    insecure: false,
    serverName: undefined,
    proxy: undefined,
    identity: () => Promise.resolve(identity),
    renew: () => Promise.resolve(false),
  };
}

function tell(message: FromProxy): void {
  process.send?.(message);
}

function told(kind: ToProxy['kind']): Promise<void> {
  return new Promise((resolve) => {
    const take = (message: ToProxy): void => {
      if (message.kind !== kind) return;
      process.off('message', take);
      resolve();
    };
    process.on('message', take);
  });
}

process.on('disconnect', () => process.exit());
await main(JSON.parse(process.argv[2] ?? '{}') as ProxyOptions);
