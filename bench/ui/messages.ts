/** What the program inside the namespace is asked, and what it reports. Times are in milliseconds, sizes in bytes. */
import type { Sizes } from '../cluster.ts';
import type { ChangeTimes } from '../questions/askedProxy.ts';

export interface UiTask {
  readonly sizes: Sizes;
  readonly tabs: number;
  readonly changes: number;
  readonly repetitions: number;
}

export interface UiRun {
  readonly table: TableRun;
  readonly views: readonly ViewRun[];
  readonly syncs: { readonly alone: readonly ChangeTimes[]; readonly withTabs: readonly ChangeTimes[] };
  /** Questions that the tabs asked meanwhile. */
  readonly asked: number;
  /** Of the files, compressed as browsers get them. */
  readonly files: number;
  readonly resident: number;
}

/** The view of all services, in a real browser. */
export interface TableRun {
  /** From the last byte of the answer to the first rows on the screen. */
  readonly paintMs: readonly number[];
  /** From the address to the rows. */
  readonly openMs: readonly number[];
  readonly typing: Work & { readonly keyMs: readonly number[] };
  readonly scrolling: Work & Frames;
  /** The same in a document of plain rows, which the browser scrolls by itself. */
  readonly plainScrolling: Frames;
  readonly memory: { readonly tab: number; readonly heap: number };
}

/** Of the tab's main thread: nothing else happens there meanwhile. */
export interface Work {
  readonly longestTaskMs: number;
  /** Those of 50 ms and more, which a person notices. */
  readonly longTasks: number;
}

export interface Frames {
  readonly frames: number;
  readonly dropped: number;
}

/** What one view asks of the proxy. */
export interface ViewRun {
  readonly view: string;
  readonly path: string;
  readonly bytes: number;
  readonly ms: readonly number[];
}
