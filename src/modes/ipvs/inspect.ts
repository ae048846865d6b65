/** Reads rules, sets, virtual servers and addresses of the IPVS mode for questions. Changes nothing. */
import { isJunctionError } from '../../errors.ts';
import { type Cidr, type Family, hostPort, type Ip } from '../../model/ip.ts';
import { PROTOCOLS } from '../../model/objects.ts';
import { IPSET_TYPES } from '../../netlink/ipset.ts';
import { NetlinkSockets } from '../../netlink/sockets.ts';
import type { Host, Packet } from '../../plan/decide.ts';
import type { Plan } from '../../plan/types.ts';
import { nodeIpsOf } from '../../system/interfaces.ts';
import { systemClock } from '../../time/systemClock.ts';
import { forEachSliced, runSliced, TimeSlice } from '../../time/timeSlice.ts';
import { type ClientOptions, IptablesClient } from '../iptables/client.ts';
import { compileOptionsOf } from '../iptables/rules/fragment.ts';
import { dumpedTables, dumpedTablesIn, TablesReader } from '../iptables/tablesReader.ts';
import { outInterfaceNow } from '../walkRunner.ts';
import type { KernelDifference, KernelReader, WalkResult } from '../kernelRules.ts';
import { dumpHeader, type DumpFields, readDump } from '../dump.ts';
import { channelsOf, NetlinkIpvsClient } from './client.ts';
import { printDestinationLine, printServerLine } from './print.ts';
import {
  DEVICE,
  type IpvsEdit,
  type IpvsSource,
  type KernelDestination,
  type KernelDevice,
  type KernelIpset,
  type KernelServer,
} from './rules/client.ts';
import {
  compileVirtualServers,
  type ServerKey,
  serverKey,
  type VirtualServerOptions,
  virtualServerOptions,
} from './rules/compile.ts';
import { Changeset, DesiredState } from './rules/desiredState.ts';
import { editName, objectOf, ownersOf, VERBS } from './rules/outcomes.ts';
import { compareKernel, readSets } from './rules/resync.ts';
import { ipvsLayout, ruleOptions } from './rules/rules.ts';
import { entryKey, growingName, type SetEntry } from './rules/sets.ts';
import { walkIpvs } from './rules/walk.ts';

/** With which sets, virtual servers and rules are compiled. */
interface IpvsSettings {
  readonly scheduler: string;
  readonly masqueradeBit: number;
  readonly randomFully: boolean;
  readonly excludeCIDRs: readonly Cidr[];
}

interface IpvsReaderOptions {
  readonly family: Family;
  readonly tables: TablesReader;
  readonly client: IpvsSource;
  readonly settings: IpvsSettings;
  /** The node's own, without loopback. */
  readonly nodeIps: () => readonly Ip[];
}

/** After which a comparison ends: `ipvsadm --clear` takes ten thousand. */
const MAX_DIFFERENCES = 20_000;

export class IpvsReader implements KernelReader {
  readonly #options: IpvsReaderOptions;
  readonly #timeSlice = new TimeSlice(systemClock, 4);

  constructor(options: IpvsReaderOptions) {
    this.#options = options;
  }

  walk(packet: Packet, host: Host): Promise<WalkResult> {
    const { tables, client } = this.#options;
    return tables.walk(packet, host, (rules, place) => walkIpvs(client, rules, place, packet, host));
  }

  async compare(plan: Plan): Promise<readonly KernelDifference[]> {
    const { tables, settings, nodeIps } = this.#options;
    const options = virtualServerOptions(plan, settings.scheduler, nodeIps());
    const desired = new DesiredState();
    this.#timeSlice.begin();
    await forEachSliced(
      plan.servicePorts.values(),
      (port) => desired.add(compileVirtualServers(port, options)),
      this.#timeSlice,
    );
    const ofServers = await this.#compareServers(plan, desired, options);
    const rules = ruleOptions(settings.masqueradeBit, settings.randomFully);
    const compileOptions = compileOptionsOf(plan, rules);
    return [...ofServers, ...(await tables.compare(plan, ipvsLayout, compileOptions))];
  }

