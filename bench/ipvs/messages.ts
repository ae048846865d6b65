/** What the programs inside the guest tell of their measurements. Times are in milliseconds. */
import type { Memory } from '../meters.ts';
import type { Sizes } from '../cluster.ts';

export type { Sizes } from '../cluster.ts';

/** Where the time of a sync goes. What is left over is our own: compiling, comparing, writing messages. */
export interface SyncTime {
  readonly total: number;
  readonly sets: number;
  readonly servers: number;
  readonly addresses: number;
  /** The iptables programs. */
  readonly rules: number;
}

export interface OwnRun {
  readonly kind: 'own';
  readonly sizes: Sizes;
  readonly cold: SyncTime;
  /** The longest time during the cold sync in which nothing else had its turn. */
  readonly blockMs: number;
  readonly settled: Memory;
  readonly live: Memory;
  readonly changeMs: readonly number[];
  readonly addMs: readonly number[];
  readonly removeMs: readonly number[];
  /** Everything is read back and found as it should be. */
  readonly verifyMs: number;
}

/** The usual programs, each with everything in one go. */
export interface ToolsRun {
  readonly kind: 'tools';
  readonly sizes: Sizes;
  readonly ipset: number;
  readonly ipvsadm: number;
  readonly ip: number;
  readonly restore: number;
}

export type GuestRun = OwnRun | ToolsRun;
