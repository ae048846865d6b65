import type { Encoding } from '../../src/sources/api/encoding.ts';

/** What the benchmark's processes tell each other. */
export interface ServerOptions {
  readonly services: number;
  readonly endpoints: number;
  readonly isDualStack?: boolean;
  readonly streamsLists: boolean;
  readonly certificates: string;
}

export interface Churn {
  readonly seconds: number;
  /** EndpointSlices a second. */
  readonly rate: number;
  /** Services a second that are deleted, each for a new one of another name. */
  readonly replace: number;
}

export interface Listening {
  readonly port: number;
  /** Bytes of JSON, on average. */
  readonly serviceBytes: number;
  readonly sliceBytes: number;
}

export interface ProxyOptions {
  readonly port: number;
  readonly ca: string;
  readonly minSyncPeriodMs: number;
  readonly encoding: Encoding;
}

export interface Memory {
  readonly resident: number;
  readonly heap: number;
}

/** Times in milliseconds, since the process began to ask the API server. */
export interface StartReport {
  readonly listedMs: number;
  readonly plannedMs: number;
  readonly compiledMs: number;
  readonly bytes: number;
  readonly cpuMs: number;
  readonly blockMs: number;
  readonly peak: number;
  /** After ten idle seconds. */
  readonly settled: Memory;
  /** After a collection that was asked for. */
  readonly live: Memory;
  /** Of one core, while nothing happens. */
  readonly idleShare: number;
}

export interface Percentiles {
  readonly p50: number;
  readonly p99: number;
  readonly most: number;
}

export interface ChurnReport {
  readonly events: number;
  readonly syncs: number;
  readonly toPlanMs: Percentiles;
  readonly toTextMs: Percentiles;
  /** From the server's write, over the network, to the text. */
  readonly fromServerMs: Percentiles;
  readonly cpuMs: number;
  readonly seconds: number;
  readonly blockMs: number;
  readonly end: Memory;
  readonly live: Memory;
}

export type FromServer =
  | ({ readonly kind: 'listening' } & Listening)
  | { readonly kind: 'churned'; readonly changes: number };
export type ToServer = { readonly kind: 'churn' } & Churn;

export type FromProxy =
  /** The first plan is complete. CPU since the first answer of the API server. */
  | { readonly kind: 'planned'; readonly cpuMs: number }
  | ({ readonly kind: 'started' } & StartReport)
  | ({ readonly kind: 'ended' } & ChurnReport);
/** `begin`: changes are about to come. `end`: the last one has been sent. */
export type ToProxy = { readonly kind: 'begin' } | { readonly kind: 'end' };

export const NODE_NAME = 'node-0.cluster.example';
