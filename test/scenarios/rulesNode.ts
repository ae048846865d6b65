/** Junction over the stand-in for the kernel: the real proxy, client and writer, and no process at all. */
import type { LayoutName } from '../../src/modes/iptables/rules/fragment.ts';
import { LAYOUTS } from '../../src/modes/iptables/rules/layouts/index.ts';
import { IptablesClient } from '../../src/modes/iptables/client.ts';
import { IptablesProxier, type IptablesProxierOptions } from '../../src/modes/iptables/proxier.ts';
import type { Family } from '../../src/model/ip.ts';
import type { FakeIptables } from './fakeIptables.ts';
import { node1Addresses } from './scenario.ts';

export async function rulesWriter(
  family: Family,
  layout: LayoutName,
  iptables: FakeIptables,
  nfacct: NonNullable<IptablesProxierOptions['nfacct']> = { invalidDropped: true, localhostNodePorts: true },
): Promise<IptablesProxier> {
  return new IptablesProxier({
    client: await IptablesClient.open({ family, variant: 'nft', runner: iptables.runner }),
    layout: LAYOUTS[layout],
    masqueradeBit: 14,
    addresses: () => node1Addresses(family),
    nfacct,
    dropInvalid: true,
  });
}
