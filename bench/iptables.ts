/** iptables mode at several sizes: our own time, and the time of the restores that it leads to. */
import { IptablesRules } from '../src/modes/iptables/reconcile.ts';
import type { SyncReport } from '../src/proxy/report.ts';
import type { TableClient } from '../src/modes/iptables/rules/sender.ts';
import type { LayoutName } from '../src/modes/iptables/rules/fragment.ts';
import { LAYOUTS } from '../src/modes/iptables/rules/layouts/index.ts';
import { printStep } from '../src/modes/iptables/rules/edit.ts';
import { wholeRestore } from '../src/modes/iptables/rules/whole.ts';
import { IptablesClient } from '../src/modes/iptables/client.ts';
import { NetlinkChainReader } from '../src/modes/iptables/netlink/reader.ts';
import { NetlinkWriter } from '../src/modes/iptables/netlink/writer.ts';
import type { ChainReader } from '../src/modes/iptables/rules/chainReader.ts';
import { NETLINK_NETFILTER } from '../src/netlink/socket.ts';
import { NetlinkThread } from '../src/netlink/thread.ts';
import { objectKey } from '../src/model/objects.ts';
import { Proxier } from '../src/proxy/proxier.ts';
import { fill as fillProxy, makeService, makeSlice, type Sizes, VIEW } from './cluster.ts';
import { openNamespace } from './namespace.ts';

export const OPTIONS = {
  nodePortIps: 'all',
  masqueradeMark: 0x4000,
  randomFully: true,
  dropInvalid: true,
  nfacct: { invalidDropped: false, localhostNodePorts: false },
} as const;

export interface OwnTimes {
  readonly coldMs: number;
  readonly coldBytes: number;
  /** From an event to the finished text, median. */
  readonly changeMs: number;
  readonly changeBytes: number;
}

const CHANGES = 300;

/** It prints what it is given, and nothing else. */
const SWALLOWING: TableClient = {
  save: async () => '',
  commit: async (step) => printStep(step).length,
};

/** What Junction itself takes: a client that swallows everything. */
export async function ownTimes(sizes: Sizes): Promise<OwnTimes> {
  const colds = [await coldSync(sizes), await coldSync(sizes), await coldSync(sizes)];
  const { proxy, report: cold } = colds[2] ?? (await coldSync(sizes));
  const coldMs = median(colds.map(({ milliseconds }) => milliseconds));
  const times: number[] = [];
  let changeBytes = 0;
  for (let change = 1; change <= CHANGES; change++) {
    const index = (change * 37) % sizes.services;
    const slice = makeSlice(index, sizes.endpoints, change);
    const before = performance.now();
    proxy.onEndpointSlice(objectKey(slice.namespace, slice.name), slice);
    const report = await mustSync(proxy);
    times.push(performance.now() - before);
    changeBytes = bytesOf(report);
  }
  return { coldMs, coldBytes: bytesOf(cold), changeMs: median(times), changeBytes };
}

function bytesOf({ counts }: SyncReport): number {
  return counts['restore.bytes'] ?? 0;
}

async function coldSync(
  sizes: Sizes,
): Promise<{ readonly proxy: Proxier; readonly report: SyncReport; readonly milliseconds: number }> {
  const { proxy, fill } = makeProxy(SWALLOWING, 'current');
  fill(sizes);
  const [milliseconds, report] = await timed(() => mustSync(proxy));
  return { proxy, report, milliseconds };
}

export interface KernelTimes {
  readonly coldMs: number;
  readonly restores: number;
  readonly changeMs: number;
  readonly addServiceMs: number;
  /** Another process starts on the same kernel and finds everything in place. */
  readonly restartMs: number;
}

export interface KernelTask {
  readonly sizes: Sizes;
  readonly variant: 'nft' | 'legacy';
  /** The legacy variant has `restore` alone. */
  readonly writer: 'netlink' | 'restore';
}

/** The same with a real kernel behind it, in the network namespace of this process. */
export async function kernelTimes({ sizes, variant, writer }: KernelTask): Promise<KernelTimes> {
  const thread = await NetlinkThread.start();
  try {
    const channel = thread.transactionChannel(NETLINK_NETFILTER);
    const client = await IptablesClient.open({ family: 'IPv4', variant });
    if (writer === 'netlink') client.netlink = new NetlinkWriter('IPv4', channel);
    const reader =
      variant === 'nft'
        ? new NetlinkChainReader('IPv4', channel, { timeSlice: client.timeSlice })
        : undefined;
    const { proxy, fill } = makeProxy(client, 'current', reader);
    fill(sizes);
    const [coldMs, cold] = await timed(() => mustSync(proxy));
    const changes: number[] = [];
    for (let change = 1; change <= 5; change++) {
      const slice = makeSlice((change * 37) % sizes.services, sizes.endpoints, change);
      proxy.onEndpointSlice(objectKey(slice.namespace, slice.name), slice);
      changes.push((await timed(() => mustSync(proxy)))[0]);
    }
    const added = makeService(sizes.services);
    const addedSlice = makeSlice(sizes.services, sizes.endpoints);
    proxy.onService(objectKey(added.namespace, added.name), added);
    proxy.onEndpointSlice(objectKey(addedSlice.namespace, addedSlice.name), addedSlice);
    const [addServiceMs] = await timed(() => mustSync(proxy));
    proxy.writer.requestFull();
    const [restartMs, verified] = await timed(() => mustSync(proxy));
    if (verified.commits > 0) throw new Error('a second look found differences');
    return { coldMs, restores: cold.commits, changeMs: median(changes), addServiceMs, restartMs };
  } finally {
    await thread.close();
  }
}

/** The baseline: everything in one restore, as kube-proxy writes it at a full sync. */
export async function rewriteMs(sizes: Sizes, variant: 'nft' | 'legacy'): Promise<number> {
  const namespace = await openNamespace();
  try {
    const client = await IptablesClient.open({ family: 'IPv4', variant, runner: namespace.runner });
    const { proxy, fill } = makeProxy(SWALLOWING, 'current');
    fill(sizes);
    await mustSync(proxy);
    const text = wholeRestore(LAYOUTS.current, proxy.plan, {
      ...OPTIONS,
      family: 'IPv4',
      view: proxy.plan.view,
      endpointComments: false,
    });
    return (await timed(() => client.restore(undefined, text, { flush: false, counters: true })))[0];
  } finally {
    namespace.close();
  }
}

function makeProxy(
  client: TableClient,
  layout: LayoutName,
  reader?: ChainReader,
): { readonly proxy: Proxier; readonly fill: (sizes: Sizes) => void } {
  const writer = new IptablesRules(LAYOUTS[layout], client, { reader, now: () => performance.now() });
  const proxy = new Proxier({
    family: 'IPv4',
    settings: VIEW,
    writer: {
      sync: (plan, dirty) => writer.sync(plan, dirty, OPTIONS),
      requestFull: () => writer.requestFull(),
    },
  });
  return { proxy, fill: (sizes) => fillProxy(proxy, sizes) };
}

async function mustSync(proxy: Proxier): Promise<SyncReport> {
  const outcome = await proxy.sync();
  if (!outcome) throw new Error('nothing was synced');
  return outcome.report;
}

async function timed<T>(work: () => Promise<T>): Promise<readonly [milliseconds: number, result: T]> {
  const started = performance.now();
  const result = await work();
  return [performance.now() - started, result];
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}
