/** What is known of every node of a cluster, as data: `kubectl junction status -o json`, and `/v1/nodes`. */
import type { Ip } from '../model/ip.ts';
import type { Status } from './status.ts';

/** Worst first. `not asked`: nobody may ask the pod there, so that only the Node object is known. */
export const NODE_STATES = [
  'no answer',
  'no pod',
  'not running',
  'not ready',
  'errors',
  'starting',
  'warnings',
  'not asked',
  'ok',
] as const;
export type NodeState = (typeof NODE_STATES)[number];

export interface NodeStatus {
  readonly node: string;
  readonly pod?: string;
  readonly state: NodeState;
  /** Why it is not ok. */
  readonly detail?: string;
  readonly status?: Status;
  /** Unset where nodes may not be listed. */
  readonly object?: NodeObject;
}

/** What the Node object says. */
export interface NodeObject {
  readonly isReady: boolean;
  /** Why it is not, in the kubelet's words. */
  readonly reason?: string;
  readonly addresses: readonly Ip[];
  readonly zone?: string;
  /** Of the kubelet: `v1.34.2` */
  readonly version?: string;
}
