/** Reads the kernel for questions: what becomes of a packet there, and where it differs from the plan. Changes nothing. */
import type { ServicePortId } from '../model/serviceTracker.ts';
import type { Host, Packet } from '../plan/decide.ts';
import type { Plan } from '../plan/types.ts';
import type { WalkResult } from './walk.ts';

export interface KernelReader {
  /** Of a dump: when it was read, in milliseconds since the epoch. */
  readonly readAt?: number;
  /** Reads only what lies on the packet's way: the rules of a chain, elements by key, one virtual server. */
  walk(packet: Packet, host: Host): Promise<WalkResult<unknown>>;
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

/**
 * Values that are read as a walk asks for them. A walk is synchronous and a read is not: what is missing is noted, read, and
 * the packet walked again, until nothing is missing.
 */
export class ReadOnDemand<Key extends string, Value> {
  readonly #read: (keys: readonly Key[]) => Promise<ReadonlyMap<Key, Value>>;
  readonly #known = new Map<Key, Value | undefined>();
  readonly #missing = new Set<Key>();

  constructor(read: (keys: readonly Key[]) => Promise<ReadonlyMap<Key, Value>>) {
    this.#read = read;
  }

  /** `undefined`: there is none, or it has not been read yet. */
  get(key: Key): Value | undefined {
    if (!this.#known.has(key)) this.#missing.add(key);
    return this.#known.get(key);
  }

  /** Returns whether something was missing, and has been read now. */
  async fill(): Promise<boolean> {
    const keys = [...this.#missing];
    this.#missing.clear();
    if (keys.length === 0) return false;
    const values = await this.#read(keys);
    for (const key of keys) this.#known.set(key, undefined);
    // A read may bring more than was asked for.
    for (const [key, value] of values) this.#known.set(key, value);
    return true;
  }
}
