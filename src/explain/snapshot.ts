/**
 * What a plan is made from, as lines of JSON: what `/v1/snapshot` sends, and the first lines of a bundle. A header comes
 * first, then objects in Kubernetes' own shape, so that the readers of manifests check them where they come back.
 */
import type { Cidr, Family, Ip } from '../model/ip.ts';
import type { ModeName } from '../model/mode.ts';
import type { ObjectKey } from '../model/objects.ts';
import type { KubernetesObject } from '../model/project/toKubernetes.ts';
import type { ServicePortId } from '../model/serviceTracker.ts';
import type { SocketAddress } from '../plan/view.ts';

export type SnapshotLine =
  | SnapshotHeader
  | { readonly kind: 'object'; readonly object: KubernetesObject }
  | SnapshotPast;

/** What a service was made from before a change, where the past was asked for (`?history=true`). Oldest first. */
interface SnapshotPast {
  readonly kind: 'past';
  readonly family: Family;
  readonly service: ObjectKey;
  /** When the change was in the kernel, in milliseconds since the epoch. */
  readonly until: number;
  /** None: there was no such service. */
  readonly objects: readonly KubernetesObject[];
}

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
