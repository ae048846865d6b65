/**
 * Endpoints that get nothing new, and go when their connections have ended.
 *
 * This process may die at any time: what is drained has weight 0 in the kernel, where the next one finds it.
 */
import { type DestinationEdit, type KernelDestination, openConnections } from './client.ts';
import { type Destination, type ServerKey, serverKey } from './compile.ts';
import type { ServerDestination } from './desiredState.ts';

interface Draining {
  readonly server: ServerKey;
  /** By the endpoint's key; `since` when it drains. */
  readonly endpoints: Map<string, { readonly destination: Destination; readonly since: number }>;
}

export class GracefulTermination {
  readonly #byServer = new Map<string, Draining>();
  readonly #limitMs: number;

  /** `limitMs`: after which a connection that is still open does not count; 0: it always does. */
  constructor(limitMs: number) {
    this.#limitMs = limitMs;
  }

  get isEmpty(): boolean {
    return this.#byServer.size === 0;
  }

  get servers(): readonly ServerKey[] {
    return Array.from(this.#byServer.values(), ({ server }) => server);
  }

  of(server: ServerKey): readonly Destination[] {
    const { endpoints } = this.#byServer.get(serverKey(server)) ?? {};
    return Array.from(endpoints?.values() ?? [], ({ destination }) => destination);
  }

  add({ server, destination }: ServerDestination, since: number): void {
    const key = serverKey(server);
    const draining = this.#byServer.get(key) ?? { server, endpoints: new Map() };
    this.#byServer.set(key, draining);
    if (!draining.endpoints.has(destination.key))
      draining.endpoints.set(destination.key, { destination, since });
  }

  /** It is wanted again, or gone. */
  remove({ server, destination }: ServerDestination): void {
    const draining = this.#byServer.get(serverKey(server));
    draining?.endpoints.delete(destination.key);
    if (draining?.endpoints.size === 0) this.removeServer(server);
  }

  /** With a virtual server its endpoints go, whatever their connections. */
  removeServer(server: ServerKey): void {
    this.#byServer.delete(serverKey(server));
  }

  /** Returns the edits that delete those of a server that have ended. Forgets what is gone, or has weight again. */
  ended(server: ServerKey, states: readonly KernelDestination[], now: number): readonly DestinationEdit[] {
    const edits: DestinationEdit[] = [];
    for (const { destination, since } of this.#byServer.get(serverKey(server))?.endpoints.values() ?? []) {
      const state = states.find(({ key }) => key === destination.key);
      const isOverdue = this.#limitMs > 0 && now - since >= this.#limitMs;
      if (state?.weight !== 0) this.remove({ server, destination });
      else if (isOverdue || openConnections([state]) === 0)
        edits.push({ kind: 'deleteDestination', server, destination, weight: 0, was: 0 });
    }
    return edits;
  }
}
