/** What the programs inside the namespaces are asked, and what they tell. Times are in milliseconds. */
import type { Memory } from '../meters.ts';
import type { Sizes } from '../cluster.ts';

export type { Sizes } from '../cluster.ts';

export interface OwnTask {
  readonly kind: 'own';
  readonly sizes: Sizes;
  readonly counters: boolean;
  /** This process hears of every change of any table, as the daemon does. */
  readonly listens: boolean;
  /** Whether the table is built again at the end. */
  readonly rebuilds: boolean;
}

/** The same services as chains, through `nft -f`. */
export interface ChainsTask {
  readonly kind: 'chains';
  readonly sizes: Sizes;
  readonly layout: ChainLayout;
}

/** As kube-proxy has them now, and as it had them at first. */
export type ChainLayout = 'a chain per service' | 'a chain per endpoint too';

export interface PacketsTask {
  readonly kind: 'packets';
  readonly sizes: Sizes;
  readonly table: 'flat' | 'flat with counters' | 'chains';
  readonly samples: number;
}

/** Answers at these addresses until it is ended. */
export interface AnswerTask {
  readonly kind: 'answer';
  readonly addresses: readonly string[];
  readonly port: number;
}

export interface DialTask {
  readonly kind: 'dial';
  readonly service: { readonly address: string; readonly port: number };
  readonly endpoints: { readonly addresses: readonly string[]; readonly port: number };
  readonly samples: number;
}

export type Task = OwnTask | ChainsTask | PacketsTask | AnswerTask | DialTask;

export interface ColdTime {
  readonly plan: number;
  readonly compile: number;
  /** From elements to the bytes of messages. */
  readonly encode: number;
  /** With nothing to do but to wait for the kernel. */
  readonly wait: number;
  /** Until packets are forwarded. */
  readonly total: number;
  /** Of all threads, and of the kernel on their behalf. */
  readonly cpu: number;
  /** From the last byte to the kernel's answer, summed up. Other work goes on meanwhile. */
  readonly commit: number;
  readonly longestCommit: number;
  readonly commits: number;
  readonly bytes: number;
}

export interface OwnRun {
  readonly cold: ColdTime;
  /** The longest time during the cold sync in which nothing else had its turn. */
  readonly blockMs: number;
  readonly settled: Memory;
  readonly live: Memory;
  /** Each from the event to the kernel's answer. */
  readonly changeMs: readonly number[];
  /** The part of each during which the kernel or the way to it was waited for. */
  readonly changeCommitMs: readonly number[];
  readonly addMs: readonly number[];
  readonly removeMs: readonly number[];
  /** No pool had four endpoints before: the table gets one map and one rule more. */
  readonly firstGrowMs: number;
  readonly growMs: readonly number[];
  readonly thousandMs: readonly number[];
  readonly thousandLongestCommitMs: number;
  /** Everything is read back and found as it should be. */
  readonly rebuildMs: number | undefined;
  /** How often the listener missed something, and so would have everything read again. */
  readonly lost: number;
}

export interface ChainsRun {
  readonly coldMs: number;
  readonly bytes: number;
  readonly changeMs: readonly number[];
  readonly addMs: readonly number[];
}

/** Medians, in microseconds. */
export interface PacketsRun {
  readonly tcp: Latencies;
  readonly udp: Latencies;
}

export interface Latencies {
  readonly direct: number;
  readonly service: number;
}

/** A whole proxy as a process, with an API server, a client and endpoints around it. */
export interface ProxyTask {
  /** The command, to which `--config FILE` is added. */
  readonly command: readonly [program: string, ...args: string[]];
  readonly sizes: Sizes;
  readonly changes: number;
}

export interface ProxyRun {
  /** From the start of the process to the first connection through the last service, and its CPU time until then. */
  readonly forwardingMs: number;
  readonly forwardingCpuMs: number;
  readonly resident: number;
  /** From the API server's write to the first connection that reaches the new endpoint. */
  readonly changeMs: readonly number[];
  /** CPU time of each change, with that of the programs that it has started. */
  readonly changeCpuMs: readonly number[];
}

export interface ApiOptions {
  readonly sizes: Sizes;
}

export type ToApi = { readonly kind: 'replace'; readonly endpoint: string };
export type FromApi =
  | { readonly kind: 'listening'; readonly url: string }
  | ({ readonly kind: 'replaced' } & Replaced);

export interface Replaced {
  /** As of `Date.now`. */
  readonly at: number;
  /** As of `monotonicMs`. */
  readonly monotonicMs: number;
}

/** Tells each time when a connection reaches another endpoint than the one before. */
export interface WatchTask {
  readonly address: string;
  readonly port: number;
}

export interface Reached {
  readonly at: number;
  readonly endpoint: string;
}

export const NODE_NAME = 'node-0.cluster.example';
/** Of a clock that all processes of this machine share, finer than `Date.now`. */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** The service that is dialled and changed; it was the last to be made. */
export const PROBE = { address: '10.111.0.1', port: 80, endpointPort: 8080 } as const;

export function probeEndpoint(number: number): string {
  return `10.250.0.${number + 1}`;
}
