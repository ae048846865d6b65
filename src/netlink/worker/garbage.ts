/**
 * Collects the thread's garbage while it rests. V8 collects when a heap has grown enough, and this one hardly grows again once
 * everything is written: what the start left would stay for good. The heap is small, so that a collection takes milliseconds, and nobody waits
 * for a thread at rest.
 */
import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Without work for so long: more of it mostly follows at once. */
export const REST_MS = 2000;
/** Less than this is not worth a collection. */
const LEAST_BYTES = 1 << 20;

export class Garbage {
  #alive = heapBytes();
  #hasWorked = false;

  worked(): void {
    this.#hasWorked = true;
  }

  /** There was work since the last rest. */
  get mayBeDue(): boolean {
    return this.#hasWorked;
  }

  rested(): void {
    this.#hasWorked = false;
    if (heapBytes() < this.#alive + LEAST_BYTES) return;
    collectGarbage();
    this.#alive = heapBytes();
  }
}

function heapBytes(): number {
  const { used_heap_size: used, external_memory: external } = getHeapStatistics();
  return used + external;
}

let gc: (() => void) | undefined;

function collectGarbage(): void {
  if (!gc) {
    setFlagsFromString('--expose-gc');
    gc = runInNewContext('gc') as () => void;
    setFlagsFromString('--no-expose-gc');
  }
  gc();
}
