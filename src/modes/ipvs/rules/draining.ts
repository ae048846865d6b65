/**
 * Endpoints that get nothing new, and go when their connections have ended.
 *
 * This process may die at any time: what is drained has weight 0 in the kernel, where the next one finds it.
 */
import { type Destination, type ServerKey, serverKey } from './fragment.ts';
import type { DestinationEdit, DestinationState } from './kernelDoor.ts';

export interface Draining {
  readonly server: ServerKey;
  readonly destination: Destination;
  readonly since: number;
}

export class DrainingList {
  readonly #byServer = new Map<string, Map<string, Draining>>();
  readonly #limitMs: number;

  /** `limitMs`: after which a connection that is still open does not count; 0: it always does. */
  constructor(limitMs: number) {
    this.#limitMs = limitMs;
  }

  get isEmpty(): boolean {
    return this.#byServer.size === 0;
  }

  get servers(): readonly ServerKey[] {
    return [...this.#byServer.values()].flatMap((list) => {
      const [first] = list.values();
      return first ? [first.server] : [];
    });
  }

  has(server: ServerKey, { key }: Destination): boolean {
    return this.#byServer.get(serverKey(server))?.has(key) ?? false;
  }

  add(server: ServerKey, destination: Destination, now: number): void {
    const key = serverKey(server);
    const list = this.#byServer.get(key) ?? new Map<string, Draining>();
    if (!list.has(destination.key)) list.set(destination.key, { server, destination, since: now });
    this.#byServer.set(key, list);
  }

  /** It is wanted again, or gone. */
  remove(server: ServerKey, { key }: Destination): void {
    const list = this.#byServer.get(serverKey(server));
    list?.delete(key);
    if (list?.size === 0) this.#byServer.delete(serverKey(server));
  }

  /** With a server its endpoints go, whatever their connections. */
  removeServer(server: ServerKey): void {
    this.#byServer.delete(serverKey(server));
  }

  /** Answers how to delete those of a server that have ended; what is no more, or wanted again, it forgets. */
  ended(server: ServerKey, states: readonly DestinationState[], now: number): readonly DestinationEdit[] {
    const edits: DestinationEdit[] = [];
    for (const { destination, since } of this.#byServer.get(serverKey(server))?.values() ?? []) {
      const state = states.find(({ key }) => key === destination.key);
      const isOverdue = this.#limitMs > 0 && now - since >= this.#limitMs;
      const isDrained = state?.weight === 0;
      if (isDrained && state.connections > 0 && !isOverdue) continue;
      if (isDrained) edits.push({ kind: 'deleteDestination', server, destination });
      else this.remove(server, destination);
    }
    return edits;
  }
}
