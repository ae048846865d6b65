/** Reads rules, sets, virtual servers and addresses of the IPVS mode for questions. Changes nothing. */
import { isJunctionError } from '../../errors.ts';
import { cidrContains, type Family, type Ip, isLoopback } from '../../model/ip.ts';
import { directChannel } from '../../netlink/channel.ts';
import { NETLINK_GENERIC, NETLINK_NETFILTER, NETLINK_ROUTE, NetlinkSocket } from '../../netlink/socket.ts';
import { answersNodePorts, type Host, type Packet } from '../../plan/decide.ts';
import type { Plan } from '../../plan/types.ts';
import { nodeIpsOf } from '../../system/interfaces.ts';
import { systemClock } from '../../time/systemClock.ts';
import { forEachSliced, runSliced, TimeSlice } from '../../time/timeSlice.ts';
import { type ClientOptions, IptablesClient } from '../iptables/client.ts';
import { compileOptionsOf } from '../iptables/rules/fragment.ts';
import type { WalkedTables } from '../iptables/rules/walk.ts';
import { type ChainWalk, dumpedTables, TablesReader } from '../iptables/tablesReader.ts';
import { routesNow } from '../iptables/outInterface.ts';
import { type KernelDifference, type KernelReader, ReadOnDemand } from '../kernelReader.ts';
import type { WalkResult } from '../walk.ts';
import { NetlinkIpvsClient } from './client.ts';
import { type DumpedServer, dumpedSets, type IpvsDump, type IpvsSettings, readIpvsDump } from './dump.ts';
import { type IpvsLookups, NetlinkLookups, type SetQuestion } from './lookups.ts';
import { Changeset } from './rules/changeset.ts';
import type { IpvsClient, KernelState } from './rules/client.ts';
import { differenceOf, type ExistingServers, ownersOf } from './rules/compare.ts';
import {
  compileVirtualServers,
  type ServerKey,
  serverKey,
  type VirtualServerOptions,
} from './rules/compile.ts';
import { DesiredState } from './rules/desiredState.ts';
import { editName } from './rules/refusals.ts';
import { ourServers, resyncDevice, resyncServers, resyncSets } from './rules/resync.ts';
import { ipvsLayout, ruleOptions } from './rules/rules.ts';
import { entryKey, IPSETS, SET_IDS, setName, type SetType } from './rules/sets.ts';
import { typeNamed, walkedSnapshot, type WalkedIpvs, type WalkedServer, walkIpvs } from './rules/walk.ts';

interface IpvsReaderOptions {
  readonly family: Family;
  readonly tables: TablesReader;
  readonly lookups: IpvsLookups;
  readonly client: Pick<IpvsClient, 'read' | 'readDestinations'>;
  readonly settings: IpvsSettings;
  /** The node's own, without loopback. */
  readonly nodeIps: () => readonly Ip[];
}

/** Virtual servers that are asked for at a time. */
const SERVERS_AT_ONCE = 64;
/** After which a comparison ends: `ipvsadm --clear` takes ten thousand. */
const MOST_DIFFERENCES = 20_000;

export class IpvsReader implements KernelReader {
  readonly #options: IpvsReaderOptions;
  readonly #timeSlice = new TimeSlice(systemClock, 4);
  readonly #ownTypes: ReadonlyMap<string, SetType>;

  constructor(options: IpvsReaderOptions) {
    this.#options = options;
    this.#ownTypes = new Map(SET_IDS.map((id) => [setName(id, options.family), IPSETS[id].type]));
  }

  walk(packet: Packet, host: Host): Promise<WalkResult<string>> {
    return this.#options.tables.walk(packet, () => this.#walkOnDemand(host));
  }

