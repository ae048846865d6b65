/** Reads the tables of iptables for questions, in processes of its own: no sync waits for them, and nothing is changed. */
import type { Family, Ip } from '../../model/ip.ts';
import { readNfacct } from '../../netlink/nfacct.ts';
import { NETLINK_NETFILTER } from '../../netlink/socket.ts';
import { NetlinkSockets } from '../../netlink/sockets.ts';
import type { Host, Packet } from '../../plan/decide.ts';
import type { Plan } from '../../plan/types.ts';
import { localIps } from '../../system/interfaces.ts';
import { dumpHeader, readDump } from '../dump.ts';
import type { KernelDifference, KernelReader, WalkResult } from '../kernelRules.ts';
import { outInterfaceNow } from '../walkRunner.ts';
import { type ClientOptions, IptablesClient } from './client.ts';
import { type MachineSettings, machineSettings } from './settings.ts';
import { compileOptionsOf, type LayoutName, nodePortIpsOf } from './rules/fragment.ts';
import { LAYOUTS } from './rules/layouts/index.ts';
import {
  type DumpedTables,
  dumpedTables,
  dumpedTablesIn,
  TablesReader,
  type TablesReaderOptions,
} from './tablesReader.ts';

interface IptablesReaderOptions extends TablesReaderOptions {
  readonly layout: LayoutName;
  /** With which rules are compiled. */
  readonly settings: MachineSettings;
  /** The node's, in this family. */
  readonly addresses?: () => readonly Ip[];
}

export class IptablesReader implements KernelReader {
  readonly #options: IptablesReaderOptions;
  readonly #tables: TablesReader;

  constructor(options: IptablesReaderOptions) {
    this.#options = options;
    this.#tables = new TablesReader(options);
  }

  walk(packet: Packet, host: Host): Promise<WalkResult> {
    return this.#tables.walk(packet, host);
  }

  compare(plan: Plan): Promise<readonly KernelDifference[]> {
    const { layout, settings } = this.#options;
    const nodePortIps = nodePortIpsOf(plan.view.nodePorts, () => this.#addresses());
    return this.#tables.compare(plan, LAYOUTS[layout], compileOptionsOf(plan, { ...settings, nodePortIps }));
  }

  async dump(): Promise<unknown> {
    const { client, layout, settings } = this.#options;
    const tables = await this.#tables.dump();
    const dump: IptablesDump = { layout, settings, addresses: this.#addresses(), ...tables };
    return { ...dumpHeader('iptables', client.family), ...dump };
  }

  #addresses(): readonly Ip[] {
    const { client, addresses = () => localIps(client.family) } = this.#options;
    return addresses();
  }
}

interface OpenReaderOptions extends Pick<ClientOptions, 'variant' | 'runner' | 'lockPath'> {
  readonly layout: LayoutName;
  readonly masqueradeBit: number;
}

/** For a program beside the proxy, or where none runs. */
export async function openIptablesReader(
  family: Family,
  { layout, masqueradeBit, ...options }: OpenReaderOptions,
): Promise<KernelReader & { close(): Promise<void> }> {
  const client = await IptablesClient.open({ ...options, family });
  let sockets: NetlinkSockets | undefined;
  const reader = new IptablesReader({
    client,
    layout,
    settings: machineSettings(client, masqueradeBit, (name) => readNfacct(name) !== undefined),
    outInterface: outInterfaceNow,
    channel: () => (sockets ??= new NetlinkSockets()).channel(NETLINK_NETFILTER),
  });
  return Object.assign(reader, { close: async () => sockets?.close() });
}

/** `dump`: of another machine, from a file that somebody sent. */
export function iptablesReaderOfDump(family: Family, dump: unknown): KernelReader {
  const read = readIptablesDump(family, dump);
  const { layout, settings, addresses } = read;
  return new IptablesReader({
    ...dumpedTables(family, read),
    layout,
    settings,
    addresses: () => addresses,
  });
}

interface IptablesDump extends DumpedTables {
  readonly layout: LayoutName;
  readonly settings: MachineSettings;
  readonly addresses: readonly Ip[];
}

function readIptablesDump(family: Family, dump: unknown): IptablesDump {
  return readDump('iptables', family, dump, (fields) => {
    const settings = fields.map('settings');
    const nfacct = settings.map('nfacct');
    return {
      layout: fields.choice('layout', ['current', 'classic']),
      settings: {
        masqueradeMark: settings.number('masqueradeMark'),
        randomFully: settings.flag('randomFully'),
        dropInvalid: settings.flag('dropInvalid'),
        nfacct: {
          invalidDropped: nfacct.flag('invalidDropped'),
          localhostNodePorts: nfacct.flag('localhostNodePorts'),
        },
      },
      addresses: fields.ips('addresses'),
      ...dumpedTablesIn(fields),
    };
  });
}
