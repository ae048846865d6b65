/**
 * What the kernel should have, and how many ask for it: an endpoint or an address may belong to several service ports,
 * and goes with the last of them.
 *
 * Between two `takeChanges` it records what it was asked to change, so that a sync costs what changed and no more.
 */
import type { Ip } from '../../../model/ip.ts';
import { type IpvsFragment, type Member, serverKey, type VirtualServer } from './compile.ts';
import { entryKey, type SetEntry, type SetId } from './sets.ts';

interface Counted<T> {
  readonly value: T;
  readonly count: number;
}

interface ServerChange {
  readonly previous: VirtualServer | undefined;
  readonly current: VirtualServer | undefined;
}

export interface DesiredChanges {
  readonly added: readonly Member[];
  readonly removed: readonly Member[];
  readonly servers: readonly ServerChange[];
}

export class DesiredState {
  readonly #members = new Map<SetId, Map<string, Counted<SetEntry>>>();
  readonly #servers = new Map<string, readonly VirtualServer[]>();
  /** What was there when it was first touched. */
  readonly #touchedMembers = new Map<SetId, Map<string, SetEntry | undefined>>();
  readonly #touchedServers = new Map<string, VirtualServer | undefined>();

  add({ members, servers }: IpvsFragment): void {
    for (const member of members) this.#countMember(member, 1);
    for (const server of servers) this.#addServer(server);
  }

  remove({ members, servers }: IpvsFragment): void {
    for (const member of members) this.#countMember(member, -1);
    for (const server of servers) this.#removeServer(server);
  }

  has(set: SetId, key: string): boolean {
    return this.#members.get(set)?.has(key) ?? false;
  }

  sizeOf(set: SetId): number {
    return this.#members.get(set)?.size ?? 0;
  }

  *entriesOf(set: SetId): Generator<readonly [key: string, entry: SetEntry]> {
    for (const [key, { value }] of this.#members.get(set) ?? []) yield [key, value];
  }

  /** Whether the device has to have it. */
  isBound(ip: string): boolean {
    return this.has('ipvsIPs', ip);
  }

  *boundIps(): Generator<Ip> {
    for (const [, entry] of this.entriesOf('ipvsIPs')) if (entry.type === 'hash:ip') yield entry.ip;
  }

  server(key: string): VirtualServer | undefined {
    return this.#servers.get(key)?.[0];
  }

  *servers(): Generator<readonly [key: string, server: VirtualServer]> {
    for (const [key, [first]] of this.#servers) if (first) yield [key, first];
  }

  /** What has changed since the last time this was asked. */
  takeChanges(): DesiredChanges {
    const added: Member[] = [];
    const removed: Member[] = [];
    for (const [set, touched] of this.#touchedMembers) {
      for (const [key, before] of touched) {
        const now = this.#members.get(set)?.get(key)?.value;
        if (now && !before) added.push({ set, entry: now });
        if (before && !now) removed.push({ set, entry: before });
      }
    }
    const servers: ServerChange[] = [];
    for (const [key, previous] of this.#touchedServers) {
      const current = this.server(key);
      if (current !== previous) servers.push({ previous, current });
    }
    this.clearChanges();
    return { added, removed, servers };
  }

  clearChanges(): void {
    this.#touchedMembers.clear();
    this.#touchedServers.clear();
  }

  #countMember({ set, entry }: Member, by: 1 | -1): void {
    const members = inner(this.#members, set);
    const touched = inner(this.#touchedMembers, set);
    const key = entryKey(entry);
    const known = members.get(key);
    if (!touched.has(key)) touched.set(key, known?.value);
    const count = (known?.count ?? 0) + by;
    if (count > 0) members.set(key, { value: known?.value ?? entry, count });
    else members.delete(key);
  }

  #addServer(server: VirtualServer): void {
    const key = this.#touchServer(server);
    const others = this.#servers.get(key) ?? [];
    this.#setServers(key, others.length === 0 ? [server] : [...others, server].sort(byRank));
  }

  #removeServer(server: VirtualServer): void {
    const key = this.#touchServer(server);
    const known = this.#servers.get(key) ?? [];
    const index = known.findIndex(({ rank }) => rank === server.rank);
    this.#setServers(
      key,
      known.filter((_, at) => at !== index),
    );
  }

  #setServers(key: string, servers: readonly VirtualServer[]): void {
    const before = this.server(key);
    if (servers.length > 0) this.#servers.set(key, servers);
    else this.#servers.delete(key);
    const after = this.server(key);
    if (before === after) return;
    if (before?.silence) this.#countMember(before.silence, -1);
    if (after?.silence) this.#countMember(after.silence, 1);
  }

  #touchServer(server: VirtualServer): string {
    const key = serverKey(server);
    if (!this.#touchedServers.has(key)) this.#touchedServers.set(key, this.server(key));
    return key;
  }
}

function byRank(a: VirtualServer, b: VirtualServer): number {
  return (a.rank === 'address' ? 0 : 1) - (b.rank === 'address' ? 0 : 1);
}

function inner<K, K2, V>(maps: Map<K, Map<K2, V>>, key: K): Map<K2, V> {
  let map = maps.get(key);
  if (!map) maps.set(key, (map = new Map<K2, V>()));
  return map;
}
