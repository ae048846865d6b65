/**
 * From what there is to what there should be, in an order in which no packet meets half a service: sets and virtual
 * servers first, then (by the caller) the rules, then the addresses that bring the packets. Deletions are in reverse order;
 * a set's entry last, because by it a restarted process knows that a virtual server is ours.
 */
import type { Family, Ip } from '../../../model/ip.ts';
import type { DestinationEdit, DestinationState, IpvsEdit, ServerAttributes } from './client.ts';
import { type Destination, type ServerKey, serverKey, type VirtualServer } from './compile.ts';
import { SET_IDS, type SetEntry, type SetId, setName } from './sets.ts';

/** A virtual server as the kernel has it, or as it was last written. */
export interface ExistingServer {
  readonly attributes: ServerAttributes;
  readonly destinations: readonly (Destination & Pick<DestinationState, 'weight'>)[];
}

export interface ServerDestination {
  readonly server: ServerKey;
  readonly destination: Destination;
}

export class Changeset {
  readonly #family: Family;
  /** Sets and the device, where they are missing. */
  readonly made: IpvsEdit[] = [];
  readonly #added = new Map<SetId, SetEntry[]>();
  readonly #servers: IpvsEdit[] = [];
  #binds: IpvsEdit[] = [];
  readonly #dismissed: IpvsEdit[] = [];
  readonly #unbinds: IpvsEdit[] = [];
  readonly #deletedServers: IpvsEdit[] = [];
  readonly #removed = new Map<SetId, SetEntry[]>();
  /** Endpoints that are to get nothing new, and go when their connections have ended. */
  readonly drained: ServerDestination[] = [];
  /** Drained endpoints that are wanted again. */
  readonly revived: ServerDestination[] = [];

  constructor(family: Family) {
    this.#family = family;
  }

