/** One service's health-check node port in one family: its sockets and its answer. */
import type { Server } from 'node:http';
import type { Log } from '../../log/log.ts';
import type { Family, Ip } from '../../model/ip.ts';
import type { ObjectKey } from '../../model/objects.ts';
import { type Answer, json } from './answer.ts';
import { close, listen } from './listen.ts';
import { pageServer } from './serve.ts';

export interface HealthCheckListenerOptions {
  readonly service: ObjectKey;
  readonly port: number;
  readonly family: Family;
  readonly isHealthy: () => boolean;
  readonly log: Log;
}

export class HealthCheckListener {
  /** Endpoints on this node. */
  count = 0;
  readonly #options: HealthCheckListenerOptions;
  /** By address; all addresses are one. */
  readonly #servers = new Map<string, Server>();
  #closed = false;

  constructor(options: HealthCheckListenerOptions) {
    this.#options = options;
  }

  get port(): number {
    return this.#options.port;
  }

  /** On these addresses and on no others. Throws when one of them cannot be had; the others are served then. */
  async listenOn(addresses: 'all' | readonly Ip[]): Promise<void> {
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
    const { log, family, port } = this.#options;
    const server = pageServer(() => this.#answer(), log);
    await listen(server, { host, port, ...(family === 'IPv6' && { ipv6Only: true }) });
    server.on('error', (error) => log.error('Healthcheck closed', { ...this.#name(), err: error }));
    this.#servers.set(host, server);
  }

  /** Sockets of one family only: the other family has a server of its own at the same port. */
  #hosts(addresses: 'all' | readonly Ip[]): readonly string[] {
    if (addresses !== 'all') return addresses;
    return [this.#options.family === 'IPv4' ? '0.0.0.0' : '::'];
  }

  #name(): { readonly service: ObjectKey } {
    return { service: this.#options.service };
  }

  #answer(): Answer {
    if (this.#closed) {
      this.#options.log.error('Received request for closed healthcheck', this.#name());
      return { status: 200, headers: {}, body: '' };
    }
    const { service, isHealthy } = this.#options;
    return healthCheckAnswer(service, this.count, isHealthy());
  }
}

/** 200 says: send me this service's traffic. */
export function healthCheckAnswer(service: ObjectKey, count: number, proxyHealthy: boolean): Answer {
  const slash = service.indexOf('/');
  const body = {
    service: { namespace: service.slice(0, slash), name: service.slice(slash + 1) },
    localEndpoints: count,
    serviceProxyHealthy: proxyHealthy,
  };
  return json(count > 0 && proxyHealthy ? 200 : 503, JSON.stringify(body, undefined, '\t'), {
    'X-Load-Balancing-Endpoint-Weight': String(count),
  });
}
