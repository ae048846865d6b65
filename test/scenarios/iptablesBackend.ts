/** The real iptables proxy, for node1. */
import type { LayoutName } from '../../src/backends/iptables/fragment.ts';
import { LAYOUTS } from '../../src/backends/iptables/layouts/index.ts';
import type { IptablesDoor } from '../../src/kernel/iptables/door.ts';
import { IptablesProxy } from '../../src/kernel/iptables/iptablesProxy.ts';
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
