/**
 * From what there is to what there should be, in an order in which no packet meets half a service: sets and virtual
 * servers first, then (by the caller) the rules, then the addresses that bring the packets. Deletions are in reverse order;
 * a set's entry last, because by it a restarted process knows that a virtual server is ours.
 */
import type { Family, Ip } from '../../../model/ip.ts';
import { type Destination, type ServerKey, serverKey, type VirtualServer } from './compile.ts';
import type { DestinationEdit, DestinationState, IpvsEdit, ServerAttributes } from './client.ts';
import type { DesiredChanges } from './desiredState.ts';
import { type SetEntry, type SetId, setName } from './sets.ts';

interface Drained {
  readonly server: ServerKey;
  readonly destination: Destination;
}

export class Changeset {
  readonly #family: Family;
  readonly #draining: Pick<DrainingList, 'has'>;
  readonly prepare: IpvsEdit[] = [];
  readonly #finish: IpvsEdit[] = [];
  binds: Ip[] = [];
  readonly unbinds: Ip[] = [];
  readonly deletedServers: ServerKey[] = [];
  /** Entries to delete when everything else is done. */
  readonly leaving = new Map<SetId, SetEntry[]>();
  readonly drained: Drained[] = [];
  readonly revived: Drained[] = [];

  constructor(family: Family, draining: Pick<DrainingList, 'has'>) {
    this.#family = family;
    this.#draining = draining;
  }

  get edits(): readonly IpvsEdit[] {
    return [...this.prepare, ...this.last, ...this.entryDeletes];
  }

  /** Everything that comes after the rules, but for entries of sets. */
  get last(): readonly IpvsEdit[] {
    return [
      ...this.binds.map((ip): IpvsEdit => ({ kind: 'bind', ip })),
      ...this.#finish,
      ...this.unbinds.map((ip): IpvsEdit => ({ kind: 'unbind', ip })),
      ...this.deletedServers.map((server): IpvsEdit => ({ kind: 'deleteServer', server })),
    ];
  }

  get entryDeletes(): readonly IpvsEdit[] {
    return [...this.leaving].flatMap(([id, entries]) => {
      const set = setName(id, this.#family);
      return entries.map((entry): IpvsEdit => ({ kind: 'deleteEntry', set, entry }));
    });
  }

  /** An ordinary sync. */
  addChanges({ added, removed, servers }: DesiredChanges): void {
    for (const { set, entry } of added) {
      this.addEntry(set, entry);
      if (entry.type === 'hash:ip') this.binds.push(entry.ip);
    }
    for (const { previous, current } of servers) {
      if (current && previous) this.#changeServer(previous, current);
      else if (current) this.newServer(current);
      else if (previous) this.deletedServers.push(previous);
    }
    for (const { set, entry } of removed) {
      this.deleteEntry(set, entry);
      if (entry.type === 'hash:ip') this.unbinds.push(entry.ip);
    }
  }

  addEntry(set: SetId, entry: SetEntry): void {
    this.prepare.push({ kind: 'addEntry', set: setName(set, this.#family), entry });
  }

  deleteEntry(set: SetId, entry: SetEntry): void {
    const leaving = this.leaving.get(set);
    if (leaving) leaving.push(entry);
    else this.leaving.set(set, [entry]);
  }

  /** For when addresses must come before the rules. */
  takeBinds(): readonly IpvsEdit[] {
    const ips = this.binds;
    this.binds = [];
    return ips.map((ip): IpvsEdit => ({ kind: 'bind', ip }));
  }

  newServer(server: VirtualServer): void {
    this.prepare.push({ kind: 'newServer', server: attributesOf(server) });
    const key = keyOf(server); // one for all of them: a start has a hundred thousand
    for (const destination of server.destinations) this.#serve(key, destination, false);
  }

  setServer(server: VirtualServer): void {
    this.prepare.push({ kind: 'setServer', server: attributesOf(server) });
  }

  /** From what the kernel has, which may be what a former process left. */
  matchDestinations(server: VirtualServer, existing: readonly DestinationState[]): void {
    const there = new Map(existing.map((state) => [state.key, state]));
    for (const destination of server.destinations) {
      const state = there.get(destination.key);
      there.delete(destination.key);
      if (!state) this.#serve(keyOf(server), destination, false);
      else if (state.weight !== 1) this.#serve(keyOf(server), destination, true);
    }
    for (const state of there.values()) this.#dismiss(server, state, state.weight === 0);
  }

  #changeServer(previous: VirtualServer, current: VirtualServer): void {
    if (!sameAttributes(previous, current)) this.setServer(current);
    if (previous.destinations === current.destinations) return;
    const before = new Set(previous.destinations.map(({ key }) => key));
    for (const destination of current.destinations) {
      if (!before.delete(destination.key))
        this.#serve(keyOf(current), destination, this.#draining.has(current, destination));
    }
    if (before.size === 0) return;
    for (const destination of previous.destinations)
      if (before.has(destination.key)) this.#dismiss(current, destination, false);
  }

  #serve(server: ServerKey, destination: Destination, isThere: boolean): void {
    const kind = isThere ? 'setDestination' : 'newDestination';
    if (isThere) this.revived.push({ server, destination });
    this.prepare.push({ kind, server, destination, weight: 1 });
  }

  /** Datagrams have no end that could be waited for. */
  #dismiss(server: ServerKey, destination: Destination, isDrained: boolean): void {
    if (server.protocol !== 'TCP') {
      this.#finish.push({ kind: 'deleteDestination', server: keyOf(server), destination });
      return;
    }
    if (!isDrained)
      this.#finish.push({ kind: 'setDestination', server: keyOf(server), destination, weight: 0 });
    this.drained.push({ server: keyOf(server), destination });
  }
}

export function sameAttributes(a: ServerAttributes, b: ServerAttributes): boolean {
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
interface Draining extends Drained {
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

  /** Returns the edits that delete those of a server that have ended; what is gone, or wanted again, is dropped from the list. */
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
