/** What the programs of this benchmark tell each other. Sizes are bytes, times milliseconds. */
import type { ClusterSizes, SizingMode } from '../sizing/messages.ts';
import type { HeapGroup } from './heapSnapshot.ts';

export interface MemoryTask {
  readonly mode: SizingMode;
  readonly sizes: ClusterSizes;
  /** `junction.js` of this build, or of another one. */
  readonly program: string;
  readonly settleSeconds: number;
  readonly nodeOptions: string;
  /** How many lines of the heap; 0: no snapshot is made. */
  readonly groups: number;
}

/** Of resident memory. */
export interface Mappings {
  /** Node's program and libraries. */
  readonly files: number;
  readonly malloc: number;
  /** Machine code that V8 made. */
  readonly code: number;
  readonly stacks: number;
  /** V8's heaps, of both threads. */
  readonly others: number;
}

/** What V8 says of the main thread's heap. */
export interface HeapNumbers {
  readonly used: number;
  readonly total: number;
  readonly young: number;
  readonly code: number;
  readonly external: number;
}

export interface ProcessRun {
  /** Until all services were served. */
  readonly ms: number;
  readonly cpuMs: number;
  readonly first: number;
  readonly settled: number;
  /** Up to then. */
  readonly peak: number;
  readonly mappings: Mappings;
  readonly heap: HeapNumbers;
}

export interface MemoryRun {
  readonly start: ProcessRun;
  /** On the rules that the first one left. */
  readonly restart: ProcessRun;
  readonly groups: readonly HeapGroup[];
}
