/** Fills the table of flows of the network namespace that it runs in, and cleans it. Prints a line of JSON. */
import { setTimeout as sleep } from 'node:timers/promises';
import { FlowCleaner } from '../../src/proxy/conntrack.ts';
import { applyChanges, type Change } from '../../src/netlink/batch.ts';
import { ConntrackTable, type DumpFilter } from '../../src/netlink/conntrack.ts';
import { NETLINK_NETFILTER, NetlinkSocket } from '../../src/netlink/socket.ts';
import { NetlinkThread } from '../../src/netlink/thread.ts';
import { writeFlowFilter } from '../../src/netlink/worker/flowFilter.ts';
import { runToEnd } from '../../src/time/timeSlice.ts';
import { createLog } from '../../src/log/log.ts';
import { type Ip, parseIp } from '../../src/model/ip.ts';
import { objectKey } from '../../src/model/objects.ts';
import type { PlanChange } from '../../src/plan/types.ts';
import { Proxier } from '../../src/proxy/proxier.ts';
import { BlockMeter } from '../api/meters.ts';
import { makeService, makeSlice, VIEW } from '../cluster.ts';
import type { Held, TableOptions, TableRun } from './messages.ts';
import { newFlow, type Side } from './newFlow.ts';

const { flows, stale, repetitions } = JSON.parse(process.argv[2] ?? '{}') as TableOptions;
const DNS = 53;
/** So many more have the same port, and so does every flow: what a cluster's resolvers look like. */
const OTHER_SERVICES = 2000;
const SERVICE: Side = { ip: ip('172.16.0.0'), port: DNS };
const GONE: Side = { ip: ip('10.0.0.0'), port: 8080 };

const proxy = new Proxier({
  family: 'IPv4',
  settings: VIEW,
  writer: { sync: () => Promise.reject(new Error('nothing is written here')), requestFull: () => {} },
});
const log = createLog({ verbosity: 0, format: 'text' });
const thread = await NetlinkThread.start();
const flowTable = new ConntrackTable('IPv4', thread.transactionChannel(NETLINK_NETFILTER));
const cleaner = new FlowCleaner({ family: 'IPv4', localIps: () => [], log, table: flowTable });

function ip(text: string): Ip {
  const parsed = parseIp(text);
  if (!parsed) throw new Error(`${text} is no address`);
  return parsed;
}

function client(index: number): Side {
  return { ip: ip(`192.168.${(index >> 8) & 255}.${index & 255}`), port: 1024 + (index >> 8) };
}

function write(changes: readonly Change[]): void {
  const socket = NetlinkSocket.open(NETLINK_NETFILTER);
  const refused = applyChanges(socket, changes).find(({ state }) => state !== 'done');
  socket.close();
  if (refused) throw new Error(`the kernel does not take a flow: ${JSON.stringify(refused)}`);
}

function makeStale(): void {
  write(Array.from({ length: stale }, (_, index) => newFlow(client(index), SERVICE, GONE)));
}

function makeOthers(): void {
  const dialled = (index: number): Side => ({
    ip: ip(`203.0.${(index >> 8) & 127}.${index & 255}`),
    port: DNS,
  });
  write(Array.from({ length: flows }, (_, index) => newFlow(client(index), dialled(index), dialled(index))));
}

function makeServices(): void {
  for (let index = 0; index <= OTHER_SERVICES; index++) {
    const service = makeService(index);
    const ports = [{ name: 'http', protocol: 'UDP', port: DNS, nodePort: 0 }] as const;
    proxy.onService(objectKey(service.namespace, service.name), { ...service, ports });
  }
  proxy.replan();
}

/** The service is said to have these endpoints; each generation has another one. */
function replan(generation: number): readonly PlanChange[] {
  const slice = makeSlice(0, 1, generation);
  const ports = slice.ports.map((port) => ({ ...port, protocol: 'UDP' as const }));
  proxy.onEndpointSlice(objectKey(slice.namespace, slice.name), { ...slice, ports });
  return proxy.replan().changes;
}

async function held(work: () => Promise<number> | number): Promise<Held> {
  const block = new BlockMeter();
  block.start();
  await sleep(20);
  const started = performance.now();
  const count = await work();
  const elapsed = performance.now() - started;
  await sleep(20);
  return { ms: elapsed, blockMs: block.stop(), flows: count };
}

/** What comes to this thread. */
async function dump(filter: DumpFilter): Promise<number> {
  const frontends = [{ protocol: 'UDP', address: undefined, port: DNS, servers: [] }] as const;
  let count = 0;
  await flowTable.scan(filter, runToEnd(writeFlowFilter(frontends, 'IPv4')), (some) => {
    count += some.length;
  });
  return count;
}

async function clean(changes: readonly PlanChange[], isFirst: boolean): Promise<number> {
  const report = await cleaner.clean(changes, proxy.plan, isFirst);
  if (!report) throw new Error('nothing was cleaned');
  return report.deleted;
}

async function measure(generation: number): Promise<TableRun> {
  replan(0);
  makeStale();
  const narrow = await held(() => dump({ protocol: 'UDP', address: SERVICE.ip, port: SERVICE.port }));
  const whole = await held(() => dump({ protocol: 'UDP' }));
  const changes = replan(generation);
  const one = await held(() => clean(changes, false));
  makeStale();
  const first = await held(() => clean([], true));
  return { narrow, whole, one, first };
}

makeServices();
makeOthers();
const runs: TableRun[] = [];
for (let generation = 1; generation <= repetitions; generation++) runs.push(await measure(generation));
process.stdout.write(`${JSON.stringify(runs)}\n`);
await thread.close();
