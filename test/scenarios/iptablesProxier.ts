/** The real iptables proxy, for node1. */
import type { LayoutName } from '../../src/modes/iptables/rules/fragment.ts';
import { LAYOUTS } from '../../src/modes/iptables/rules/layouts/index.ts';
import type { IptablesClient } from '../../src/modes/iptables/client.ts';
import { IptablesProxier } from '../../src/modes/iptables/proxier.ts';
import { node1Addresses } from './scenario.ts';
import type { FamilyWriter } from './scenarioProxies.ts';

/** Counters belong to a network namespace, and the test's is not always node1's. */
export const NO_COUNTERS = { invalidDropped: false, localhostNodePorts: false };

export function iptablesWriter(client: IptablesClient, layout: LayoutName): FamilyWriter {
  return {
    family: client.family,
    start: () =>
      new IptablesProxier({
        client,
        layout: LAYOUTS[layout],
        masqueradeBit: 14,
        addresses: () => node1Addresses(client.family),
        nfacct: NO_COUNTERS,
        dropInvalid: true,
      }),
  };
}
