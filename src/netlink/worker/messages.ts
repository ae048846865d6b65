/** What the thread that owns the sockets and the main thread say to each other. Bytes are handed over, never copied. */
import type { ErrorCode } from '../../errors.ts';
import type { FaultName } from '../../faults.ts';
import type { Exchange } from '../exchange.ts';
import type { MessageFilter } from '../port.ts';
import type { Reduction } from '../reduction.ts';
import type { ChainQuestions } from './compareRules.ts';
import type { Lookup } from './lookUp.ts';
import type { ScanFilter } from './scan.ts';

/** The worker's data when it starts. The descriptors belong to the main thread. */
export interface WorkerSettings {
  /** Written to after each message, because the worker waits in `poll` and not in its event loop. */
  readonly wake: number;
  /** Written to once, when the worker shall end. */
  readonly stop: number;
  /** How long to wait for the kernel's next answer. */
  readonly timeoutMs: number;
  /** The sockets that are open, one more than each number, where the main thread sees them too. */
  readonly sockets: Int32Array;
}

export type ToWorker =
  /** To be sent one after another, each when the one before is answered. */
  | {
      readonly kind: 'exchange';
      readonly id: number;
      readonly protocol: number;
      /** The datagrams without anything between them. */
      readonly bytes: Uint8Array;
      readonly exchanges: readonly Exchange[];
      readonly reduction?: Reduction | undefined;
    }
  | {
      readonly kind: 'watch';
      readonly id: number;
      readonly watch: number;
      readonly protocol: number;
      readonly groups: readonly number[];
      /** What comes of this thread's own requests is left out. */
      readonly othersOnly: boolean;
      readonly filter?: MessageFilter | undefined;
    }
  /** Filters notifications from now on. Earlier notifications have been passed on when this is done. */
  | { readonly kind: 'filter'; readonly id: number; readonly watch: number; readonly filter: MessageFilter }
  | { readonly kind: 'unwatch'; readonly id: number; readonly watch: number }
  /** Elements to be looked up and compared. The answer: for each lookup a number, and so many places; all of 32 bits. */
  | {
      readonly kind: 'lookUp';
      readonly id: number;
      readonly protocol: number;
      readonly lookups: readonly Lookup[];
    }
  /** Chains to be compared with their digests. The answer is those that differ. */
  | {
      readonly kind: 'compare';
      readonly id: number;
      readonly protocol: number;
      readonly questions: ChainQuestions;
    }
  /** A dump between other jobs. */
  | {
      readonly kind: 'scan';
      readonly id: number;
      readonly protocol: number;
      readonly request: Uint8Array;
      readonly filter?: ScanFilter | undefined;
    };

export type FromWorker =
  | { readonly kind: 'ready' }
  /** Whole messages of the answers to a job, in their order. There may be any number of these. */
  | { readonly kind: 'part'; readonly id: number; readonly bytes: Uint8Array }
  /** `examined`: of a scan, how many objects its filter looked at. */
  | { readonly kind: 'done'; readonly id: number; readonly examined?: number }
  | { readonly kind: 'failed'; readonly id: number; readonly code: ErrorCode; readonly message: string }
  /** Whole messages of the groups that are watched. */
  | { readonly kind: 'notified'; readonly watch: number; readonly bytes: Uint8Array }
  | { readonly kind: 'lost'; readonly watch: number }
  /** To be counted: this thread has counts of its own, which nobody reads. */
  | { readonly kind: 'fault'; readonly fault: FaultName; readonly detail: string; readonly times: number };
