import { readdirSync, readFileSync } from 'node:fs';
import type { MetricFamily, MetricType } from './exposition.ts';
import { type Collector, GC_BUCKETS, Histogram } from './instruments.ts';
import { constants, type EventLoopUtilization, PerformanceObserver, performance } from 'node:perf_hooks';

/** The process as the kernel sees it. Read when somebody asks, never in between. */

export const processMetrics: Collector = {
  collect: () => {
    const { user, system } = process.cpuUsage();
    const limits = readIfThere('/proc/self/limits');
    const virtualKib = /^VmSize:\s+(\d+) kB/m.exec(readIfThere('/proc/self/status'))?.[1];
    const network = ipOctets(readIfThere('/proc/self/net/netstat'));
    const maxFds = /^Max open files\s+(\d+)/m.exec(limits)?.[1];
    return [
      ...single(
        'process_cpu_seconds_total',
        'counter',
        'Total user and system CPU time spent in seconds.',
        (user + system) / 1e6,
      ),
      ...single(
        'process_resident_memory_bytes',
        'gauge',
        'Resident memory size in bytes.',
        process.memoryUsage.rss(),
      ),
      ...single(
        'process_virtual_memory_bytes',
        'gauge',
        'Virtual memory size in bytes.',
        virtualKib === undefined ? undefined : Number(virtualKib) * 1024,
      ),
      ...single(
        'process_virtual_memory_max_bytes',
        'gauge',
        'Maximum amount of virtual memory available in bytes.',
        addressSpace(limits),
      ),
      ...single(
        'process_network_receive_bytes_total',
        'counter',
        'Number of bytes received by the process over the network.',
        network?.received,
      ),
      ...single(
        'process_network_transmit_bytes_total',
        'counter',
        'Number of bytes sent by the process over the network.',
        network?.sent,
      ),
      ...single('process_open_fds', 'gauge', 'Number of open file descriptors.', countFds()),
      ...single(
        'process_max_fds',
        'gauge',
        'Maximum number of open file descriptors.',
        maxFds === undefined ? undefined : Number(maxFds),
      ),
      ...single(
        'process_start_time_seconds',
        'gauge',
        'Start time of the process since unix epoch in seconds.',
        STARTED_AT_SECONDS,
      ),
    ];
  },
};

const STARTED_AT_SECONDS = Math.round(performance.timeOrigin / 10) / 100;

/** Without a limit it is the largest number of 64 bits, as Prometheus' library for Go says it. */
function addressSpace(limits: string): number | undefined {
  const limit = /^Max address space\s+(\S+)/m.exec(limits)?.[1];
  return limit === 'unlimited' ? 2 ** 64 : limit === undefined ? undefined : Number(limit);
}

/** Of the network namespace: the kernel counts by nothing smaller, and kube-proxy shows the same. */
function ipOctets(netstat: string): { readonly received: number; readonly sent: number } | undefined {
  const [names = [], values = []] = netstat
    .split('\n')
    .filter((line) => line.startsWith('IpExt: '))
    .map((line) => line.split(' '));
  const value = (name: string): number => Number(values[names.indexOf(name)]);
  return names.length === 0 ? undefined : { received: value('InOctets'), sent: value('OutOctets') };
}

function single(
  name: string,
  type: MetricType,
  help: string,
  value: number | undefined,
): readonly MetricFamily[] {
  if (value === undefined || !Number.isFinite(value)) return [];
  return [{ name, help, type, samples: [{ suffix: '', labels: [], value }] }];
}

function readIfThere(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

function countFds(): number | undefined {
  try {
    return readdirSync('/proc/self/fd').length - 1; // without the one that reads the folder
  } catch {
    return undefined;
  }
}

/**
 * Node's own state. Nothing here runs between two questions but the observer of garbage collections, which is told:
 * Node's monitor of the event loop wakes up a hundred times a second, and an idle proxy should sleep.
 */

const GC_KINDS: ReadonlyMap<unknown, string> = new Map([
  [constants.NODE_PERFORMANCE_GC_MAJOR, 'major'],
  [constants.NODE_PERFORMANCE_GC_MINOR, 'minor'],
  [constants.NODE_PERFORMANCE_GC_INCREMENTAL, 'incremental'],
  [constants.NODE_PERFORMANCE_GC_WEAKCB, 'weakcb'],
]);

export class RuntimeMetrics implements Collector {
  readonly #gc = new Histogram({
    name: 'nodejs_gc_duration_seconds',
    help: 'Garbage collection duration by kind: major, minor, incremental or weakcb.',
    labels: ['kind'],
    buckets: GC_BUCKETS,
  });
  readonly #observer = new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      this.#gc.observe({ kind: GC_KINDS.get(gcKind(entry)) ?? 'other' }, entry.duration / 1000);
    }
  });

  constructor() {
    this.#observer.observe({ entryTypes: ['gc'] });
  }

  close(): void {
    this.#observer.disconnect();
  }

  async collect(): Promise<readonly MetricFamily[]> {
    const lag = await eventLoopLagSeconds();
    const { heapTotal, heapUsed, external, arrayBuffers } = process.memoryUsage();
    const loop: EventLoopUtilization = performance.eventLoopUtilization();
    return [
      one('nodejs_eventloop_lag_seconds', 'gauge', 'Lag of the event loop when this was asked.', lag),
      one(
        'nodejs_eventloop_active_seconds_total',
        'counter',
        'Time that the event loop was busy.',
        loop.active / 1000,
      ),
      one(
        'nodejs_eventloop_idle_seconds_total',
        'counter',
        'Time that the event loop waited for events.',
        loop.idle / 1000,
      ),
      // By Go's name, because dashboards for kube-proxy have a panel for it: what waits for something.
      one(
        'go_goroutines',
        'gauge',
        'What waits for something in Node.js, in the place of goroutines: timers, sockets, programs, requests.',
        process.getActiveResourcesInfo().length,
      ),
      one('nodejs_heap_size_total_bytes', 'gauge', 'Size of the heap.', heapTotal),
      one('nodejs_heap_size_used_bytes', 'gauge', 'Used part of the heap.', heapUsed),
      one('nodejs_external_memory_bytes', 'gauge', 'Memory of objects outside of the heap.', external),
      one('nodejs_array_buffers_bytes', 'gauge', 'Memory of array buffers.', arrayBuffers),
      {
        name: 'nodejs_version_info',
        help: 'Version of Node.js.',
        type: 'gauge',
        samples: [{ suffix: '', labels: [['version', process.version]], value: 1 }],
      },
      ...this.#gc.collect(),
    ];
  }
}

function gcKind(entry: object): unknown {
  const detail = 'detail' in entry ? entry.detail : undefined;
  return typeof detail === 'object' && detail !== null && 'kind' in detail ? detail.kind : undefined;
}

function one(name: string, type: MetricType, help: string, value: number): MetricFamily {
  return { name, help, type, samples: [{ suffix: '', labels: [], value }] };
}

/** How long something that is due has to wait for its turn. */
function eventLoopLagSeconds(): Promise<number> {
  const asked = performance.now();
  return new Promise((resolve) => {
    setImmediate(() => resolve((performance.now() - asked) / 1000));
  });
}
