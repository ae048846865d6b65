/**
 * What the kernel should have, and how many ask for it: an endpoint or an address may belong to several service ports,
 * and goes with the last of them. What changed since it was last handed over is noted, so that a sync costs no more than that.
 */
import { FAMILIES, type Family, type Ip } from '../../../model/ip.ts';
import type { DestinationEdit, IpvsEdit, KernelDestination, ServerAttributes } from './client.ts';
import {
  type Destination,
  type IpvsFragment,
  type Member,
  serverKey,
  type VirtualServer,
} from './compile.ts';
import { entryKey, SET_IDS, type SetEntry, type SetId, setName } from './sets.ts';

interface Counted {
  readonly entry: SetEntry;
  readonly count: number;
}

export class DesiredState {
  readonly #members = new Map<SetId, Map<string, Counted>>();
  /** Those of one address and port; the first counts. */
  readonly #servers = new Map<string, readonly VirtualServer[]>();
  /** What was there when it was first touched. */
  readonly #touchedMembers = new Map<SetId, Map<string, SetEntry | undefined>>();
  readonly #touchedServers = new Map<string, VirtualServer | undefined>();

  add({ members, servers }: IpvsFragment): void {
    for (const member of members) this.#count(member, 1);
    for (const server of servers)
      this.#setServers(server, (others) => [...others, server].sort((a, b) => a.rank - b.rank));
  }

  remove({ members, servers }: IpvsFragment): void {
    for (const member of members) this.#count(member, -1);
    for (const server of servers)
      this.#setServers(server, (all) =>
        all.toSpliced(
          all.findIndex(({ rank }) => rank === server.rank),
          1,
        ),
      );
  }

  has(set: SetId, key: string): boolean {
    return this.#members.get(set)?.has(key) ?? false;
  }

  sizeOf(set: SetId): number {
    return this.#members.get(set)?.size ?? 0;
  }

  *entriesOf(set: SetId): Generator<readonly [key: string, entry: SetEntry]> {
    for (const [key, { entry }] of this.#members.get(set) ?? []) yield [key, entry];
  }

  /** Whether the device has to have it. */
  isBound(ip: string): boolean {
    return this.has('KUBE-IPVS-IPS', ip);
  }

  *boundIps(): Generator<Ip> {
    for (const [, entry] of this.entriesOf('KUBE-IPVS-IPS')) if (entry.type === 'hash:ip') yield entry.ip;
  }

  server(key: string): VirtualServer | undefined {
    return this.#servers.get(key)?.[0];
  }

  *servers(): Generator<readonly [key: string, server: VirtualServer]> {
    for (const [key, [first]] of this.#servers) if (first) yield [key, first];
  }

  /** Adds what has changed since the last time. `drained`: endpoints of a virtual server that have weight 0. */
  takeChanges(changes: Changeset, drained: (server: VirtualServer) => readonly Destination[]): void {
    for (const [set, touched] of this.#touchedMembers)
      for (const [key, before] of touched) {
        const after = this.#members.get(set)?.get(key)?.entry;
        changes.entry(set, before, after);
        const entry = after ?? before;
        if (entry?.type === 'hash:ip') changes.address(entry.ip, !!before, !!after);
      }
    for (const [key, before] of this.#touchedServers) {
      const after = this.server(key);
      if (before === after) continue;
      changes.server(before, after);
      if (!after || before?.destinations === after.destinations) continue;
      const served = before?.destinations.map((endpoint) => weighted(endpoint, 1)) ?? [];
      const unserved = before ? drained(before).map((endpoint) => weighted(endpoint, 0)) : [];
      changes.destinations(after, [...served, ...unserved]);
    }
    this.forgetChanges();
  }

  /** The kernel is read instead. */
  forgetChanges(): void {
    this.#touchedMembers.clear();
    this.#touchedServers.clear();
  }

  #count({ set, entry }: Member, by: 1 | -1): void {
    const members = inner(this.#members, set);
    const touched = inner(this.#touchedMembers, set);
    const key = entryKey(entry);
    const known = members.get(key);
    if (!touched.has(key)) touched.set(key, known?.entry);
    const count = (known?.count ?? 0) + by;
    if (count > 0) members.set(key, { entry: known?.entry ?? entry, count });
    else members.delete(key);
  }

  #setServers(
    server: VirtualServer,
    change: (servers: readonly VirtualServer[]) => readonly VirtualServer[],
  ): void {
    const key = serverKey(server);
    const before = this.server(key);
    if (!this.#touchedServers.has(key)) this.#touchedServers.set(key, before);
    const servers = change(this.#servers.get(key) ?? []);
    if (servers.length > 0) this.#servers.set(key, servers);
    else this.#servers.delete(key);
    const after = this.server(key);
    if (before === after) return;
    if (before?.dropEntry) this.#count(before.dropEntry, -1);
    if (after?.dropEntry) this.#count(after.dropEntry, 1);
  }
}

/** No spread: a planned endpoint computes its key. */
function weighted({ ip, port, key }: Destination, weight: number) {
  return { ip, port, key, weight };
}

function inner<K, K2, V>(maps: Map<K, Map<K2, V>>, key: K): Map<K2, V> {
  let map = maps.get(key);
  if (!map) maps.set(key, (map = new Map<K2, V>()));
  return map;
}

type WeightedDestination = Destination & Pick<KernelDestination, 'weight'>;
type EntryEdit = Extract<IpvsEdit, { kind: 'addEntry' | 'deleteEntry' }>;
export type ServerDestination = Pick<DestinationEdit, 'server' | 'destination'>;

/**
 * From what there is to what there should be, in an order in which no packet meets half a service: sets and virtual
 * servers first, then (by the caller) the rules, then the addresses that bring the packets. Deletions are in reverse order;
 * a set's entry last, because by it a restarted process knows that a virtual server is ours.
 */
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
