/** What a reader keeps of the IPVS mode, as JSON. It may come from anybody, so every field is checked. */
import { type Cidr, type Family, hostPort, type Ip, parseCidr } from '../../model/ip.ts';
import { PROTOCOLS } from '../../model/objects.ts';
import type { DumpedTables } from '../iptables/dump.ts';
import { DumpFields } from '../reading.ts';
import type { KernelDevice, KernelIpset, KernelState, ServerAttributes } from './rules/client.ts';
import { type ServerKey, serverKey } from './rules/compile.ts';
import { entryKey, parseEntry } from './rules/sets.ts';
import type { WalkedDestination, WalkedServer } from './rules/walk.ts';

/** With which sets, virtual servers and rules are compiled. */
export interface IpvsSettings {
  readonly scheduler: string;
  readonly masqueradeBit: number;
  readonly randomFully: boolean;
  readonly excludeCIDRs: readonly Cidr[];
}

export type DumpedServer = ServerAttributes & WalkedServer;

interface DumpedSet {
  readonly name: string;
  readonly type: string;
  /** Unset: it has no limit. */
  readonly capacity?: number;
  readonly entries: readonly string[];
}

export interface IpvsDump {
  readonly kind: 'ipvs';
  readonly version: 1;
  readonly family: Family;
  readonly settings: IpvsSettings;
  readonly nodeIps: readonly Ip[];
  readonly rules: DumpedTables;
  readonly sets: readonly DumpedSet[];
  readonly device: KernelDevice;
  /** Everybody's. */
  readonly servers: readonly DumpedServer[];
}

export function dumpedSets(sets: KernelState['sets']): readonly DumpedSet[] {
  return [...sets].map(([name, { type, capacity, entries }]) => ({
    name,
    type,
    ...(Number.isFinite(capacity) && { capacity }),
    entries: [...entries.keys()],
  }));
}

interface ReadIpvsDump extends Omit<IpvsDump, 'sets' | 'servers'> {
  readonly sets: KernelState['sets'];
  /** By `serverKey`. */
  readonly servers: ReadonlyMap<string, DumpedServer>;
}

export function readIpvsDump(family: Family, dump: unknown): ReadIpvsDump {
  const root = new DumpFields(dump, 'ipvs');
  if (root.text('kind') !== 'ipvs') throw root.unreadable('it is not of the IPVS mode');
  if (root.integer('version') !== 1) throw root.unreadable('only version 1 is known');
  if (root.text('family') !== family) throw root.unreadable('it is of the other family');
  const servers = root.maps('servers').map(serverIn);
  const rules = root.map('rules');
  return {
    kind: 'ipvs',
    version: 1,
    family,
    settings: settingsIn(root.map('settings')),
    nodeIps: root.ips('nodeIps'),
    rules: { bridges: rules.texts('bridges'), notes: rules.texts('notes'), tables: rules.textMap('tables') },
    sets: new Map(root.maps('sets').map((set) => [set.text('name'), setIn(set)])),
    device: deviceIn(root.map('device')),
    servers: new Map(servers.map((server) => [serverKey(server), server])),
  };
}

const MOST_BITS = 31;

function settingsIn(at: DumpFields): IpvsSettings {
  return {
    scheduler: at.text('scheduler'),
    masqueradeBit: at.integer('masqueradeBit', MOST_BITS),
    randomFully: at.flag('randomFully'),
    excludeCIDRs: at
      .texts('excludeCIDRs')
      .map((text) => parseCidr(text) ?? at.fail(`${JSON.stringify(text)} is no range`)),
  };
}

function setIn(at: DumpFields): KernelIpset {
  const type = at.text('type');
  const entries = at.texts('entries').flatMap((text) => {
    const entry = parseEntry(type, text);
    return entry ? [[entryKey(entry), entry] as const] : at.fail(`${JSON.stringify(text)} is no entry`);
  });
  const capacity = at.optional('capacity', () => at.integer('capacity')) ?? Number.POSITIVE_INFINITY;
  return { type, capacity, entries: new Map(entries) };
}

function deviceIn(at: DumpFields): KernelDevice {
  const state = at.choice('state', ['absent', 'foreign', 'present']);
  if (state === 'absent') return { state };
  if (state === 'foreign') return { state, type: at.text('type') };
  return { state, addresses: at.ips('addresses'), broken: at.flag('broken') };
}

function serverIn(at: DumpFields): DumpedServer {
  return {
    ...keyIn(at),
    scheduler: at.text('scheduler'),
    flags: at.integer('flags'),
    timeout: at.integer('timeout'),
    clientPrefix: at.integer('clientPrefix', 128),
    ...countIn(at, 'packets'),
    destinations: at.maps('destinations').map(destinationIn),
  };
}

function keyIn(at: DumpFields): ServerKey {
  return { protocol: at.choice('protocol', PROTOCOLS), ip: at.ip('ip'), port: at.integer('port', 65_535) };
}

function destinationIn(at: DumpFields): WalkedDestination {
  const [ip, port] = [at.ip('ip'), at.integer('port', 65_535)];
  return {
    ip,
    port,
    key: hostPort(ip, port),
    weight: at.integer('weight'),
    ...countIn(at, 'activeConnections'),
    ...countIn(at, 'inactiveConnections'),
    ...countIn(at, 'packets'),
  };
}

function countIn<Name extends string>(at: DumpFields, name: Name): { readonly [Key in Name]?: number } {
  const value = at.optional(name, () => at.integer(name, Number.MAX_SAFE_INTEGER));
  return (value === undefined ? {} : { [name]: value }) as { readonly [Key in Name]?: number };
}
