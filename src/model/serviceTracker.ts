/**
 * Folds service events between two syncs into one previous/current pair per service.
 *
 * What a service was before the first event and is after the last is compared by the values that a proxy uses, so
 * an edit of anything else, an add that was deleted again, or a change that was taken back costs nothing.
 */
import { deepEqual } from './equal.ts';
import type { Family } from './ip.ts';
import type { ObjectKey, Service } from './objects.ts';
import { type ServicePort, servicePorts } from './servicePort.ts';

export interface ServiceChange {
  readonly previous: readonly ServicePort[];
  readonly current: readonly ServicePort[];
}

const NONE: readonly ServicePort[] = [];

export class ServiceTracker {
  readonly #family: Family;
  readonly #applied = new Map<ObjectKey, readonly ServicePort[]>();
  readonly #pending = new Map<ObjectKey, readonly ServicePort[]>();

  constructor(family: Family) {
    this.#family = family;
  }

  /** Notes what a service is now; `undefined`: it is gone. Answers whether anything is pending at all. */
  update(key: ObjectKey, service: Service | undefined): boolean {
    const current = service ? servicePorts(service, this.#family) : NONE;
    if (deepEqual(current, this.portsOf(key))) this.#pending.delete(key);
    else this.#pending.set(key, current);
    return this.#pending.size > 0;
  }

  get pendingCount(): number {
    return this.#pending.size;
  }

  /** The ports of a service as of the last `apply`. */
  portsOf(key: ObjectKey): readonly ServicePort[] {
    return this.#applied.get(key) ?? NONE;
  }

  keys(): IterableIterator<ObjectKey> {
    return this.#applied.keys();
  }

  /** Services with changes that are not applied yet. */
  pendingServices(): readonly ObjectKey[] {
    return [...this.#pending.keys()];
  }

  /** The ports that a service will have, if that is pending. */
  pendingPortsOf(key: ObjectKey): readonly ServicePort[] | undefined {
    return this.#pending.get(key);
  }

  /** Makes the pending changes of these services current and hands them out. */
  apply(services: Iterable<ObjectKey> = this.pendingServices()): ReadonlyMap<ObjectKey, ServiceChange> {
    const changes = new Map<ObjectKey, ServiceChange>();
    for (const key of services) {
      const current = this.#pending.get(key);
      if (!current) continue;
      this.#pending.delete(key);
      changes.set(key, { previous: this.portsOf(key), current });
      if (current.length > 0) this.#applied.set(key, current);
      else this.#applied.delete(key);
    }
    return changes;
  }
}