  #walkOnDemand(host: Host): ChainWalk {
    const { lookups } = this.#options;
    const entries = onDemand(
      ({ set, entry }: SetQuestion) => `${set} ${entryKey(entry)}`,
      (questions) => lookups.hasEntries(questions),
    );
    const types = onDemand(
      (set: string) => set,
      (sets) => lookups.typesOf(sets),
    );
    const servers = onDemand(serverKey, (keys: readonly ServerKey[]) => lookups.servers(keys));
    const local = onDemand(
      (ip: Ip) => ip,
      (ips) => lookups.areLocal(ips),
    );
    const marks = onDemand(String, (asked: readonly number[]) => lookups.haveMarks(asked));
    const known = new Set(host.addresses);
    const kernelOf = (tables: WalkedTables): WalkedIpvs => ({
      tables,
      typeOf: (set) => this.#ownTypes.get(set) ?? typeNamed(types.get(set)),
      has: (set, entry) => entries.get({ set, entry }) ?? false,
      server: (key) => servers.get(key),
      hasMark: (mark) => marks.get(mark) ?? false,
      isBound: (ip) => !known.has(ip) && !isLoopback(ip) && (local.get(ip) ?? false),
    });
    return {
      walk: (tables, packet) => walkIpvs(kernelOf(tables), packet, host),
      fill: async () => {
        const all = [entries, types, servers, marks, local].map((each) => each.fill());
        return (await Promise.all(all)).includes(true);
      },
    };
  }

  async compare(plan: Plan): Promise<readonly KernelDifference[]> {
    const { family, tables, settings, nodeIps } = this.#options;
    const ips = [...nodeIps()].sort();
    const nodePortIps = ips.filter((ip) => answersNodePorts(plan.view.nodePorts, ip));
    const options = { family, scheduler: settings.scheduler, nodeIps: ips, nodePortIps };
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
    const { family, nodeIps } = options;
    const state = await client.read();
    const work = new Changeset(family, { has: () => false });
    const servers = ourServers(state, family, new Set(nodeIps), (key) => desired.server(key) !== undefined);
    const destinations = await client.readDestinations(servers);
    const existing: ExistingServers = new Map(
      servers.map((attributes, index) => [
        serverKey(attributes),
        { attributes, destinations: destinations[index] ?? [] },
      ]),
    );
    const isExcluded = ({ ip }: ServerKey): boolean =>
      settings.excludeCIDRs.some((cidr) => cidrContains(cidr, ip));
    const taken = [
      ...(await this.#unlessTaken(async () => resyncDevice(state.device, desired, work))),
      ...(await this.#unlessTaken(() => this.#runSliced(resyncSets(state, desired, family, work)))),
    ];
    await this.#runSliced(resyncServers(servers, destinations, desired, work, isExcluded));
    const edits = work.edits.slice(0, MOST_DIFFERENCES);
    const owners = await this.#runSliced(ownersOf(edits, plan.servicePorts, options));
    const differences = edits.map((edit) => {
      const servicePort = owners.get(editName(edit));
      return { ...differenceOf(edit, existing), ...(servicePort !== undefined && { servicePort }) };
    });
    const left = work.edits.length - edits.length;
    if (left === 0) return [...taken, ...differences];
    return [
      ...taken,
      ...differences,
      { kind: 'different', object: 'IPVS', text: `and ${left} differences more` },
    ];
  }

  /** Another program has a set, or a link, of our name. */
  async #unlessTaken(work: () => Promise<unknown>): Promise<readonly KernelDifference[]> {
    try {
      await work();
      return [];
    } catch (error) {
      if (!isJunctionError(error, 'IPSET_TAKEN') && !isJunctionError(error, 'DEVICE_TAKEN')) throw error;
      return [{ kind: 'different', object: 'IPVS', text: error.message }];
    }
  }

  async dump(): Promise<IpvsDump> {
    const { family, tables, client, settings, nodeIps } = this.#options;
    const { sets, device, servers } = await client.read();
    return {
      kind: 'ipvs',
      version: 1,
      family,
      settings,
      nodeIps: nodeIps(),
      rules: await tables.dump(),
      sets: dumpedSets(sets),
      device,
      servers: await this.#dumpServers(servers),
    };
  }

  async #dumpServers(servers: KernelState['servers']): Promise<readonly DumpedServer[]> {
    const dumped: DumpedServer[] = [];
    for (let from = 0; from < servers.length; from += SERVERS_AT_ONCE) {
      const some = servers.slice(from, from + SERVERS_AT_ONCE);
      const read = await this.#options.lookups.servers(some);
      for (const [index, attributes] of some.entries()) {
        const server = read[index];
        if (server) dumped.push({ ...server, ...attributes });
      }
    }
    return dumped;
  }

  #runSliced<T>(steps: Generator<void, T>): Promise<T> {
    this.#timeSlice.begin();
    return runSliced(steps, this.#timeSlice);
  }
}