  async #compareServers(
    plan: Plan,
    desired: DesiredState,
    options: VirtualServerOptions,
  ): Promise<readonly KernelDifference[]> {
    const { client, settings } = this.#options;
    const { family } = options;
    const changes = new Changeset(family);
    const found: KernelDifference[] = [];
    const nodeIps = new Set(options.nodeIps);
    const { excludeCIDRs } = settings;
    for await (const compare of compareKernel({ client, family, desired, nodeIps, excludeCIDRs }))
      await this.#runSliced(compare(changes)).catch((error: unknown) => {
        // Another program has a set, or a link, of our name.
        if (!isJunctionError(error, 'IPSET_TAKEN') && !isJunctionError(error, 'DEVICE_TAKEN')) throw error;
        found.push({ kind: 'different', object: 'IPVS', text: error.message });
      });
    const growing = growingName(family);
    const all = changes.edits.filter((edit) => !('set' in edit && edit.set === growing));
    const edits = all.slice(0, MAX_DIFFERENCES);
    const owners = await this.#runSliced(ownersOf(new Set(edits.map(editName)), plan.servicePorts, options));
    for (const edit of edits) {
      const [servicePort] = owners.get(editName(edit)) ?? [];
      found.push({ ...differenceOf(edit), ...(servicePort !== undefined && { servicePort }) });
    }
    const left = all.length - edits.length;
    if (left > 0) found.push({ kind: 'different', object: 'IPVS', text: `and ${left} differences more` });
    return found;
  }

  async dump(): Promise<unknown> {
    const { family, tables, client, settings, nodeIps } = this.#options;
    const sets = [...(await readSets(client, family))].map(([name, { type, capacity, entries }]) => ({
      name,
      type,
      ...(Number.isFinite(capacity) && { capacity }),
      entries: [...entries.values()],
    }));
    const device = await client.readDevice();
    const servers = await client.readServers();
    const destinations = await client.readDestinations(servers);
    return {
      ...dumpHeader('ipvs', family),
      settings,
      nodeIps: nodeIps(),
      rules: await tables.dump(),
      sets,
      device,
      servers: servers.map((server, index) => ({ ...server, destinations: destinations[index] })),
    };
  }

  #runSliced<T>(steps: Generator<void, T>): Promise<T> {
    this.#timeSlice.begin();
    return runSliced(steps, this.#timeSlice);
  }
}

const DIFFERENCES = { create: 'missing', change: 'different', delete: 'extra' } as const;

/** `edit`: what a sync would write. Whose it is, `ownersOf` finds. */
function differenceOf(edit: IpvsEdit): KernelDifference {
  const part = 'entry' in edit ? 'entry of the ' : 'destination' in edit ? 'real server of ' : '';
  const isDrained = 'destination' in edit && edit.weight === 0;
  const kind = isDrained ? 'extra' : DIFFERENCES[VERBS[edit.kind]];
  return { kind, object: `${part}${objectOf(edit)}`, text: lineOf(edit) };
}

function lineOf(edit: IpvsEdit): string {
  switch (edit.kind) {
    case 'createSet':
      return `create ${edit.set} ${edit.type}`;
    case 'destroySet':
    case 'swapSets':
      return 'too small for its entries';
    case 'addEntry':
    case 'deleteEntry':
      return `add ${edit.set} ${entryKey(edit.entry)}`;
    case 'makeDevice':
      return `link add name ${DEVICE} type dummy`;
    case 'dropDevice':
      return 'its addresses are not local';
    case 'bind':
    case 'unbind':
      return `address add ${edit.ip} dev ${DEVICE}`;
    case 'newServer':
    case 'deleteServer':
      return printServerLine(edit.server);
    case 'setServer':
      return `${printServerLine(edit.server)}; in the kernel ${printServerLine(edit.was)}`;
    default: {
      const line = printDestinationLine(edit.server, edit.destination.key, edit.was ?? edit.weight);
      return edit.kind === 'setDestination' && edit.weight > 0 ? `${line}; planned is weight 1` : line;
    }
  }
}

interface OpenIpvsOptions
  extends Pick<ClientOptions, 'variant' | 'runner' | 'lockPath'>,
    Omit<IpvsSettings, 'randomFully'> {}

