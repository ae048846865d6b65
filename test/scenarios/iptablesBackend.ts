/** The real iptables proxy, for node1. */
import type { LayoutName } from '../../src/modes/iptables/rules/fragment.ts';
import { LAYOUTS } from '../../src/modes/iptables/rules/layouts/index.ts';
import type { IptablesDoor } from '../../src/modes/iptables/client.ts';
import { IptablesProxy } from '../../src/modes/iptables/proxier.ts';
import { node1Addresses } from './scenario.ts';
import type { FamilyBackend } from './scenarioProxies.ts';

/** Counters belong to a network namespace, and the test's is not always node1's. */
export const NO_COUNTERS = { invalidDropped: false, localhostNodePorts: false };

export function iptablesBackend(door: IptablesDoor, layout: LayoutName): FamilyBackend {
  return {
    family: door.family,
    start: () =>
      new IptablesProxy({
        door,
        layout: LAYOUTS[layout],
        masqueradeBit: 14,
        addresses: () => node1Addresses(door.family),
        nfacct: NO_COUNTERS,
        dropInvalid: true,
      }),
  };
}
