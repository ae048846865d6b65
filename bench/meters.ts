/** What a process can tell about itself. */
import { type IntervalHistogram, monitorEventLoopDelay } from 'node:perf_hooks';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

export interface Memory {
  readonly resident: number;
  readonly heap: number;
}

export interface Percentiles {
  readonly p50: number;
  readonly p99: number;
  readonly most: number;
}

const TICK_MS = 5;

/** The longest time in which the event loop could not turn. */
export class BlockMeter {
  readonly #ticks: IntervalHistogram = monitorEventLoopDelay({ resolution: TICK_MS });

  start(): void {
    this.#ticks.reset();
    this.#ticks.enable();
  }

  /** Milliseconds. A meter that goes on would cost time that an idle process does not take. */
  stop(): number {
    this.#ticks.disable();
    return Math.max(0, this.#ticks.max / 1e6 - TICK_MS);
  }
}

export function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

export function memory(): Memory {
  return { resident: process.memoryUsage.rss(), heap: process.memoryUsage().heapUsed };
}

/** What is still there when everything that can go is gone. */
export function liveMemory(): Memory {
  setFlagsFromString('--expose-gc');
  const collectGarbage = runInNewContext('gc') as () => void;
  collectGarbage();
  return memory();
}

export function percentiles(samples: readonly number[]): Percentiles {
  const sorted = [...samples].sort((a, b) => a - b);
  const at = (share: number): number => sorted[Math.floor((sorted.length - 1) * share)] ?? Number.NaN;
  return { p50: at(0.5), p99: at(0.99), most: at(1) };
}
