/**
 * From what there is to what there should be, in an order in which no packet meets half a service: sets and virtual
 * servers first, then (by the caller) the rules, then the addresses that bring the packets. Deletions are in reverse order;
 * a set's entry last, because by it a restarted process knows that a virtual server is ours.
 */
import { FAMILIES, type Family, type Ip } from '../../../model/ip.ts';
import {
  type DestinationEdit,
  type IpvsEdit,
  type KernelDestination,
  openConnections,
  type ServerAttributes,
} from './client.ts';
import { type Destination, type ServerKey, serverKey, type VirtualServer } from './compile.ts';
import { SET_IDS, type SetEntry, type SetId, setName } from './sets.ts';

type WeightedDestination = Destination & Pick<KernelDestination, 'weight'>;
type EntryEdit = Extract<IpvsEdit, { kind: 'addEntry' | 'deleteEntry' }>;
type ServerDestination = Pick<DestinationEdit, 'server' | 'destination'>;

export class Changeset {
  readonly #family: Family;
  /** Sets and the device, where they are missing. */
  readonly made: IpvsEdit[] = [];
  readonly #added: EntryEdit[] = [];
  readonly #servers: IpvsEdit[] = [];
  readonly #binds: IpvsEdit[] = [];
  readonly #dismissed: IpvsEdit[] = [];
  readonly #unbinds: IpvsEdit[] = [];
  readonly #deletedServers: IpvsEdit[] = [];
  readonly #removed: EntryEdit[] = [];
  /** Endpoints that are to get nothing new, and go when their connections have ended. */
  readonly drained: ServerDestination[] = [];
  /** Drained endpoints that are wanted again. */
  readonly revived: ServerDestination[] = [];

  constructor(family: Family) {
    this.#family = family;
  }

  entry(id: SetId, before: SetEntry | undefined, after: SetEntry | undefined): void {
    const set = setName(id, this.#family);
    if (after && !before) this.#added.push({ kind: 'addEntry', set, entry: after });
    else if (before && !after) this.#removed.push({ kind: 'deleteEntry', set, entry: before });
  }

  /** On the device. */
  address(ip: Ip, isThere: boolean, isWanted: boolean): void {
    if (isWanted && !isThere) this.#binds.push({ kind: 'bind', ip });
    else if (isThere && !isWanted) this.#unbinds.push({ kind: 'unbind', ip });
  }

  /** All but its endpoints. */
  server(before: ServerAttributes | undefined, after: VirtualServer | undefined): void {
    if (before && !after) this.#deletedServers.push({ kind: 'deleteServer', server: before });
    else if (after && !before) this.#servers.push({ kind: 'newServer', server: attributesOf(after) });
    else if (before && after && !hasAttributes(before, after))
      this.#servers.push({ kind: 'setServer', server: attributesOf(after), was: before });
  }

  destinations(
    { protocol, ip, port, destinations }: VirtualServer,
    existing: readonly WeightedDestination[],
  ): void {
    const server = { protocol, ip, port }; // one for all of them: a start has a hundred thousand
    const weights = new Map(existing.map(({ key, weight }) => [key, weight]));
    for (const destination of destinations) {
      const was = weights.get(destination.key);
      weights.delete(destination.key);
      if (was === 1) continue;
      if (was !== undefined) this.revived.push({ server, destination });
      const kind = was === undefined ? 'newDestination' : 'setDestination';
      this.#servers.push({ kind, server, destination, weight: 1, was });
    }
    for (const destination of weights.size === 0 ? [] : existing) {
      if (!weights.has(destination.key)) continue;
      const edit = { server, destination, weight: 0, was: destination.weight };
      // Datagrams have no end that could be waited for.
      if (protocol !== 'TCP') this.#dismissed.push({ kind: 'deleteDestination', ...edit });
      else {
        if (edit.was !== 0) this.#dismissed.push({ kind: 'setDestination', ...edit });
        this.drained.push({ server, destination });
      }
    }
  }

  get edits(): readonly IpvsEdit[] {
    return [...this.made, ...this.beforeRules, ...this.afterRules, ...this.entryDeletes];
  }

  get beforeRules(): readonly IpvsEdit[] {
    return [...this.#added.toSorted((a, b) => orderOf(b) - orderOf(a)), ...this.#servers];
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
    return this.#removed.toSorted((a, b) => orderOf(a) - orderOf(b));
  }

  /** Entries of a set that are deleted last. */
  leaving(name: string): readonly SetEntry[] {
    return this.#removed.filter(({ set }) => set === name).map(({ entry }) => entry);
  }
}

const ORDER = new Map(
  FAMILIES.flatMap((family) => SET_IDS.map((id, index) => [setName(id, family), index] as const)),
);

function orderOf({ set }: EntryEdit): number {
  return ORDER.get(set) ?? 0;
}

function hasAttributes(a: ServerAttributes, b: ServerAttributes): boolean {
  return (
    a.scheduler === b.scheduler &&
    a.flags === b.flags &&
    a.timeout === b.timeout &&
    a.clientPrefix === b.clientPrefix
  );
}

function attributesOf(server: VirtualServer): ServerAttributes {
  const { protocol, ip, port, scheduler, flags, timeout, clientPrefix } = server;
  return { protocol, ip, port, scheduler, flags, timeout, clientPrefix };
}

interface Draining {
  readonly server: ServerKey;
  /** By the endpoint's key; `since` when it drains. */
  readonly endpoints: Map<string, { readonly destination: Destination; readonly since: number }>;
}

/**
 * Endpoints that get nothing new, and go when their connections have ended.
 *
 * This process may die at any time: what is drained has weight 0 in the kernel, where the next one finds it.
 */
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
