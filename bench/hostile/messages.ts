/** What the programs of this benchmark ask and tell each other. Times are in milliseconds. */

export const MODES = ['nftables', 'iptables-nft', 'iptables-legacy', 'ipvs'] as const;
export type HostileMode = (typeof MODES)[number];

/** The service that is large, and one of somebody else. Both are dialled and changed. */
export const LARGE = { address: '10.112.0.1', port: 80 } as const;
export const OTHER = { address: '10.111.0.1', port: 80 } as const;
export const ENDPOINT_PORT = 8080;

export type Dialled = 'large' | 'other';

/** Which endpoint a service has after so many changes. */
export function probeEndpoint(service: Dialled, times: number): string {
  return `10.250.${service === 'large' ? 1 : 2}.${(times % 250) + 1}`;
}

export interface HostileTask {
  readonly mode: HostileMode;
  /** Name of the object. */
  readonly hostile: string;
  /** Services of others. */
  readonly services: number;
  /** Endpoint changes of each kind. */
  readonly changes: number;
  /** Where the daemon's CPU profile goes. */
  readonly profile?: string;
}

/** What happened while one thing was done with the large object. */
export interface Phase {
  readonly name: 'create' | 'change' | 'delete' | 'restart';
  /** From the API server's write to the first connection that reaches the new endpoint; undefined: not in time. */
  readonly largeMs: readonly (number | undefined)[];
  readonly otherMs: readonly (number | undefined)[];
  /** The slowest answer of /livez. */
  readonly livezMs: number;
}

export interface HostileRun extends HostileTask {
  readonly phases: readonly Phase[];
  readonly resident: number;
  /** What it said about bounds. */
  readonly warnings: readonly string[];
}

export type ToApi =
  | { readonly kind: 'put'; readonly what: 'objects' | 'change' | 'other'; readonly times: number }
  | { readonly kind: 'delete' };
/** Times as in `Date.now`. */
export type FromApi =
  | { readonly kind: 'listening'; readonly url: string }
  | { readonly kind: 'done'; readonly at: number };

export interface ApiOptions {
  readonly hostile: string;
  readonly services: number;
}