  entry(set: SetId, before: SetEntry | undefined, after: SetEntry | undefined): void {
    if (after && !before) push(this.#added, set, after);
    else if (before && !after) push(this.#removed, set, before);
  }

  /** On the device. */
  address(ip: Ip, isThere: boolean, isWanted: boolean): void {
    if (isWanted && !isThere) this.#binds.push({ kind: 'bind', ip });
    else if (isThere && !isWanted) this.#unbinds.push({ kind: 'unbind', ip });
  }

  server(before: ExistingServer | undefined, after: VirtualServer | undefined): void {
    if (before && after) {
      this.attributes(before.attributes, after);
      this.destinations(after, before.destinations);
    } else if (before) this.deleteServer(before.attributes);
    else if (after) {
      this.#servers.push({ kind: 'newServer', server: attributesOf(after) });
      this.destinations(after, []);
    }
  }

  deleteServer(server: ServerAttributes): void {
    this.#deletedServers.push({ kind: 'deleteServer', server });
  }

  attributes(was: ServerAttributes, server: VirtualServer): void {
    if (!hasAttributes(was, server))
      this.#servers.push({ kind: 'setServer', server: attributesOf(server), was });
  }

  destinations(virtualServer: VirtualServer, existing: ExistingServer['destinations']): void {
    const server = keyOf(virtualServer); // one for all of them: a start has a hundred thousand
    const weights = new Map(existing.map(({ key, weight }) => [key, weight]));
    for (const destination of virtualServer.destinations) {
      const was = weights.get(destination.key);
      weights.delete(destination.key);
      if (was === 1) continue;
      if (was !== undefined) this.revived.push({ server, destination });
      const kind = was === undefined ? 'newDestination' : 'setDestination';
      this.#servers.push({ kind, server, destination, weight: 1, was });
    }
    if (weights.size === 0) return;
    for (const destination of existing)
      if (weights.has(destination.key)) this.#dismiss(server, destination, destination.weight);
  }

  /** Datagrams have no end that could be waited for. */
  #dismiss(server: ServerKey, destination: Destination, was: number): void {
    if (server.protocol !== 'TCP') {
      this.#dismissed.push({ kind: 'deleteDestination', server, destination, was });
      return;
    }
    if (was !== 0) this.#dismissed.push({ kind: 'setDestination', server, destination, weight: 0, was });
    this.drained.push({ server, destination });
  }

  get edits(): readonly IpvsEdit[] {
    return [...this.made, ...this.beforeRules, ...this.afterRules, ...this.entryDeletes];
  }

  get beforeRules(): readonly IpvsEdit[] {
    const sets = SET_IDS.toReversed();
    return [...sets.flatMap((id) => this.#entryEdits('addEntry', id, this.#added)), ...this.#servers];
  }

  /** For when addresses must come before the rules. */
  takeBinds(): readonly IpvsEdit[] {
    return this.#binds.splice(0);
  }

  /** All but the entries of sets. */
  get afterRules(): readonly IpvsEdit[] {
    return [...this.#binds, ...this.#dismissed, ...this.#unbinds, ...this.#deletedServers];
  }

  get entryDeletes(): readonly IpvsEdit[] {
    return SET_IDS.flatMap((id) => this.#entryEdits('deleteEntry', id, this.#removed));
  }

  /** Entries that are deleted last. */
  leaving(set: SetId): readonly SetEntry[] {
    return this.#removed.get(set) ?? [];
  }

  #entryEdits(
    kind: 'addEntry' | 'deleteEntry',
    id: SetId,
    entries: ReadonlyMap<SetId, readonly SetEntry[]>,
  ): readonly IpvsEdit[] {
    const set = setName(id, this.#family);
    return (entries.get(id) ?? []).map((entry): IpvsEdit => ({ kind, set, entry }));
  }
}

function push(lists: Map<SetId, SetEntry[]>, set: SetId, entry: SetEntry): void {
  const list = lists.get(set);
  if (list) list.push(entry);
  else lists.set(set, [entry]);
}

function hasAttributes(a: ServerAttributes, b: ServerAttributes): boolean {
  return (
    a.scheduler === b.scheduler &&
    a.flags === b.flags &&
    a.timeout === b.timeout &&
    a.clientPrefix === b.clientPrefix
  );
}

function keyOf({ protocol, ip, port }: ServerKey): ServerKey {
  return { protocol, ip, port };
}

function attributesOf(server: VirtualServer): ServerAttributes {
  const { protocol, ip, port, scheduler, flags, timeout, clientPrefix } = server;
  return { protocol, ip, port, scheduler, flags, timeout, clientPrefix };
}

/**
 * Endpoints that get nothing new, and go when their connections have ended.
 *
 * This process may die at any time: what is drained has weight 0 in the kernel, where the next one finds it.
 */
export class GracefulTermination {
  readonly #byServer = new Map<string, Map<string, ServerDestination & { readonly since: number }>>();
  readonly #limitMs: number;

  /** `limitMs`: after which a connection that is still open does not count; 0: it always does. */
  constructor(limitMs: number) {
    this.#limitMs = limitMs;
  }

  get isEmpty(): boolean {
    return this.#byServer.size === 0;
  }

  get servers(): readonly ServerKey[] {
    return [...this.#byServer.values()]
      .flatMap((list) => [...list.values()].slice(0, 1))
      .map((one) => one.server);
  }

  /** Those of a virtual server. */
  of(server: ServerKey): readonly Destination[] {
    return Array.from(this.#byServer.get(serverKey(server))?.values() ?? [], (one) => one.destination);
  }

  add({ server, destination }: ServerDestination, now: number): void {
    const key = serverKey(server);
    const list = this.#byServer.get(key) ?? new Map();
    if (!list.has(destination.key)) list.set(destination.key, { server, destination, since: now });
    this.#byServer.set(key, list);
  }

  /** It is wanted again, or gone. */
  remove({ server, destination }: ServerDestination): void {
    const list = this.#byServer.get(serverKey(server));
    list?.delete(destination.key);
    if (list?.size === 0) this.#byServer.delete(serverKey(server));
  }

  /** With a virtual server its endpoints go, whatever their connections. */
  removeServer(server: ServerKey): void {
    this.#byServer.delete(serverKey(server));
  }

  /** Returns the edits that delete those of a server that have ended. Forgets what is gone, or has weight again. */
  ended(server: ServerKey, states: readonly DestinationState[], now: number): readonly DestinationEdit[] {
    const edits: DestinationEdit[] = [];
    for (const one of this.#byServer.get(serverKey(server))?.values() ?? []) {
      const { destination, since } = one;
      const state = states.find(({ key }) => key === destination.key);
      if (state?.weight !== 0) {
        this.remove(one);
        continue;
      }
      const isOverdue = this.#limitMs > 0 && now - since >= this.#limitMs;
      if (state.connections === 0 || isOverdue)
        edits.push({ kind: 'deleteDestination', server, destination, was: 0 });
    }
    return edits;
  }
}
