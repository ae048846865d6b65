/**
 * What a plan is made from, as lines of JSON: what `/v1/snapshot` sends, and the first lines of a bundle. A header comes
 * first, then objects in Kubernetes' own shape, so that the readers of manifests check them where they come back.
 */
import type { Cidr, Family, Ip } from '../model/ip.ts';
import type { ModeName } from '../model/mode.ts';
import type { KubernetesObject } from '../model/project/toKubernetes.ts';
import type { ServicePortId } from '../model/serviceTracker.ts';
import type { SocketAddress } from '../plan/view.ts';

export type SnapshotLine = SnapshotHeader | { readonly kind: 'object'; readonly object: KubernetesObject };

export interface SnapshotHeader {
  readonly kind: 'header';
  /** Of the format. Fields are added without a new one. */
  readonly format: 1;
  /** Junction's. */
  readonly version: string;
  readonly node: string;
  readonly mode: ModeName;
  /** Milliseconds since the epoch. */
  readonly takenAt: number;
  /** As a configuration file says it. */
  readonly config: Readonly<Record<string, unknown>>;
  /** Where the API server is dialled, where that matters to the mode. */
  readonly apiServers?: readonly SocketAddress[];
  /** Where cluster IPs come from, as far as the API server knows. */
  readonly serviceCidrs?: readonly Cidr[];
  /** Those that are served. */
  readonly families: readonly SnapshotFamily[];
}

export interface SnapshotFamily {
  readonly family: Family;
  /** This node's own addresses. */
  readonly addresses: readonly Ip[];
  /** Service ports that the kernel refused, with what it said. */
  readonly refused: readonly { readonly servicePort: ServicePortId; readonly error: string }[];
}
