/**
 * Node's own state. Nothing here runs between two questions but the observer of garbage collections, which is told:
 * Node's monitor of the event loop wakes up a hundred times a second, and an idle proxy should sleep.
 */
import { constants, type EventLoopUtilization, PerformanceObserver, performance } from 'node:perf_hooks';
import { GC_BUCKETS } from './buckets.ts';
import type { MetricFamily, MetricType } from './exposition.ts';
import { type Collector, Histogram } from './instruments.ts';

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
