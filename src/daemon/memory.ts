/**
 * How much memory the process keeps beside what it uses. V8 lets garbage grow until it is as much as what lives, and
 * malloc keeps what was freed; both are right for a program that goes on working, and wrong for one that works hard for
 * three seconds at its start and hardly ever again. See decision 0056 for what each of these saves.
 */
import { setFlagsFromString } from 'node:v8';
import { measureMemory } from 'node:vm';
import { libc } from '../system/libc.ts';
import type { Clock } from '../time/clock.ts';

/**
 * A collection is due when so much has come to what was alive after the last one. While the heap fills at a start, a
 * quarter means one collection after the other: with 30,000 services × 10 endpoints a third of the CPU time.
 */
const HEAP_GROWTH_PERCENT = { start: 75, later: 25 };
/** malloc.h */
const M_TRIM_THRESHOLD = -1;
/** The C library's own first value, which it raises with each large block that is freed: here to tens of megabytes. */
const TRIM_BYTES = 128 << 10;

/** To be called at the start, before there is much. */
export function limitMemory(): void {
  disablePretenuring();
  setHeapGrowth(HEAP_GROWTH_PERCENT.start);
  withMalloc(({ mallopt }) => mallopt(M_TRIM_THRESHOLD, TRIM_BYTES));
}

function setHeapGrowth(percent: number): void {
  setFlagsFromString(`--heap-growing-percent=${percent}`);
}

/**
 * V8 notices where objects are made that live long, and makes all later ones from there in the old generation. Here
 * that guess is wrong: the first sync's rules of a large cluster live long enough to count, and the garbage of all later
 * rules then waits for a full collection, which a process with little to do does not make. Measured with 10,000 services
 * × 10 endpoints, three runs each: 192 to 222 MiB resident with it, 187 to 196 MiB without it, for the same CPU time.
 */
function disablePretenuring(): void {
  setFlagsFromString('--no-allocation-site-pretenuring');
}

/** After the last large sync: others may follow at once. */
const QUIET_MS = 2000;
/** Freed pages are given back by other threads, after the collection. */
const SWEEP_MS = 500;
/** The second finds pages that the first has made nearly empty: 6 MiB more with 10,000 services. */
const ROUNDS = 2;
/** Smaller syncs leave nothing worth mentioning. */
const LARGE_SYNC = 1000;

/** Gives memory back to the kernel after large work: the start, a repair, a restart's reading. */
export class MemoryReturn {
  readonly #clock: Clock;
  #cancel: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** A sync wrote so many objects. `isLarge`: it was the first, or compared everything. */
  synced(isLarge: boolean, objects: number): void {
    if (isLarge || objects >= LARGE_SYNC) this.#after(QUIET_MS, () => void this.#return(ROUNDS));
  }

  close(): void {
    this.#cancel?.();
    this.#cancel = undefined;
  }

  async #return(rounds: number): Promise<void> {
    try {
      await collectGarbage();
    } catch {
      return; // garbage waits for V8's own collection
    }
    this.#after(SWEEP_MS, () => {
      if (rounds > 1) void this.#return(rounds - 1);
      else trimMalloc();
    });
  }

  /** In place of whatever waits. */
  #after(delayMs: number, act: () => void): void {
    this.#cancel?.();
    this.#cancel = this.#clock.schedule(delayMs, act);
  }
}

/**
 * In steps of a few milliseconds, which `gc()` is not: that stands still for 90 ms with 10,000 services. Node says on
 * standard error that the function is experimental; nobody who reads the log can do anything about that.
 */
async function collectGarbage(): Promise<void> {
  setHeapGrowth(HEAP_GROWTH_PERCENT.later);
  const spoken = Object.getOwnPropertyDescriptor(process, 'emitWarning');
  let measured: Promise<unknown> | undefined;
  try {
    Object.defineProperty(process, 'emitWarning', { ...spoken, value: () => undefined });
    measured = measureMemory({ mode: 'summary', execution: 'eager' });
  } finally {
    if (spoken) Object.defineProperty(process, 'emitWarning', spoken);
  }
  await measured;
}

function trimMalloc(): void {
  withMalloc(({ mallocTrim }) => mallocTrim(0));
}

/** Another C library than glibc has neither. */
function withMalloc(call: (functions: ReturnType<typeof libc>['memory']) => unknown): void {
  try {
    call(libc().memory);
  } catch {
    // Memory stays with the process.
  }
}
