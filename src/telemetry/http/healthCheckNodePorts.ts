/**
 * Health-check node ports: where a load balancer asks whether this node has endpoints of a service.
 *
 * One server for each service that has such a port, in each family. What cannot be opened now is tried again at the
 * next sync.
 */
import type { Server } from 'node:http';
import type { Log } from '../../log/log.ts';
import { cidrContains, type Family, type Ip } from '../../model/ip.ts';
import type { ObjectKey } from '../../model/objects.ts';
import type { NodePortAddresses } from '../../plan/types.ts';
import { systemClock } from '../../time/systemClock.ts';
import { TimeSlice } from '../../time/timeSlice.ts';
import { type Answer, close, json, listen, pageServer } from './server.ts';

type Addresses = 'all' | readonly Ip[];

/** Health-check node ports listen where node ports do, loopback included if it is in the ranges. */
export function healthCheckAddresses({ ranges }: NodePortAddresses, ownIps: readonly Ip[]): Addresses {
  if (ranges === 'all') return 'all';
  return ownIps.filter((ip) => ranges.some((range) => cidrContains(range, ip)));
}

export interface HealthCheckFailure {
  readonly service: ObjectKey;
  readonly port: number;
  readonly error: unknown;
}

export interface ServiceHealthOptions {
  readonly family: Family;
  readonly nodeName: string;
  readonly addresses: Addresses;
  /** The proxy's own health. */
  readonly isHealthy: () => boolean;
  readonly log: Log;
  readonly onFailure?: (failure: HealthCheckFailure) => void;
}

export class ServiceHealthServers {
  readonly #options: ServiceHealthOptions;
  readonly #listeners = new Map<ObjectKey, HealthCheckListener>();
  #addresses: Addresses;
  #failed = false;
  #queue: Promise<void> = Promise.resolve();

  constructor(options: ServiceHealthOptions) {
    this.#options = options;
    this.#addresses = options.addresses;
  }

  /** The node has other addresses now, or another configuration; the next sync opens and closes sockets accordingly. */
  setAddresses(addresses: Addresses): void {
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

  /** Opening takes time: the next call waits for it, so that nothing is opened twice. */
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
    const listener = known ?? new HealthCheckListener(this.#options, service, port);
    try {
      await listener.listenOn(this.#addresses);
      this.#listeners.set(service, listener);
    } catch (error) {
      this.#failed = true;
      // A new one has all its addresses or none, as in kube-proxy; one that serves keeps those that it has.
      if (!known) await listener.close();
      log.error('Failed to start healthcheck', { node: nodeName, service, port, err: error });
      onFailure?.({ service, port, error });
    }
  }
}

/** One service's health-check node port: its sockets and its answer. */
class HealthCheckListener {
  /** Endpoints on this node. */
  count = 0;
  readonly port: number;
  readonly #service: ObjectKey;
  readonly #options: Pick<ServiceHealthOptions, 'family' | 'isHealthy' | 'log'>;
  /** By address; all addresses are one. */
  readonly #servers = new Map<string, Server>();
  #closed = false;

  constructor(options: ServiceHealthOptions, service: ObjectKey, port: number) {
    this.#options = options;
    this.#service = service;
    this.port = port;
  }

  /** On these addresses and on no others. Throws when one of them cannot be bound; the others are served then. */
  async listenOn(addresses: Addresses): Promise<void> {
    const wanted = this.#hosts(addresses);
    // Closed first: the socket for all addresses and one for a single address exclude each other.
    for (const [host, server] of this.#servers) {
      if (wanted.includes(host)) continue;
      this.#servers.delete(host);
      await close(server);
    }
    let failure: unknown;
    for (const host of wanted) {
      if (this.#servers.has(host)) continue;
      try {
        await this.#listen(host);
      } catch (error) {
        failure ??= error;
      }
    }
    if (failure !== undefined) throw failure;
  }

  async close(): Promise<void> {
    this.#closed = true;
    const servers = [...this.#servers.values()];
    this.#servers.clear();
    await Promise.all(servers.map(close));
  }

  async #listen(host: string): Promise<void> {
    const { log, family } = this.#options;
    const server = pageServer(() => this.#answer(), log);
    await listen(server, { host, port: this.port, ...(family === 'IPv6' && { ipv6Only: true }) });
    server.on('error', (error) => log.error('Healthcheck closed', { service: this.#service, err: error }));
    this.#servers.set(host, server);
  }

  /** Sockets of one family only: the other family has a server of its own at the same port. */
  #hosts(addresses: Addresses): readonly string[] {
    if (addresses !== 'all') return addresses;
    return [this.#options.family === 'IPv4' ? '0.0.0.0' : '::'];
  }

  /** 200 says: send me this service's traffic. */
  #answer(): Answer {
    const { log, isHealthy } = this.#options;
    const service = this.#service;
    if (this.#closed) {
      log.error('Received request for closed healthcheck', { service });
      return { status: 200, headers: {}, body: '' };
    }
    const slash = service.indexOf('/');
    const serviceProxyHealthy = isHealthy();
    const body = {
      service: { namespace: service.slice(0, slash), name: service.slice(slash + 1) },
      localEndpoints: this.count,
      serviceProxyHealthy,
    };
    return json(this.count > 0 && serviceProxyHealthy ? 200 : 503, JSON.stringify(body, undefined, '\t'), {
      'X-Load-Balancing-Endpoint-Weight': String(this.count),
    });
  }
}
