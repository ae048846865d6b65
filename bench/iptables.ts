/** iptables mode at several sizes: our own time, and the time of the restores that it leads to. */
import { IptablesSync } from '../src/modes/iptables/sync.ts';
import type { SyncReport } from '../src/proxy/report.ts';
import type { LayoutName } from '../src/modes/iptables/rules/fragment.ts';
import { LAYOUTS } from '../src/modes/iptables/rules/layouts/index.ts';
import { wholeRestore } from '../src/modes/iptables/rules/whole.ts';
import { IptablesClient } from '../src/modes/iptables/client.ts';
import { nftLook } from '../src/modes/iptables/kernelTables.ts';
import type { CommandRunner } from '../src/system/processes.ts';
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

/** Takes every restore, and finds nothing. */
const SWALLOWING: CommandRunner = async (argv) => ({
  code: 0,
  signal: null,
  stdout: argv.includes('--version') ? 'iptables v1.8.9 (nf_tables)' : '',
  stderr: '',
});

async function swallowingClient(): Promise<IptablesClient> {
  return IptablesClient.open({ family: 'IPv4', variant: 'nft', runner: SWALLOWING });
}

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
  const { proxy, fill } = makeProxy(await swallowingClient(), 'current');
  fill(sizes);
  const [milliseconds, report] = await timed(() => mustSync(proxy));
  return { proxy, report, milliseconds };
}

export interface KernelTimes {
  readonly coldMs: number;
  readonly restores: number;
  readonly changeMs: number;
  readonly addServiceMs: number;
  /** Everything is written again. */
  readonly rewriteMs: number;
}

export interface KernelTask {
  readonly sizes: Sizes;
  readonly variant: 'nft' | 'legacy';
}

/** The same with a real kernel behind it, in the network namespace of this process. */
export async function kernelTimes({ sizes, variant }: KernelTask): Promise<KernelTimes> {
  const client = await IptablesClient.open({ family: 'IPv4', variant, nft: nftLook('IPv4') });
  const { proxy, fill } = makeProxy(client, 'current');
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
  const [rewriteMs] = await timed(() => mustSync(proxy));
  return { coldMs, restores: cold.commits, changeMs: median(changes), addServiceMs, rewriteMs };
}

/** The baseline: everything in one restore, as kube-proxy writes it at a full sync. */
export async function oneRestoreMs(sizes: Sizes, variant: 'nft' | 'legacy'): Promise<number> {
  const namespace = await openNamespace();
  try {
    const client = await IptablesClient.open({ family: 'IPv4', variant, runner: namespace.runner });
    const { proxy, fill } = makeProxy(await swallowingClient(), 'current');
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
  client: IptablesClient,
  layout: LayoutName,
): { readonly proxy: Proxier; readonly fill: (sizes: Sizes) => void } {
  const writer = new IptablesSync({
    layout: LAYOUTS[layout],
    client,
    now: () => performance.now(),
    settings: () => OPTIONS,
  });
  const proxy = new Proxier({ family: 'IPv4', settings: VIEW, writer });
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
