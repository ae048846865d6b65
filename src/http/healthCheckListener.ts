/** One service's health-check node port in one family: its sockets and its answer. */
import type { Server } from 'node:http';
import type { Log } from '../log.ts';
import type { Family, Ip } from '../model/ip.ts';
import type { ObjectKey } from '../model/objects.ts';
import { type Answer, json } from './answer.ts';
import { close, listen, type ListenOptions } from './listen.ts';
import { pageServer } from './serve.ts';

export interface HealthCheckListenerOptions {
  readonly service: ObjectKey;
  readonly port: number;
  readonly family: Family;
  readonly addresses: 'all' | readonly Ip[];
  readonly isHealthy: () => boolean;
  readonly log: Log;
}

export class HealthCheckListener {
  /** Endpoints on this node. */
  count = 0;
  readonly #options: HealthCheckListenerOptions;
  readonly #servers: Server[] = [];
  #closed = false;

  constructor(options: HealthCheckListenerOptions) {
    this.#options = options;
  }

  get port(): number {
    return this.#options.port;
  }

  /** On all its addresses, or on none. */
  async open(): Promise<void> {
    const { log } = this.#options;
    try {
      for (const address of this.#listenOptions()) {
        const server = pageServer(() => this.#answer(), log);
        await listen(server, address);
        server.on('error', (error) => log.error('Healthcheck closed', { ...this.#name(), err: error }));
        this.#servers.push(server);
      }
    } catch (error) {
      await this.close();
      throw error;
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all(this.#servers.splice(0).map(close));
  }

  /** Sockets of one family only: the other family has a server of its own at the same port. */
  #listenOptions(): readonly ListenOptions[] {
    const { family, addresses, port } = this.#options;
    const hosts = addresses === 'all' ? [family === 'IPv4' ? '0.0.0.0' : '::'] : addresses;
    return hosts.map((host) => ({ host, port, ...(family === 'IPv6' && { ipv6Only: true }) }));
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
