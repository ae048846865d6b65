/** A reader over the stand-in for the kernel. */
import { IptablesClient } from '../../../src/modes/iptables/client.ts';
import { IptablesReader } from '../../../src/modes/iptables/inspect.ts';
import type { KernelTables } from '../../../src/modes/iptables/kernelTables.ts';
import type { MachineSettings } from '../../../src/modes/iptables/proxier.ts';
import type { LayoutName } from '../../../src/modes/iptables/rules/fragment.ts';
import type { Family } from '../../../src/model/ip.ts';
import type { FakeIptables } from '../../scenarios/fakeIptables.ts';
import { node1Addresses } from '../../scenarios/scenario.ts';

export const ALL_TABLES: KernelTables = {
  names: new Set(['raw', 'mangle', 'nat', 'filter', 'security']),
  notes: [],
};

/** As the stand-in's proxy compiles. */
export const FAKE_SETTINGS: MachineSettings = {
  masqueradeMark: 0x4000,
  randomFully: true,
  dropInvalid: true,
  nfacct: { invalidDropped: true, localhostNodePorts: true },
};

export async function fakeReader(
  family: Family,
  layout: LayoutName,
  iptables: FakeIptables,
  tables: KernelTables = ALL_TABLES,
): Promise<IptablesReader> {
  return new IptablesReader({
    client: await IptablesClient.open({ family, variant: 'nft', runner: iptables.runner }),
    layout,
    settings: FAKE_SETTINGS,
    addresses: () => node1Addresses(family),
    tables: () => tables,
    generation: () => 1,
    bridges: () => new Set(['cni0']),
  });
}