/** Values that are read as a walk asks for them, by what identifies them. */
interface OnDemand<Asked, Value> {
  get(asked: Asked): Value | undefined;
  fill(): Promise<boolean>;
}

function onDemand<Asked, Value>(
  keyOf: (asked: Asked) => string,
  read: (asked: readonly Asked[]) => Promise<readonly (Value | undefined)[]>,
): OnDemand<Asked, Value> {
  const asked = new Map<string, Asked>();
  const values = new ReadOnDemand<string, Value>(async (keys) => {
    const answers = await read(keys.flatMap((key) => asked.get(key) ?? []));
    return new Map(
      keys.flatMap((key, index) => {
        const answer = answers[index];
        return answer === undefined ? [] : [[key, answer] as const];
      }),
    );
  });
  return {
    get: (one) => {
      const key = keyOf(one);
      asked.set(key, one);
      return values.get(key);
    },
    fill: () => values.fill(),
  };
}

interface OpenIpvsOptions
  extends Pick<ClientOptions, 'variant' | 'runner' | 'lockPath'>,
    Omit<IpvsSettings, 'randomFully'> {}

/** For a program beside the proxy, or where none runs. */
export async function openIpvsReader(
  family: Family,
  { scheduler, masqueradeBit, excludeCIDRs, ...options }: OpenIpvsOptions,
): Promise<KernelReader & { close(): void }> {
  const iptables = await IptablesClient.open({ ...options, family });
  const sockets = [NETLINK_ROUTE, NETLINK_NETFILTER, NETLINK_GENERIC].map((protocol) =>
    NetlinkSocket.open(protocol),
  );
  const [route, netfilter, generic] = sockets.map(directChannel);
  const close = (): void => {
    for (const socket of sockets) socket.close();
  };
  if (!route || !netfilter || !generic) throw new Error('three protocols, and not three channels');
  const channels = { route, netfilter, generic };
  const reader = new IpvsReader({
    family,
    tables: new TablesReader({
      client: iptables,
      routes: routesNow,
      channel: async () => channels.netfilter,
    }),
    lookups: new NetlinkLookups(family, channels),
    client: new NetlinkIpvsClient(family, channels),
    settings: { scheduler, masqueradeBit, excludeCIDRs, randomFully: iptables.features.randomFully },
    nodeIps: () => nodeIpsOf(family),
  });
  return Object.assign(reader, { close });
}

/** `dump`: of another machine, from a file that somebody sent. */
export function ipvsReaderOfDump(family: Family, dump: unknown): KernelReader {
  const { settings, nodeIps, rules, sets, device, servers } = readIpvsDump(family, dump);
  const bound = new Set(device.state === 'present' && !device.broken ? device.addresses : []);
  const tables = new TablesReader(dumpedTables(family, rules));
  const kernel = walkedSnapshot({
    tables: { base: () => undefined, rules: () => undefined },
    sets,
    servers,
    bound,
  });
  return new IpvsReader({
    family,
    tables,
    lookups: {
      hasEntries: async (questions) => questions.map(({ set, entry }) => kernel.has(set, entry)),
      typesOf: async (names) => names.map((name) => sets.get(name)?.type),
      servers: async (keys) => keys.map((key) => kernel.server(key)),
      haveMarks: async (marks) => marks.map(() => false),
      areLocal: async (ips) => ips.map((ip) => bound.has(ip)),
    },
    client: {
      read: async () => ({ sets, device, servers: [...servers.values()] }),
      readDestinations: async (keys) =>
        keys.map((key) => (servers.get(serverKey(key))?.destinations ?? []).map(destinationState)),
    },
    settings,
    nodeIps: () => nodeIps,
  });
}

function destinationState(destination: WalkedServer['destinations'][number]) {
  const { activeConnections = 0, inactiveConnections = 0 } = destination;
  return { ...destination, connections: activeConnections + inactiveConnections };
}
