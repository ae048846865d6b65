/**
 * The process as the kernel sees it, and the state of Node.js. Read at each scrape. Nothing runs in between but the
 * observer of garbage collections: Node's monitor of the event loop wakes up a hundred times a second, and an idle proxy
 * should sleep.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { constants, PerformanceObserver, performance } from 'node:perf_hooks';
import { attempt } from '../../errors.ts';
import { type MetricFamily, readings } from './exposition.ts';
import { type Collector, Histogram } from './instruments.ts';

export const processMetrics: Collector = {
  collect: () => {
    const { user, system } = process.cpuUsage();
    const limits = readIfThere('/proc/self/limits');
    const network = ipOctets(readIfThere('/proc/self/net/netstat'));
    return readings({
      process_cpu_seconds_total: ['Total user and system CPU time spent in seconds.', (user + system) / 1e6],
      process_resident_memory_bytes: ['Resident memory size in bytes.', process.memoryUsage.rss()],
      process_virtual_memory_bytes: ['Virtual memory size in bytes.', virtualBytes()],
      process_virtual_memory_max_bytes: [
        'Maximum amount of virtual memory available in bytes.',
        addressSpace(limits),
      ],
      process_network_receive_bytes_total: [
        'Number of bytes received by the process over the network.',
        network('InOctets'),
      ],
      process_network_transmit_bytes_total: [
        'Number of bytes sent by the process over the network.',
        network('OutOctets'),
      ],
      process_open_fds: ['Number of open file descriptors.', countFds()],
      process_max_fds: [
        'Maximum number of open file descriptors.',
        numberIn(/^Max open files\s+(\d+)/m, limits),
      ],
      process_start_time_seconds: [
        'Start time of the process since unix epoch in seconds.',
        STARTED_AT_SECONDS,
      ],
    });
  },
};

const STARTED_AT_SECONDS = Math.round(performance.timeOrigin / 10) / 100;

function virtualBytes(): number {
  return numberIn(/^VmSize:\s+(\d+) kB/m, readIfThere('/proc/self/status')) * 1024;
}

/** Without a limit it is the largest number of 64 bits, as Prometheus' library for Go says it. */
function addressSpace(limits: string): number {
  return /^Max address space\s+unlimited/m.test(limits)
    ? 2 ** 64
    : numberIn(/^Max address space\s+(\d+)/m, limits);
}

/** Of the network namespace: the kernel counts by nothing smaller, and kube-proxy shows the same. */
function ipOctets(netstat: string): (name: string) => number {
  const [names = [], values = []] = netstat
    .split('\n')
    .filter((line) => line.startsWith('IpExt: '))
    .map((line) => line.split(' '));
  return (name) => Number(values[names.indexOf(name)]);
}

/** NaN where it is not there: such a metric is left out. */
function numberIn(pattern: RegExp, text: string): number {
  return Number(pattern.exec(text)?.[1]);
}

function readIfThere(path: string): string {
  return attempt(() => readFileSync(path, 'utf8')) ?? '';
}

function countFds(): number | undefined {
  return attempt(() => readdirSync('/proc/self/fd').length - 1); // without the one that reads the folder
}

const GC_BUCKETS: readonly number[] = [0.001, 0.01, 0.1, 1, 2, 5];
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
    const { active, idle } = performance.eventLoopUtilization();
    const version = { labels: [['version', process.version]], value: 1 } as const;
    return [
      ...readings({
        nodejs_eventloop_lag_seconds: ['Lag of the event loop when this was asked.', lag],
        nodejs_eventloop_active_seconds_total: ['Time that the event loop was busy.', active / 1000],
        nodejs_eventloop_idle_seconds_total: ['Time that the event loop waited for events.', idle / 1000],
        // By Go's name, because dashboards for kube-proxy have a panel for it: what waits for something.
        go_goroutines: [
          'What waits for something in Node.js, in the place of goroutines: timers, sockets, programs, requests.',
          process.getActiveResourcesInfo().length,
        ],
        nodejs_heap_size_total_bytes: ['Size of the heap.', heapTotal],
        nodejs_heap_size_used_bytes: ['Used part of the heap.', heapUsed],
        nodejs_external_memory_bytes: ['Memory of objects outside of the heap.', external],
        nodejs_array_buffers_bytes: ['Memory of array buffers.', arrayBuffers],
      }),
      {
        name: 'nodejs_version_info',
        help: 'Version of Node.js.',
        type: 'gauge',
        labelNames: ['version'],
        samples: [version],
      },
      ...this.#gc.collect(),
    ];
  }
}

function gcKind(entry: object): unknown {
  const detail = 'detail' in entry ? entry.detail : undefined;
  return typeof detail === 'object' && detail !== null && 'kind' in detail ? detail.kind : undefined;
}

/** How long a callback that is due waits for its turn. */
function eventLoopLagSeconds(): Promise<number> {
  const asked = performance.now();
  return new Promise((resolve) => {
    setImmediate(() => resolve((performance.now() - asked) / 1000));
  });
}
