/** Reads the kernel for questions: what becomes of a packet there, and where it differs from the plan. Changes nothing. */
import type { ServicePortId } from '../model/serviceTracker.ts';
import type { Host, Packet } from '../plan/decide.ts';
import type { Plan } from '../plan/types.ts';
import type { WalkResult } from './kernelRules.ts';

export interface KernelReader {
  /** Of a dump: when it was read, in milliseconds since the epoch. */
  readonly readAt?: number;
  /** Reads only what lies on the packet's way: the rules of a chain, elements by key, one virtual server. */
  walk(packet: Packet, host: Host): Promise<WalkResult>;
  /** Reads all that is ours, and says what a sync would change. */
  compare(plan: Plan): Promise<readonly KernelDifference[]>;
  /** All that is ours, as JSON: kept in a bundle, from which another reader can be made. */
  dump(): Promise<unknown>;
}

export interface KernelDifference {
  /** `missing`: planned and not in the kernel. `extra`: in the kernel and not planned. */
  readonly kind: 'missing' | 'extra' | 'different';
  /** `chain nat KUBE-SVC-…`, `element any-2`, `virtual server TCP 10.96.0.1:80` */
  readonly object: string;
  /** As the mode's own program would print it. */
  readonly text: string;
  readonly servicePort?: ServicePortId;
}
