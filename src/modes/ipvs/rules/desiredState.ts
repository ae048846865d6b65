/**
 * What the kernel should have, and how many ask for it: an endpoint or an address may belong to several service ports,
 * and goes with the last of them. What changed since it was last handed over is noted, so that a sync costs no more than that.
 */
import type { Ip } from '../../../model/ip.ts';
import type { Changeset } from './changeset.ts';
import {
  type Destination,
  type IpvsFragment,
  type Member,
  serverKey,
  type VirtualServer,
} from './compile.ts';
import { entryKey, type SetEntry, type SetId } from './sets.ts';

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
