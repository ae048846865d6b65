/** What a reader keeps of the IPVS mode. */
import { type Cidr, type Family, hostPort, type Ip } from '../../model/ip.ts';
import { PROTOCOLS } from '../../model/objects.ts';
import { type DumpFields, dumpHeader, readDump } from '../dump.ts';
import { type DumpedTables, dumpedTablesIn } from '../iptables/tablesReader.ts';
import type { KernelDevice, KernelIpset, KernelState, ServerAttributes } from './rules/client.ts';
import { serverKey } from './rules/compile.ts';
import { entryKey, parseEntry } from './rules/sets.ts';
import type { WalkedServer } from './rules/walk.ts';

/** With which sets, virtual servers and rules are compiled. */
export interface IpvsSettings {
  readonly scheduler: string;
  readonly masqueradeBit: number;
  readonly randomFully: boolean;
  readonly excludeCIDRs: readonly Cidr[];
}

export type DumpedServer = ServerAttributes & WalkedServer;

interface IpvsDump {
  readonly settings: IpvsSettings;
  readonly nodeIps: readonly Ip[];
  readonly rules: DumpedTables;
  readonly sets: KernelState['sets'];
  readonly device: KernelDevice;
  /** Everybody's, by `serverKey`. */
  readonly servers: ReadonlyMap<string, DumpedServer>;
}

export function writeIpvsDump(family: Family, { sets, servers, ...dump }: IpvsDump): unknown {
  return {
    ...dumpHeader('ipvs', family),
    ...dump,
    sets: [...sets].map(([name, { type, capacity, entries }]) => ({
      name,
      type,
      ...(Number.isFinite(capacity) && { capacity }),
      entries: [...entries.keys()],
    })),
    servers: [...servers.values()],
  };
}

export function readIpvsDump(family: Family, dump: unknown): IpvsDump {
  return readDump('ipvs', family, dump, (fields) => {
    const settings = fields.map('settings');
    const servers = fields.maps('servers').map(serverIn);
    return {
      settings: {
        scheduler: settings.text('scheduler'),
        masqueradeBit: settings.number('masqueradeBit'),
        randomFully: settings.flag('randomFully'),
        excludeCIDRs: settings.cidrs('excludeCIDRs'),
      },
      nodeIps: fields.ips('nodeIps'),
      rules: dumpedTablesIn(fields.map('rules')),
      sets: new Map(fields.maps('sets').map((set) => [set.text('name'), setIn(set)])),
      device: deviceIn(fields.map('device')),
      servers: new Map(servers.map((server) => [serverKey(server), server])),
    };
  });
}

function setIn(fields: DumpFields): KernelIpset {
  const type = fields.text('type');
  const entries = fields.texts('entries').map((text) => {
    const entry = parseEntry(type, text);
    if (!entry) throw new Error(`${JSON.stringify(text)} is no entry of a set`);
    return [entryKey(entry), entry] as const;
  });
  const capacity = fields.optional('capacity', () => fields.number('capacity')) ?? Number.POSITIVE_INFINITY;
  return { type, capacity, entries: new Map(entries) };
}

function deviceIn(fields: DumpFields): KernelDevice {
  const state = fields.choice('state', ['absent', 'foreign', 'present']);
  if (state === 'absent') return { state };
  if (state === 'foreign') return { state, type: fields.text('type') };
  return { state, addresses: fields.ips('addresses'), broken: fields.flag('broken') };
}

function serverIn(fields: DumpFields): DumpedServer {
  return {
    protocol: fields.choice('protocol', PROTOCOLS),
    ip: fields.ip('ip'),
    port: fields.number('port'),
    scheduler: fields.text('scheduler'),
    flags: fields.number('flags'),
    timeout: fields.number('timeout'),
    clientPrefix: fields.number('clientPrefix'),
    packets: countIn(fields, 'packets'),
    destinations: fields.maps('destinations').map((each) => {
      const [ip, port] = [each.ip('ip'), each.number('port')];
      return {
        ip,
        port,
        key: hostPort(ip, port),
        weight: each.number('weight'),
        activeConnections: countIn(each, 'activeConnections'),
        inactiveConnections: countIn(each, 'inactiveConnections'),
        packets: countIn(each, 'packets'),
      };
    }),
  };
}

/** Unset where nothing counts. */
function countIn(fields: DumpFields, name: string): number | undefined {
  return fields.optional(name, () => fields.number(name));
}
