/** Reads rules, sets, virtual servers and addresses of the IPVS mode for questions. Changes nothing. */
import { isJunctionError } from '../../errors.ts';
import { cidrContains, type Family, type Ip } from '../../model/ip.ts';
import { NetlinkSockets } from '../../netlink/sockets.ts';
import { answersNodePorts, type Host, type Packet } from '../../plan/decide.ts';
import type { Plan } from '../../plan/types.ts';
import { nodeIpsOf } from '../../system/interfaces.ts';
import { systemClock } from '../../time/systemClock.ts';
import { forEachSliced, runSliced, TimeSlice } from '../../time/timeSlice.ts';
import { type ClientOptions, IptablesClient } from '../iptables/client.ts';
import { compileOptionsOf } from '../iptables/rules/fragment.ts';
import { dumpedTables, TablesReader } from '../iptables/tablesReader.ts';
import { outInterfaceNow } from '../walkRunner.ts';
import type { KernelDifference, KernelReader, WalkResult } from '../kernelRules.ts';
import { channelsOf, NetlinkIpvsClient } from './client.ts';
import { type DumpedServer, type IpvsSettings, readIpvsDump, writeIpvsDump } from './dump.ts';
import { NetlinkLookups } from './lookups.ts';
import { Changeset } from './rules/changeset.ts';
import type { IpvsClient } from './rules/client.ts';
import { differenceOf } from './rules/compare.ts';
import {
  compileVirtualServers,
  type ServerKey,
  serverKey,
  type VirtualServerOptions,
} from './rules/compile.ts';
import { DesiredState } from './rules/desiredState.ts';
import { editName, ownersOf } from './rules/outcomes.ts';
import { compareKernel, readSets } from './rules/resync.ts';
import { ipvsLayout, ruleOptions } from './rules/rules.ts';
import { type IpvsLookups, lookupsIn, type WalkedServer, walkIpvs } from './rules/walk.ts';

interface IpvsReaderOptions {
  readonly family: Family;
  readonly tables: TablesReader;
  readonly lookups: IpvsLookups;
  readonly client: Omit<IpvsClient, 'apply'>;
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
    const { tables, lookups } = this.#options;
    return tables.walk(packet, host, (rules, place) => walkIpvs(lookups, rules, place, packet, host));
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
    const { family } = options;
    const changes = new Changeset(family);
    const taken: KernelDifference[] = [];
    const isExcluded = ({ ip }: ServerKey): boolean =>
      settings.excludeCIDRs.some((cidr) => cidrContains(cidr, ip));
    const nodeIps = new Set(options.nodeIps);
    for await (const compare of compareKernel({ client, family, desired, nodeIps, isExcluded }))
      taken.push(...(await this.#unlessTaken(() => this.#runSliced(compare(changes)))));
    const all = changes.edits;
    const edits = all.slice(0, MAX_DIFFERENCES);
    const owners = await this.#runSliced(ownersOf(new Set(edits.map(editName)), plan.servicePorts, options));
    const differences = edits.map((edit) => {
      const [servicePort] = owners.get(editName(edit)) ?? [];
      return { ...differenceOf(edit), ...(servicePort !== undefined && { servicePort }) };
    });
    const left = all.length - edits.length;
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

  async dump(): Promise<unknown> {
    const { family, tables, client, lookups, settings, nodeIps } = this.#options;
    const sets = await readSets(client, family);
    const device = await client.readDevice();
    const servers = await client.readServers();
    const dumped = new Map<string, DumpedServer>();
    for (const attributes of servers) {
      const server = await lookups.server(attributes);
      if (server) dumped.set(serverKey(attributes), { ...server, ...attributes });
    }
    const rules = await tables.dump();
    return writeIpvsDump(family, { settings, nodeIps: nodeIps(), rules, sets, device, servers: dumped });
  }

  #runSliced<T>(steps: Generator<void, T>): Promise<T> {
    this.#timeSlice.begin();
    return runSliced(steps, this.#timeSlice);
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
  const reader = new IpvsReader({
    family,
    tables: new TablesReader({
      client: iptables,
      outInterface: outInterfaceNow,
      channel: () => channels.netfilter,
    }),
    lookups: new NetlinkLookups(channels),
    client: new NetlinkIpvsClient(family, channels),
    settings: { scheduler, masqueradeBit, excludeCIDRs, randomFully: iptables.features.randomFully },
    nodeIps: () => nodeIpsOf(family),
  });
  return Object.assign(reader, { close: () => sockets.close() });
}

/** `dump`: of another machine, from a file that somebody sent. */
export function ipvsReaderOfDump(family: Family, dump: unknown): KernelReader {
  const { settings, nodeIps, rules, sets, device, servers } = readIpvsDump(family, dump);
  const bound = new Set(device.state === 'present' && !device.broken ? device.addresses : []);
  const tables = new TablesReader(dumpedTables(family, rules));
  return new IpvsReader({
    family,
    tables,
    lookups: lookupsIn({ sets, servers, bound }),
    client: {
      readSet: async (name) => sets.get(name),
      readDevice: async () => device,
      readServers: async () => [...servers.values()],
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