/** For a program beside the proxy, or where none runs. */
export async function openIpvsReader(
  family: Family,
  { scheduler, masqueradeBit, excludeCIDRs, ...options }: OpenIpvsOptions,
): Promise<KernelReader & { close(): Promise<void> }> {
  const iptables = await IptablesClient.open({ ...options, family });
  const sockets = new NetlinkSockets();
  const channels = channelsOf(sockets);
  const tables = { client: iptables, outInterface: outInterfaceNow, channel: () => channels.netfilter };
  const reader = new IpvsReader({
    family,
    tables: new TablesReader(tables),
    client: new NetlinkIpvsClient(family, channels),
    settings: { scheduler, masqueradeBit, excludeCIDRs, randomFully: iptables.features.randomFully },
    nodeIps: () => nodeIpsOf(family),
  });
  return Object.assign(reader, { close: () => sockets.close() });
}

/** `dump`: of another machine, from a file that somebody sent. */
export function ipvsReaderOfDump(family: Family, dump: unknown): KernelReader {
  return readDump('ipvs', family, dump, (fields) => {
    const settings = fields.map('settings');
    const nodeIps = fields.ips('nodeIps');
    const sets = new Map(fields.maps('sets').map((set) => [set.text('name'), setIn(set)]));
    const device = deviceIn(fields.map('device'));
    const servers = fields.maps('servers').map(serverIn);
    const destinations = new Map(servers.map((server) => [serverKey(server), server.destinations]));
    return new IpvsReader({
      family,
      tables: new TablesReader(dumpedTables(family, dumpedTablesIn(fields.map('rules')))),
      client: {
        readSet: async (name) => sets.get(name),
        readDevice: async () => device,
        readServers: async () => servers,
        readDestinations: async (keys) => keys.map((key) => destinations.get(serverKey(key)) ?? []),
      },
      settings: {
        scheduler: settings.text('scheduler'),
        masqueradeBit: settings.number('masqueradeBit'),
        randomFully: settings.flag('randomFully'),
        excludeCIDRs: settings.cidrs('excludeCIDRs'),
      },
      nodeIps: () => nodeIps,
    });
  });
}

function setIn(fields: DumpFields): KernelIpset {
  const capacity = fields.optional('capacity', () => fields.number('capacity')) ?? Number.POSITIVE_INFINITY;
  const entries = fields.maps('entries').map(entryIn);
  return {
    type: fields.text('type'),
    capacity,
    entries: new Map(entries.map((each) => [entryKey(each), each])),
  };
}

function entryIn(fields: DumpFields): SetEntry {
  const type = fields.choice('type', IPSET_TYPES);
  if (type === 'bitmap:port') return { type, port: fields.number('port') };
  if (type === 'hash:ip') return { type, ip: fields.ip('ip') };
  const key = keyIn(fields);
  if (type === 'hash:ip,port') return { type, ...key };
  if (type === 'hash:ip,port,ip') return { type, ...key, secondIp: fields.ip('secondIp') };
  return { type, ...key, net: fields.cidr('net') };
}

function keyIn(fields: DumpFields): ServerKey {
  return { protocol: fields.choice('protocol', PROTOCOLS), ip: fields.ip('ip'), port: fields.number('port') };
}

function deviceIn(fields: DumpFields): KernelDevice {
  const state = fields.choice('state', ['absent', 'foreign', 'present']);
  if (state === 'absent') return { state };
  if (state === 'foreign') return { state, type: fields.text('type') };
  return { state, addresses: fields.ips('addresses'), broken: fields.flag('broken') };
}

function serverIn(
  fields: DumpFields,
): KernelServer & { readonly destinations: readonly KernelDestination[] } {
  return {
    ...keyIn(fields),
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
        activeConnections: each.number('activeConnections'),
        inactiveConnections: each.number('inactiveConnections'),
        connections: countIn(each, 'connections'),
        packets: countIn(each, 'packets'),
      };
    }),
  };
}

/** Unset where nothing counts. */
function countIn(fields: DumpFields, name: string): number | undefined {
  return fields.optional(name, () => fields.number(name));
}
