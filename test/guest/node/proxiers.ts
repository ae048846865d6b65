/** How Junction can be run on node1, by name. Everything here happens in a process inside node1's network. */
import { FAMILIES, type Family } from '../../../src/model/ip.ts';
import type { Mechanism } from '../../../src/modes/deviations.ts';
import type { Variant } from '../../../src/modes/iptables/variant.ts';
import { run } from '../../../src/system/processes.ts';
import { armable, Faults } from '../../contract/faults.ts';
import { iptablesMode, iptablesReader, openIptables } from '../../contract/modes.ts';
import type { FamilyWriter } from '../../scenarios/scenarioProxies.ts';
import { node1Addresses } from '../../scenarios/scenario.ts';
import { openIpvs } from './ipvsProxier.ts';
import { openNft } from './nftProxier.ts';

export type GuestMode = 'iptables-legacy' | 'iptables-nft' | 'ipvs' | 'nftables' | 'nftables-unprotected';

export interface OpenedMode {
  /** Whose differences from `decide` are known. */
  readonly mechanism: Mechanism;
  readonly open: () => Promise<readonly FamilyWriter[]>;
}

export const GUEST_MODES: Readonly<Record<GuestMode, OpenedMode>> = {
  'iptables-legacy': {
    mechanism: 'current',
    open: () => perFamily((family) => openFamily(family, 'legacy')),
  },
  'iptables-nft': { mechanism: 'current', open: () => perFamily((family) => openFamily(family, 'nft')) },
  ipvs: { mechanism: 'ipvs', open: openIpvs },
  nftables: { mechanism: 'nftables', open: () => openNft(true) },
  'nftables-unprotected': { mechanism: 'nftables', open: () => openNft(false) },
};

function perFamily(open: (family: Family) => Promise<FamilyWriter>): Promise<readonly FamilyWriter[]> {
  return Promise.all(FAMILIES.map(open));
}

async function openFamily(family: Family, variant: Variant): Promise<FamilyWriter> {
  const { runner, arm } = armable(run);
  const client = await openIptables(family, runner, { variant, lockPath: '/run/junction-xtables.lock' });
  const given = { client, layout: 'current', nodeIps: () => node1Addresses(family) } as const;
  let readings = 0;
  const tables = { names: new Set(['filter', 'nat']), notes: [] };
  return {
    family,
    kernel: iptablesReader(
      given,
      () => tables,
      () => ++readings,
    ),
    start: (faults = new Faults()) => {
      arm(client, faults);
      return iptablesMode(given);
    },
  };
}
