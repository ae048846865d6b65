/**
 * From what there is to what there should be, in an order in which no packet meets half a service: sets and virtual
 * servers first, then (by the caller) the rules, then the addresses that bring the packets. What goes, goes in reverse;
 * a set's entry last, because by it a restarted process knows that a virtual server is ours.
 */
import type { Ip } from '../../../model/ip.ts';
import type { DrainingList } from './draining.ts';
import type { Destination, ServerKey, VirtualServer } from './fragment.ts';
import type { DestinationState, Edit, ServerAttributes } from './kernelDoor.ts';
import type { LedgerChanges } from './ledger.ts';
import { type SetEntry, type SetId, setName } from './sets.ts';
import type { Family } from '../../../model/ip.ts';

export interface Drained {
  readonly server: ServerKey;
  readonly destination: Destination;
}

export class Work {
  readonly #family: Family;
  readonly #draining: Pick<DrainingList, 'has'>;
  readonly prepare: Edit[] = [];
  readonly finish: Edit[] = [];
  #binds: Edit[] = [];
  readonly #unbinds: Edit[] = [];
  readonly #serverDeletes: Edit[] = [];
  /** For when everything else is done. */
  readonly entryDeletes: Edit[] = [];
  readonly leaving = new Map<SetId, SetEntry[]>();
  readonly drained: Drained[] = [];
  readonly deletedServers: ServerKey[] = [];
  readonly revived: Drained[] = [];

  constructor(family: Family, draining: Pick<DrainingList, 'has'>) {
    this.#family = family;
    this.#draining = draining;
  }

  get isEmpty(): boolean {
    return this.prepare.length === 0 && this.last.length === 0 && this.entryDeletes.length === 0;
  }

  get edits(): readonly Edit[] {
    return [...this.prepare, ...this.last, ...this.entryDeletes];
  }

  /** Everything that comes after the rules, but for entries of sets. */
  get last(): readonly Edit[] {
    return [...this.#binds, ...this.finish, ...this.#unbinds, ...this.#serverDeletes];
  }

  /** An ordinary sync. */
  addChanges({ added, removed, bound, unbound, servers }: LedgerChanges): void {
    for (const { set, entry } of added) this.addEntry(set, entry);
    for (const { previous, current } of servers) {
      if (!current) {
        if (previous) this.deleteServer(previous);
      } else if (previous) this.#changeServer(previous, current);
      else this.newServer(current);
    }
    for (const ip of bound) this.bind(ip);
    for (const ip of unbound) this.unbind(ip);
    for (const { set, entry } of removed) this.deleteEntry(set, entry);
  }

  addEntry(set: SetId, entry: SetEntry): void {
    this.prepare.push({ kind: 'addEntry', set: setName(set, this.#family), entry });
  }

  deleteEntry(set: SetId, entry: SetEntry): void {
    this.entryDeletes.push({ kind: 'deleteEntry', set: setName(set, this.#family), entry });
    const leaving = this.leaving.get(set);
    if (leaving) leaving.push(entry);
    else this.leaving.set(set, [entry]);
  }

  bind(ip: Ip): void {
    this.#binds.push({ kind: 'bind', ip });
  }

  /** For when addresses must come before the rules. */
  takeBinds(): readonly Edit[] {
    const binds = this.#binds;
    this.#binds = [];
    return binds;
  }

  unbind(ip: Ip): void {
    this.#unbinds.push({ kind: 'unbind', ip });
  }

  newServer(server: VirtualServer): void {
    this.prepare.push({ kind: 'newServer', server: attributesOf(server) });
    const key = keyOf(server); // one for all of them: a start has a hundred thousand
    for (const destination of server.destinations) this.#serve(key, destination, false);
  }

  deleteServer(server: ServerKey): void {
    this.#serverDeletes.push({ kind: 'deleteServer', server });
    this.deletedServers.push(server);
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
      this.finish.push({ kind: 'deleteDestination', server: keyOf(server), destination });
      return;
    }
    if (!isDrained)
      this.finish.push({ kind: 'setDestination', server: keyOf(server), destination, weight: 0 });
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
