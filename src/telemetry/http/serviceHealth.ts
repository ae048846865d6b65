/**
 * Health-check node ports: where a load balancer asks whether this node has endpoints of a service.
 *
 * One server for each service that has such a port, in each family. What cannot be opened now is tried again at the
 * next sync.
 */
import type { Log } from '../../log/log.ts';
import type { Family, Ip } from '../../model/ip.ts';
import type { ObjectKey } from '../../model/objects.ts';
import { TimeSlice } from '../../time/timeSlice.ts';
import { systemClock } from '../../time/systemClock.ts';
import { HealthCheckListener } from './healthCheckListener.ts';

export interface HealthCheckFailure {
  readonly service: ObjectKey;
  readonly port: number;
  readonly error: unknown;
}

export interface ServiceHealthOptions {
  readonly family: Family;
  readonly nodeName: string;
  readonly addresses: 'all' | readonly Ip[];
  /** The proxy's own health. */
  readonly isHealthy: () => boolean;
  readonly log: Log;
  readonly onFailure?: (failure: HealthCheckFailure) => void;
}

export class ServiceHealthServers {
  readonly #options: ServiceHealthOptions;
  readonly #listeners = new Map<ObjectKey, HealthCheckListener>();
  #addresses: 'all' | readonly Ip[];
  #failed = false;
  #queue: Promise<void> = Promise.resolve();

  constructor(options: ServiceHealthOptions) {
    this.#options = options;
    this.#addresses = options.addresses;
  }

  /** The node has other addresses now, or another configuration; the next sync opens and closes sockets accordingly. */
  setAddresses(addresses: 'all' | readonly Ip[]): void {
    this.#addresses = addresses;
  }

  /** Some port could not be opened: `syncServices` again at the next sync, even if nothing has changed. */
  get hasFailures(): boolean {
    return this.#failed;
  }

  /** Services and their health-check node ports: all of them. Those that stay the same are left alone. */
  syncServices(ports: ReadonlyMap<ObjectKey, number>): Promise<void> {
    const wanted = new Map(ports);
    return this.#inTurn(() => this.#sync(wanted));
  }

  /** How many endpoints each service has on this node; a service that is absent has none. */
  syncEndpoints(counts: ReadonlyMap<ObjectKey, number>): Promise<void> {
    const current = new Map(counts);
    return this.#inTurn(async () => {
      for (const [service, listener] of this.#listeners) listener.count = current.get(service) ?? 0;
    });
  }

  async sync(ports: ReadonlyMap<ObjectKey, number>, counts: ReadonlyMap<ObjectKey, number>): Promise<void> {
    await Promise.all([this.syncServices(ports), this.syncEndpoints(counts)]);
  }

  close(): Promise<void> {
    return this.syncServices(new Map());
  }

  /** Opening takes time: what comes meanwhile waits, so that nothing is opened twice. */
  #inTurn(work: () => Promise<void>): Promise<void> {
    this.#queue = this.#queue.then(work, work);
    return this.#queue;
  }

  async #sync(wanted: ReadonlyMap<ObjectKey, number>): Promise<void> {
    const { log } = this.#options;
    const timeSlice = new TimeSlice(systemClock); // there may be thousands of them
    // All closed before any is opened: a port may pass from one service to another.
    for (const [service, listener] of this.#listeners) {
      const { port } = listener;
      if (wanted.get(service) === port) continue;
      log.verbose(2, 'Closing healthcheck', { service, port });
      this.#listeners.delete(service);
      await listener.close();
      await timeSlice.pause();
    }
    this.#failed = false;
    for (const [service, port] of wanted) {
      await this.#open(service, port);
      await timeSlice.pause();
    }
  }

  async #open(service: ObjectKey, port: number): Promise<void> {
    const { log, nodeName, onFailure } = this.#options;
    const known = this.#listeners.get(service);
    if (!known) log.verbose(2, 'Opening healthcheck', { service, port });
    const listener = known ?? new HealthCheckListener({ ...this.#options, service, port });
    try {
      await listener.listenOn(this.#addresses);
      this.#listeners.set(service, listener);
    } catch (error) {
      this.#failed = true;
      // A new one has all its addresses or none, as in kube-proxy; one that serves goes on at those that it has.
      if (!known) await listener.close();
      log.error('Failed to start healthcheck', { node: nodeName, service, port, err: error });
      onFailure?.({ service, port, error });
    }
  }
}
