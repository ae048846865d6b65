/** Each mode, with the settings of tests, on whatever kernel: in memory, in a namespace, in a guest. */
import { type Family, type Ip, isLoopback } from '../../src/model/ip.ts';
import type { ReadingClient } from '../../src/modes/iptables/chains.ts';
import { type ClientOptions, IptablesClient } from '../../src/modes/iptables/client.ts';
import { IptablesReader } from '../../src/modes/iptables/inspect.ts';
import type { KernelTables } from '../../src/modes/iptables/kernelTables.ts';
import { iptablesSync, type MachineSettings } from '../../src/modes/iptables/settings.ts';
import type { IptablesSync } from '../../src/modes/iptables/sync.ts';
import type { LayoutName } from '../../src/modes/iptables/rules/fragment.ts';
import { LAYOUTS } from '../../src/modes/iptables/rules/layouts/index.ts';
import { IpvsSync } from '../../src/modes/ipvs/sync.ts';
import { NftSync, type NftSyncOptions } from '../../src/modes/nftables/sync.ts';
import type { CommandRunner } from '../../src/system/processes.ts';

type NodeIps = () => readonly Ip[];
export type Counters = MachineSettings['nfacct'];

/** Counters belong to a network namespace, and the test's is not always node1's. */
export const NO_COUNTERS: Counters = { invalidDropped: false, localhostNodePorts: false };

export const ALL_TABLES: KernelTables = {
  names: new Set(['raw', 'mangle', 'nat', 'filter', 'security']),
  notes: [],
};

export interface GivenIptables {
  readonly client: IptablesClient;
  readonly layout: LayoutName;
  /** With loopback. */
  readonly nodeIps: NodeIps;
  readonly nfacct?: Counters;
}

export function iptablesMode({ client, layout, nodeIps, nfacct = NO_COUNTERS }: GivenIptables): IptablesSync {
  return iptablesSync({
    client,
    layout: LAYOUTS[layout],
    settings: { masqueradeMark: 0x4000, randomFully: client.features.randomFully, dropInvalid: true, nfacct },
    addresses: nodeIps,
  });
}

export function iptablesReader(
  {
    client,
    layout,
    nodeIps,
    nfacct = NO_COUNTERS,
  }: Omit<GivenIptables, 'client'> & {
    readonly client: ReadingClient;
  },
  tables: () => KernelTables,
  generation: () => number,
): IptablesReader {
  return new IptablesReader({
    client,
    layout,
    settings: { masqueradeMark: 0x4000, randomFully: true, dropInvalid: true, nfacct },
    addresses: nodeIps,
    tables,
    generation,
    bridges: () => new Set(['cni0']),
  });
}

export function openIptables(
  family: Family,
  runner: CommandRunner,
  options: Pick<ClientOptions, 'variant' | 'lockPath'> = { variant: 'nft' },
): Promise<IptablesClient> {
  return IptablesClient.open({ family, runner, ...options });
}

export const IPVS_SETTINGS = { masqueradeBit: 14, scheduler: 'rr', excludeCIDRs: [] };

type IpvsOptions = ConstructorParameters<typeof IpvsSync>[0];

export function ipvsMode(
  options: Pick<IpvsOptions, 'client' | 'iptables' | 'clock'>,
  nodeIps: NodeIps,
): IpvsSync {
  return new IpvsSync({
    ...IPVS_SETTINGS,
    ...options,
    drainLimitMs: 0,
    nodeIps: () => withoutLoopback(nodeIps()),
    onDrainFailure: (error) => {
      throw error;
    },
  });
}

export function nftMode(
  tables: NftSyncOptions['tables'],
  nodeIps: NodeIps,
  options: Partial<NftSyncOptions> = {},
): NftSync {
  return new NftSync({
    tables,
    isProtected: true,
    masqueradeBit: 14,
    counters: true,
    nodeIps: () => withoutLoopback(nodeIps()),
    ...options,
  });
}

export function withoutLoopback(ips: readonly Ip[]): readonly Ip[] {
  return ips.filter((each) => !isLoopback(each));
}
